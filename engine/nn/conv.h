// Convolution layers of one and three dimensions, and transposed ones; Conv2d is in layers.h.
#pragma once

#include <tapedeck/engine/nn/layers.h>

namespace tapedeck TAPEDECK_API {

// Sizes of a layer's parameters: weights [first, second / groups, kernel...], bias [out, 1...], and how many inputs an output
// sums.
struct ConvParameters {
  Shape weight, bias;
  std::int64_t fan_in = 1;
};

// UsageError naming the layer if channels, groups or kernel are not positive, or do not divide.
ConvParameters conv_parameters(const char* layer, int dims, std::int64_t in, std::int64_t out, const ConvOptions& options);

// As Conv2d, of [n,in,w] and [n,in,d,h,w].
struct Conv1d : Module {
  Conv1d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvAttrs attrs;
};
struct Conv3d : Module {
  Conv3d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvAttrs attrs;
};

// `output_padding` adds rows at the end of every dimension, less than the stride.
struct ConvTransposeLayerOptions {
  Ints kernel = {2};
  Ints stride = {2};
  Ints padding = {0};
  Ints output_padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
};

// Transposed convolutions, weights [in,out/groups,kernel]; as they stand they double every spatial size.
struct ConvTranspose1d : Module {
  ConvTranspose1d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                  const ConvTransposeLayerOptions& options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvTransposeOptions options;
};
struct ConvTranspose2d : Module {
  ConvTranspose2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                  const ConvTransposeLayerOptions& options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvTransposeOptions options;
};
struct ConvTranspose3d : Module {
  ConvTranspose3d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                  const ConvTransposeLayerOptions& options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  ConvTransposeOptions options;
};

}  // namespace TAPEDECK_API
