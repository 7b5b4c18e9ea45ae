// prod, any, all, count_nonzero, var, std, logsumexp and norm. Each kernel is a recipe for the folds of reduce_tree.h:
//
//   var         fold the mean, then fold the squared distances from the mean
//   logsumexp   fold the maximum, then fold the exponentials of the distances from the maximum
#include <tapedeck/kernels/attrs/statistics.h>
#include <tapedeck/kernels/cpu/reduction/reduce_tree.h>

#include <cmath>

namespace tapedeck::kernels::cpu {

void prod(const KernelCall& call);
void any(const KernelCall& call);
void all(const KernelCall& call);
void count_nonzero(const KernelCall& call);
void var(const KernelCall& call);
void std(const KernelCall& call);
void logsumexp(const KernelCall& call);
void norm(const KernelCall& call);

namespace {

struct Either {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Both {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

// Calls f(T{}) for all types that kernels compute in; booleans are read as u8.
template <class F>
void for_elements(const KernelCall& call, DType dtype, F&& f) {
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, f);
}

// Folds 1 for every element other than zero, and 0 for every zero.
template <class Op, class Y>
void fold_truth(const KernelCall& call) {
  for_elements(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    reduce_view<T>(call.inputs[0], call.attributes<ReduceAttrs>().axes, call.outputs[0].as<Y>(), [](const auto& fold, Y* out) {
      fold(
          Op{}, [](T x, int) { return static_cast<Y>(x != T(0)); }, out);
    });
  });
}

// Folds the mean first, then the squared distances from the mean: this avoids cancellation. Both are added in f64, so that
// squares of f32 neither overflow nor become 0.
template <class Finish>
void variance(const KernelCall& call, Finish finish) {
  const auto& a = call.attributes<VarAttrs>();
  for_floats(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const double n = static_cast<double>(Split(call.inputs[0], a.axes).length);
    const double divisor = std::max(n - a.correction, 0.0);
    reduce_view<T>(call.inputs[0], a.axes, call.outputs[0].as<T>(), [=](const auto& fold, T* out) {
      constexpr int kWidth = kWidthOf<decltype(fold)>;
      double mean[kWidth], squares[kWidth];
      fold(
          Plus{}, [](T x, int) { return static_cast<double>(x); }, mean);
      for (int j = 0; j < kWidth; ++j) mean[j] /= n;
      fold(
          Plus{},
          [&mean](T x, int j) {
            const double d = static_cast<double>(x) - mean[j];
            return d * d;
          },
          squares);
      for (int j = 0; j < kWidth; ++j) out[j] = static_cast<T>(finish(squares[j] / divisor));
    });
  });
}

// Folds the maximum first, then the exponentials of the distances from the maximum: this avoids overflow. If the maximum is not
// finite, nothing is subtracted: then the plain sum of exponentials is already 0, inf or NaN, as it should be.
template <class T>
void log_sum_exp_of(const KernelCall& call) {
  reduce_view<T>(call.inputs[0], call.attributes<ReduceAttrs>().axes, call.outputs[0].as<T>(), [](const auto& fold, T* out) {
    constexpr int kWidth = kWidthOf<decltype(fold)>;
    T top[kWidth];
    fold(Larger{}, AsIs{}, top);
    for (int j = 0; j < kWidth; ++j) top[j] = std::isfinite(top[j]) ? top[j] : T(0);
    fold(
        Plus{}, [&top](T x, int j) { return exp_of(x - top[j]); }, out);
    for (int j = 0; j < kWidth; ++j) out[j] = top[j] + log_of(out[j]);
  });
}

// Folds map(x) with op, and writes finish(fold) as the result.
template <class T, class A, class Op, class Map, class Finish>
void fold_norm(const KernelCall& call, Op op, Map map, Finish finish) {
  reduce_view<T>(call.inputs[0], call.attributes<NormAttrs>().axes, call.outputs[0].as<T>(), [=](const auto& fold, T* out) {
    constexpr int kWidth = kWidthOf<decltype(fold)>;
    A total[kWidth];
    fold(op, map, total);
    for (int j = 0; j < kWidth; ++j) out[j] = static_cast<T>(finish(total[j]));
  });
}

template <class T>
void norm_of(const KernelCall& call) {
  const double p = call.attributes<NormAttrs>().p;
  const auto as_is = [](auto x) { return x; };
  const auto size = [](T x, int) { return std::fabs(x); };
  if (p == 2)  // squares are added in f64, so that squares of f32 neither overflow nor become 0
    return fold_norm<T, double>(
        call, Plus{}, [](T x, int) { return static_cast<double>(x) * static_cast<double>(x); },
        [](double x) { return std::sqrt(x); });
  if (p == 1) return fold_norm<T, T>(call, Plus{}, size, as_is);
  if (p == std::numeric_limits<double>::infinity()) return fold_norm<T, T>(call, Larger{}, size, as_is);
  if (p == -std::numeric_limits<double>::infinity()) return fold_norm<T, T>(call, Smaller{}, size, as_is);
  if (p == 0)
    return fold_norm<T, T>(
        call, Plus{}, [](T x, int) { return static_cast<T>(x != T(0)); }, as_is);
  const T power = static_cast<T>(p), root = static_cast<T>(1 / p);
  fold_norm<T, T>(
      call, Plus{}, [power](T x, int) { return std::pow(std::fabs(x), power); }, [root](T x) { return std::pow(x, root); });
}

}  // namespace

void prod(const KernelCall& call) {
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    reduce_view<T>(call.inputs[0], call.attributes<ReduceAttrs>().axes, call.outputs[0].as<T>(),
                   [](const auto& fold, T* out) { fold(Times{}, AsIs{}, out); });
  });
}

void any(const KernelCall& call) { fold_truth<Either, std::uint8_t>(call); }
void all(const KernelCall& call) { fold_truth<Both, std::uint8_t>(call); }
void count_nonzero(const KernelCall& call) { fold_truth<Plus, std::int64_t>(call); }

void var(const KernelCall& call) {
  variance(call, [](double x) { return x; });
}
void std(const KernelCall& call) {
  variance(call, [](double x) { return std::sqrt(x); });
}

void logsumexp(const KernelCall& call) {
  for_floats(call, call.inputs[0].dtype, [&](auto t) { log_sum_exp_of<decltype(t)>(call); });
}
void norm(const KernelCall& call) {
  for_floats(call, call.inputs[0].dtype, [&](auto t) { norm_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
