// Scalar functors of the elementwise losses. They follow the rules of scalar.h.
#pragma once

#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels {

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
    return loss(log_of(p), log_of(T(1) - p), target);
  }
  TAPEDECK_HD_INLINE float begin(float p, float) const { return log_f32(p); }
  TAPEDECK_HD_INLINE float finish(float yes, float p, float target) const { return loss(yes, log_f32(1.0f - p), target); }

 private:
  template <class T>
  TAPEDECK_HD_INLINE static T loss(T yes, T no, T target) {
    const T floor = T(-100);
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
  TAPEDECK_HD_INLINE float begin(float x, float, float = 1.0f) const { return exp_of_minus_size_f32(x); }
  TAPEDECK_HD_INLINE float finish(float e, float x, float target) const {
    return (1.0f - target) * x + softplus_from_exp_f32(e, -x);
  }
  TAPEDECK_HD_INLINE float finish(float e, float x, float target, float positive) const {
    return (1.0f - target) * x + (1.0f + (positive - 1.0f) * target) * softplus_from_exp_f32(e, -x);
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
