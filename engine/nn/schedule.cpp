// Learning rate schedules. Each schedule is written once, as a template: V is double, or a 0-d f64 tensor.
//
//       rate_step_decay<V>(step, lr, every, gamma)  =  lr * power(gamma, whole(step / every))
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/schedule.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::schedule {
namespace {

// ---- the same functions for doubles and for tensors ----

double least(double a, double b) { return std::min(a, b); }
double most(double a, double b) { return std::max(a, b); }
double power(double a, double b) { return std::pow(a, b); }
double cosine_of(double x) { return std::cos(x); }
double root(double x) { return std::sqrt(x); }
double whole(double x) { return std::trunc(x); }
double at_least(double a, double b) { return a >= b ? 1 : 0; }
double choose(double condition, double a, double b) { return condition != 0 ? a : b; }

Tensor least(const Tensor& a, double b) { return minimum(a, b); }
Tensor most(const Tensor& a, double b) { return maximum(a, b); }
Tensor power(const Tensor& a, double b) { return pow(a, b); }
Tensor power(double a, const Tensor& b) { return pow(a, b); }
Tensor cosine_of(const Tensor& x) { return cos(x); }
Tensor root(const Tensor& x) { return sqrt(x); }
Tensor whole(const Tensor& x) { return cast(cast(x, DType::i64), DType::f64); }
Tensor at_least(const Tensor& a, double b) { return cast(greater_equal(a, b), DType::f64); }
Tensor choose(const Tensor& condition, const Tensor& a, const Tensor& b) { return where(not_equal(condition, 0), a, b); }

// ---- the schedules; V is the type of the step ----

template <class V>
V rate_step_decay(const V& step, double lr, double every, double gamma) {
  return lr * power(gamma, whole(step / every));
}

template <class V>
V rate_multi_step(const V& step, double lr, const std::vector<std::int64_t>& milestones, double gamma) {
  V passed = step * 0.0;
  for (std::int64_t m : milestones) passed = passed + at_least(step, static_cast<double>(m));
  return lr * power(gamma, passed);
}

// The part of `total` steps that is done, from 0 to 1.
template <class V>
V progress(const V& step, double total) {
  return most(least(step / total, 1.0), 0.0);
}

template <class V>
V half_turn(const V& progress, double from, double to) {
  return to + (from - to) * 0.5 * (1.0 + cosine_of(progress * M_PI));
}

template <class V>
V rate_polynomial(const V& step, double lr, double total, double exponent, double end) {
  return end + (lr - end) * power(1.0 - progress(step, total), exponent);
}

template <class V>
V rate_warmup_cosine(const V& step, double lr, double warmup, double total, double end) {
  const V after = half_turn(progress<V>(step - warmup, std::max(total - warmup, 1.0)), lr, end);
  if (warmup < 1) return after;
  return choose(at_least(step, warmup), after, lr * (step + 1.0) / warmup);
}

template <class V>
V rate_inverse_sqrt(const V& step, double lr, double warmup) {
  const V count = step + 1.0;
  return choose(at_least(step, warmup), lr * root(warmup / count), lr * count / warmup);
}

template <class V>
V rate_one_cycle(const V& step, double lr, double total, double rise, double div, double final_div) {
  const double peak = std::max(rise * total - 1, 0.0), last = total - 1;
  const V up = half_turn(progress(step, std::max(peak, 1e-9)), lr / div, lr);
  const V down = half_turn(progress<V>(step - peak, std::max(last - peak, 1e-9)), lr, lr / (div * final_div));
  return choose(at_least(step, peak), down, up);
}

// ---- the public functions ----

void require(bool holds, const char* name, const char* message) {
  if (!holds) throw UsageError(fmt::format("schedule::{}: {}", name, message));
}

Tensor number_of(const char* name, const Tensor& step) {
  const bool counts =
      step.dtype() == DType::i64 || step.dtype() == DType::i32 || step.dtype() == DType::f32 || step.dtype() == DType::f64;
  if (step.rank() != 0 || !counts)
    throw TypeError(error_text(("schedule::" + std::string(name)).c_str(),
                               fmt::format("the step must be i64[], i32[] or f32[], not {}", to_string(step.type())), {}));
  return cast(step, DType::f64);
}

template <class F>
Tensor of_tensor(const char* name, const Tensor& step, F&& f) {
  const NoGrad no_grad;
  return cast(f(number_of(name, step)), DType::f32);
}

double d(std::int64_t n) { return static_cast<double>(n); }

}  // namespace

// Defines both forms of a schedule. `checks` runs first. The last argument is the schedule as a function of x, the step as a
// double or a tensor.
#define TAPEDECK_SCHEDULE(name, parameters, checks, ...)                                   \
  Tensor name(const Tensor& step, TAPEDECK_UNWRAP parameters) {                            \
    checks;                                                                                \
    return of_tensor(#name, step, [&](const Tensor& x) -> Tensor { return __VA_ARGS__; }); \
  }                                                                                        \
  double name(std::int64_t step, TAPEDECK_UNWRAP parameters) {                             \
    checks;                                                                                \
    const double x = d(step);                                                              \
    return __VA_ARGS__;                                                                    \
  }
#define TAPEDECK_UNWRAP(...) __VA_ARGS__

TAPEDECK_SCHEDULE(constant, (double lr), , x * 0.0 + lr)
TAPEDECK_SCHEDULE(step_decay, (double lr, std::int64_t every, double gamma),
                  require(every >= 1, "step_decay", "every must be at least 1"), rate_step_decay(x, lr, d(every), gamma))
TAPEDECK_SCHEDULE(multi_step, (double lr, const std::vector<std::int64_t>& milestones, double gamma), ,
                  rate_multi_step(x, lr, milestones, gamma))
TAPEDECK_SCHEDULE(exponential, (double lr, double gamma), , lr* power(gamma, x))
TAPEDECK_SCHEDULE(linear, (double lr, double end, std::int64_t total),
                  require(total >= 1, "linear", "total must be at least 1"), lr + (end - lr) * progress(x, d(total)))
TAPEDECK_SCHEDULE(polynomial, (double lr, std::int64_t total, double power, double end),
                  require(total >= 1, "polynomial", "total must be at least 1"), rate_polynomial(x, lr, d(total), power, end))
TAPEDECK_SCHEDULE(cosine, (double lr, std::int64_t total, double end),
                  require(total >= 1, "cosine", "total must be at least 1"), half_turn(progress(x, d(total)), lr, end))
TAPEDECK_SCHEDULE(warmup_cosine, (double lr, std::int64_t warmup, std::int64_t total, double end),
                  require(warmup >= 0 && total >= 1, "warmup_cosine", "warmup must be at least 0 and total at least 1"),
                  rate_warmup_cosine(x, lr, d(warmup), d(total), end))
TAPEDECK_SCHEDULE(inverse_sqrt, (double lr, std::int64_t warmup),
                  require(warmup >= 1, "inverse_sqrt", "warmup must be at least 1"), rate_inverse_sqrt(x, lr, d(warmup)))
TAPEDECK_SCHEDULE(one_cycle, (double lr, std::int64_t total, double rise, double div, double final_div),
                  require(total >= 1 && rise >= 0 && rise <= 1, "one_cycle",
                          "total must be at least 1 and rise between 0 and 1"),
                  rate_one_cycle(x, lr, d(total), rise, div, final_div))

#undef TAPEDECK_SCHEDULE
#undef TAPEDECK_UNWRAP

}  // namespace tapedeck::schedule
