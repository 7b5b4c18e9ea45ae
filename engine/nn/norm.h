// Normalising layers.
#pragma once

#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/ops/norm.h>

namespace tapedeck TAPEDECK_API {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // of the running statistics
  bool affine = true;     // weight and bias
};

// While training, x [n,c,...] is normalised by its own statistics, and the running ones move towards them (the variance
// unbiased); otherwise by the running ones.
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

// Over the last dimensions, whose sizes are `sizes`.
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

// x [n,c,...]; as many groups as channels: instance normalisation.
struct GroupNorm : Module {
  GroupNorm(Module& parent, const std::string& name, std::int64_t groups, std::int64_t channels, double eps = 1e-5);
  Tensor operator()(const Arg& x);
  Tensor weight, bias;
  std::int64_t groups;
  double eps;
};

}  // namespace TAPEDECK_API
