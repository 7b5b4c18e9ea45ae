// Scalar functors of the elementwise losses. They follow the rules of scalar.h.
#pragma once

#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels {

// log(1 + e) for 0 <= e <= 1: the logarithm of the rounded sum, times a factor that corrects the rounding of the sum.
template <class T>
TAPEDECK_HD_INLINE T log1p_of(T e) {
  if constexpr (std::is_same_v<T, float>) {
    const float sum = 1.0f + e, kept = sum - 1.0f;
    return kept == 0.0f ? e : log_f32(sum) * (e / kept);
  } else {
    return std::log1p(e);
  }
}

// log(1 + e^x), precise for large and for small x.
template <class T>
TAPEDECK_HD_INLINE T softplus_of(T x) {
  return log1p_of(exp_of(-std::fabs(x))) + (x > T(0) ? x : T(0));
}

struct Huber {
  double delta;
  template <class T>
  TAPEDECK_HD T operator()(T d) const {
    const T limit = static_cast<T>(delta), size = std::fabs(d);
    return size <= limit ? T(0.5) * d * d : limit * (size - T(0.5) * limit);
  }
};

// The loss of a probability p. Both logarithms are at least -100, so that p = 0 and p = 1 give finite losses.
struct BinaryCrossEntropy {
  template <class T>
  TAPEDECK_HD T operator()(T p, T target) const {
    const T floor = T(-100), yes = log_of(p), no = log_of(T(1) - p);
    return -(target * (yes < floor ? floor : yes) + (T(1) - target) * (no < floor ? floor : no));  // NaN stays NaN
  }
};

struct BinaryCrossEntropyWithLogits {
  template <class T>
  TAPEDECK_HD T operator()(T x, T target) const {
    return (T(1) - target) * x + softplus_of(-x);
  }
  template <class T>
  TAPEDECK_HD T operator()(T x, T target, T positive) const {
    return (T(1) - target) * x + (T(1) + (positive - T(1)) * target) * softplus_of(-x);
  }
};

// target (log target - x). A target of 0 gives 0.
struct KlDiv {
  template <class T>
  TAPEDECK_HD T operator()(T x, T target) const {
    const T plain = target * (log_of(target) - x);
    return target == T(0) ? T(0) : plain;
  }
};

struct KlDivLogTarget {
  template <class T>
  TAPEDECK_HD T operator()(T x, T target) const {
    return exp_of(target) * (target - x);
  }
};

}  // namespace tapedeck::kernels
