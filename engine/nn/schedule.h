// Learning rates as pure functions of the step: of a 0-d tensor, built of ops and so usable in a capture
// (optimizer.set_lr(schedule::cosine(step, ...))), and of a number, for eager use (optimizer.set_lr(schedule::cosine(7, ...))).
// Both compute in double; the tensor's result is f32[].
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {
namespace schedule {

// `step` is i64[], i32[] or f32[], counts from 0 and is whole; beyond the end a schedule stays at its last value.
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
TAPEDECK_SCHEDULE(cosine, double lr, std::int64_t total, double end = 0)  // half a turn from lr to end
// lr (step + 1) / warmup for `warmup` steps, then cosine over what is left of `total`.
TAPEDECK_SCHEDULE(warmup_cosine, double lr, std::int64_t warmup, std::int64_t total, double end = 0)
// lr (step + 1) / warmup, then lr sqrt(warmup / (step + 1)) (Vaswani et al., 2017).
TAPEDECK_SCHEDULE(inverse_sqrt, double lr, std::int64_t warmup)
// Half a turn from lr / div up to lr over the share `rise` of total - 1 steps, and another down to lr / (div final_div)
// (Smith and Topin, 2018).
TAPEDECK_SCHEDULE(one_cycle, double lr, std::int64_t total, double rise = 0.3, double div = 25, double final_div = 1e4)

#undef TAPEDECK_SCHEDULE

}  // namespace schedule
}  // namespace TAPEDECK_API
