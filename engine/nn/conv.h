// Convolution layers of one and three dimensions, and transposed convolutions. Conv2d is in layers.h.
#pragma once

#include <tapedeck/engine/nn/layers.h>

namespace tapedeck TAPEDECK_API {

// The shapes of a layer's parameters: weights [first, second / groups, kernel...] and bias [out, 1...]. `fan_in` is the
// number of inputs that one output sums.
struct ConvParameters {
  Shape weight, bias;
  std::int64_t fan_in = 1;
};

// Throws UsageError if channels, groups or kernel are not positive, or if the groups do not divide the channels. The message
// names the layer.
ConvParameters conv_parameters(const char* layer, int dims, std::int64_t in, std::int64_t out, const ConvOptions& options);

// As Conv2d, but x is [n,in,w] for Conv1d and [n,in,d,h,w] for Conv3d.
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

// `output_padding` is the number of rows added at the end of each dimension. It must be less than the stride.
struct ConvTransposeLayerOptions {
  Ints kernel = {2};
  Ints stride = {2};
  Ints padding = {0};
  Ints output_padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
};

// Transposed convolutions with weights [in,out/groups,kernel]. With the default options they double every spatial size.
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
