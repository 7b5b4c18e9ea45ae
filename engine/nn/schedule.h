// Learning rates as functions of the step. Each function takes the step as a 0-d tensor or as a number. The first form is
// made of ops and works in a capture (optimizer.set_lr(schedule::cosine(step, ...))); the second is for eager code
// (optimizer.set_lr(schedule::cosine(7, ...))). Both compute in double. The result of the first form is f32[].
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {
namespace schedule {

// `step` is i64[], i32[], f32[] or f64[] and holds a whole number that counts from 0. After the last step a schedule keeps
// its last value.
#define TAPEDECK_SCHEDULE(name, ...)            \
  Tensor name(const Tensor& step, __VA_ARGS__); \
  double name(std::int64_t step, __VA_ARGS__);

TAPEDECK_SCHEDULE(constant, double lr)
TAPEDECK_SCHEDULE(step_decay, double lr, std::int64_t every, double gamma = 0.1)  // lr gamma^floor(step / every)
TAPEDECK_SCHEDULE(multi_step, double lr, const std::vector<std::int64_t>& milestones, double gamma = 0.1)
TAPEDECK_SCHEDULE(exponential, double lr, double gamma)               // lr gamma^step
TAPEDECK_SCHEDULE(linear, double lr, double end, std::int64_t total)  // a straight line from lr to end
// end + (lr - end) (1 - step / total)^power
TAPEDECK_SCHEDULE(polynomial, double lr, std::int64_t total, double power = 1, double end = 0)
TAPEDECK_SCHEDULE(cosine, double lr, std::int64_t total, double end = 0)  // half a cosine wave from lr to end
// lr (step + 1) / warmup for the first `warmup` steps, then a cosine over the rest of `total`.
TAPEDECK_SCHEDULE(warmup_cosine, double lr, std::int64_t warmup, std::int64_t total, double end = 0)
// lr (step + 1) / warmup for the first steps, then lr sqrt(warmup / (step + 1)) (Vaswani et al., 2017).
TAPEDECK_SCHEDULE(inverse_sqrt, double lr, std::int64_t warmup)
// Half a cosine wave from lr / div up to lr, over the share `rise` of the total - 1 steps, and then another one down to lr /
// (div final_div) (Smith and Topin, 2018).
TAPEDECK_SCHEDULE(one_cycle, double lr, std::int64_t total, double rise = 0.3, double div = 25, double final_div = 1e4)

#undef TAPEDECK_SCHEDULE

}  // namespace schedule
}  // namespace TAPEDECK_API
