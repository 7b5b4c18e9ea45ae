// Normalization layers.
#pragma once

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/norm.h>

namespace tapedeck TAPEDECK_API {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // the weight of the new batch in the running statistics
  bool affine = true;     // has weight and bias
};

// While training, x [n,c,...] is normalized by its own statistics, and the running statistics move towards them (with the
// unbiased variance). In evaluation, x is normalized by the running statistics.
struct BatchNorm : Module {
  BatchNorm(Module& parent, const std::string& name, std::int64_t channels, BatchNormOptions options = {});
  Tensor operator()(const Arg& x);
  Tensor weight, bias, running_mean, running_var;
  BatchNormOptions options;

 protected:
  Tensor normalised(const Arg& x, int least_rank, int most_rank);
};
struct BatchNorm1d : BatchNorm {  // [n,c] or [n,c,length]
  using BatchNorm::BatchNorm;
  Tensor operator()(const Arg& x) { return normalised(x, 2, 3); }
};
struct BatchNorm2d : BatchNorm {  // [n,c,h,w]
  using BatchNorm::BatchNorm;
  Tensor operator()(const Arg& x) { return normalised(x, 4, 4); }
};
struct BatchNorm3d : BatchNorm {  // [n,c,d,h,w]
  using BatchNorm::BatchNorm;
  Tensor operator()(const Arg& x) { return normalised(x, 5, 5); }
};

// Normalizes over the last dimensions, which must have the sizes `sizes`.
struct LayerNorm : Module {
  LayerNorm(Module& parent, const std::string& name, const Shape& sizes, double eps = 1e-5);
  LayerNorm(Module& parent, const std::string& name, std::int64_t size, double eps = 1e-5)
      : LayerNorm(parent, name, Shape{size}, eps) {}
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  double eps;
};

struct RmsNorm : Module {
  RmsNorm(Module& parent, const std::string& name, std::int64_t size, double eps = 1e-6);
  Tensor operator()(const Arg& x);
  Tensor weight;
  double eps;
};

// x is [n,c,...]. With as many groups as channels this is instance normalization.
struct GroupNorm : Module {
  GroupNorm(Module& parent, const std::string& name, std::int64_t groups, std::int64_t channels, double eps = 1e-5);
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  std::int64_t groups;
  double eps;
};

}  // namespace TAPEDECK_API
