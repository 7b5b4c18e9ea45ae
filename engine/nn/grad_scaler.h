// Loss scaling for half precision: gradients that would vanish in f16 are computed of a loss many times larger.
//
//     scaler.scale_loss(loss) -> backward -> [scaler.unscale(optimizer), clip] -> scaler.step(optimizer) -> scaler.update()
//
// A step whose gradients are not all finite changes nothing, and the scale shrinks; after many finite steps it grows. The scale
// and the number of finite steps are state, and whether a step counts is decided by its kernels: no host reads a value, so all
// of it works in a captured step.
#pragma once

#include <tapedeck/engine/nn/optimizer.h>

#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GradScalerOptions {
  double scale = 65536;
  double growth = 2;  // powers of two lose no bits
  double backoff = 0.5;
  std::int64_t interval = 2000;  // finite steps in a row before the scale grows
};

class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});
  Tensor scale_loss(const Arg& loss) const;  // loss * scale; f32 if the loss is half
  // Divides the gradients by the scale; step() does it if the author has not. Every parameter gets a gradient of its own.
  void unscale(Optimizer& optimizer, Site site = {__builtin_FILE(), __builtin_LINE()});
  void step(Optimizer& optimizer, Site site = {__builtin_FILE(), __builtin_LINE()});  // skipped where a gradient is not finite
  void update(Site site = {__builtin_FILE(), __builtin_LINE()});  // the next scale, once all optimizers have stepped
  const Tensor& scale() const { return scale_; }                  // f32[]
  std::vector<Tensor> state() const { return {scale_, streak_}; }

 private:
  const Tensor* finite_of(const Optimizer& optimizer) const;
  GradScalerOptions options_;
  Tensor scale_, streak_;
  std::vector<std::pair<const Optimizer*, Tensor>>
      finite_;  // whose gradients are unscaled in this step, and whether they are finite
};

}  // namespace TAPEDECK_API
