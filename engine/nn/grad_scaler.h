// Loss scaling for half precision. Gradients that would be rounded to 0 in f16 are computed from a loss that is multiplied by
// a large scale.
//
//       scaler.scale_loss(loss) -> backward -> [scaler.unscale(optimizer), clip] -> scaler.step(optimizer) -> scaler.update()
//
// If a gradient is not finite, the step changes nothing and the scale becomes smaller. After `interval` finite steps in a row
// the scale grows. The scale and the number of finite steps are state, and kernels decide whether a step is skipped. No value
// is read on the host, so all of it works in a captured step.
#pragma once

#include <tapedeck/engine/nn/optimizer.h>

#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GradScalerOptions {
  double scale = 65536;
  double growth = 2;  // a power of two loses no bits
  double backoff = 0.5;
  std::int64_t interval = 2000;  // finite steps in a row before the scale grows
};

class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});
  Tensor scale_loss(const Arg& loss) const;  // loss * scale; in f32 if the loss is f16 or bf16
  // Divides the gradients by the scale, into new tensors that no two parameters share. step() calls it if the author has not.
  void unscale(Optimizer& optimizer, Site site = {__builtin_FILE(), __builtin_LINE()});
  void step(Optimizer& optimizer, Site site = {__builtin_FILE(), __builtin_LINE()});  // skipped if a gradient is not finite
  void update(Site site = {__builtin_FILE(), __builtin_LINE()});  // the next scale; call after all optimizers' steps
  const Tensor& scale() const { return scale_; }                  // f32[]
  std::vector<Tensor> state() const { return {scale_, streak_}; }

 private:
  const Tensor* finite_of(const Optimizer& optimizer) const;
  GradScalerOptions options_;
  Tensor scale_, streak_;
  std::vector<std::pair<const Optimizer*, Tensor>>
      finite_;  // optimizers that were unscaled in this step, and whether their gradients are finite (bool[])
};

}  // namespace TAPEDECK_API
