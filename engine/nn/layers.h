// Layers: linear, two-dimensional convolution, and dropout. A layer holds named parameters and calls a few ops.
#pragma once

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck TAPEDECK_API {

struct LinearOptions {
  bool bias = true;
};

// y = x W + b with x [..., in] and W [in, out]. The first values are uniform in +-1/sqrt(in).
struct Linear : Module {
  Linear(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, LinearOptions options = {});
  Tensor operator()(const Arg& x);
  Tensor weight;
  Tensor bias;  // [out]; undefined if there is no bias
};

// Lists hold one number for all dimensions or one for each (kernels/attrs.h).
struct ConvOptions {
  Ints kernel = {3};
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
};

// One number for both dimensions of a window. The types are explicit, so that no plain number is taken for another one.
struct Stride {
  constexpr explicit Stride(std::int64_t number) : number(number) {}
  std::int64_t number;
};
struct Padding {
  constexpr explicit Padding(std::int64_t number) : number(number) {}
  std::int64_t number;
};

// Convolution of [n,in,h,w] with weights [out,in/groups,kh,kw] and a bias. `padding` rows are added on every side. The first
// weights are drawn for relu, uniform in +-sqrt(6/fan_in) (He et al., 2015), so that deep networks keep the scale of their
// values. The arguments have the field's order:
//     Conv2d stem{*this, "stem", 3, 64, 7, Stride(2), Padding(3)};
//     Conv2d body{*this, "body", 64, 64, 3, Padding(1)};
struct Conv2d : Module {
  Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
         Stride stride = Stride(1), Padding padding = Padding(0));
  Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel, Padding padding)
      : Conv2d(parent, name, in, out, kernel, Stride(1), padding) {}
  Conv2d(Module& parent, const std::string& name, std::int64_t in, std::int64_t out, const ConvOptions& options);
  Tensor operator()(const Arg& x);
  Tensor weight;
  Tensor bias;  // [out,1,1]; undefined if there is no bias
  ConvAttrs attrs;
};

struct Dropout : Module {
  Dropout(Module& parent, const std::string& name, double p);
  Tensor operator()(const Arg& x);
  double p;
};

}  // namespace TAPEDECK_API
