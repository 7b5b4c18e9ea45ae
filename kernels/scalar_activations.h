// Scalar functors of activations and their gradients. They follow the rules of scalar.h. A gradient functor names the forward
// value that it reads: x for the operand, y for the result.
//
// Attributes are members of the functor, already converted to type T.
#pragma once

#include <tapedeck/kernels/scalar_functions.h>

namespace tapedeck::kernels {

struct Gelu {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x * normal_of(x).cdf;
  }
};
struct GeluGrad {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T dy) const {
    const Normal<T> n = normal_of(x);
    return dy * (n.cdf + x * n.bell * T(0.39894228040143267794));
  }
};
// The tanh approximation of gelu: x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x sigmoid(2u), which
// keeps its precision for large negative x.
inline constexpr double kGeluLinear = 1.59576912160573071176;  // 2 sqrt(2/pi)
inline constexpr double kGeluCubic = kGeluLinear * 0.044715;
struct GeluTanh {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x * sigmoid_of(x * (T(kGeluLinear) + T(kGeluCubic) * (x * x)));
  }
  TAPEDECK_HD_INLINE float begin(float x) const {
    return exp_of_minus_size_f32(x * (float(kGeluLinear) + float(kGeluCubic) * (x * x)));
  }
  TAPEDECK_HD_INLINE float finish(float e, float x) const { return x * sigmoid_from_exp_f32(e, x); }  // 2u has the sign of x
};
struct GeluTanhGrad {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T dy) const {
    return gradient(sigmoid_of(x * (T(kGeluLinear) + T(kGeluCubic) * (x * x))), x, dy);
  }
  TAPEDECK_HD_INLINE float begin(float x, float) const { return GeluTanh{}.begin(x); }
  TAPEDECK_HD_INLINE float finish(float e, float x, float dy) const { return gradient(sigmoid_from_exp_f32(e, x), x, dy); }

 private:
  template <class T>
  TAPEDECK_HD_INLINE static T gradient(T s, T x, T dy) {
    const T slope = x * (T(kGeluLinear) + T(3 * kGeluCubic) * (x * x));  // x times the derivative of 2u
    return dy * (s + s * (T(1) - s) * slope);
  }
};

struct Silu {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x * sigmoid_of(x);
  }
  TAPEDECK_HD_INLINE float begin(float x) const { return exp_of_minus_size_f32(x); }
  TAPEDECK_HD_INLINE float finish(float e, float x) const { return x * sigmoid_from_exp_f32(e, x); }
};
struct SiluGrad {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T dy) const {
    return gradient(sigmoid_of(x), x, dy);
  }
  TAPEDECK_HD_INLINE float begin(float x, float) const { return exp_of_minus_size_f32(x); }
  TAPEDECK_HD_INLINE float finish(float e, float x, float dy) const { return gradient(sigmoid_from_exp_f32(e, x), x, dy); }

 private:
  template <class T>
  TAPEDECK_HD_INLINE static T gradient(T s, T x, T dy) {
    return dy * (s + s * (T(1) - s) * x);
  }
};

template <class T>
struct Softplus {
  T beta, inverse, threshold;
  TAPEDECK_HD_INLINE T operator()(T x) const {
    const T z = x * beta;
    return z > threshold ? x : softplus_of(z) * inverse;
  }
  TAPEDECK_HD_INLINE float begin(float x) const { return exp_of_minus_size_f32(x * float(beta)); }
  TAPEDECK_HD_INLINE float finish(float e, float x) const {
    const float z = x * float(beta), most = float(threshold), y = softplus_from_exp_f32(e, z) * float(inverse);
    return z > most ? x : y;
  }
};
template <class T>
struct SoftplusGrad {
  T beta, threshold;
  TAPEDECK_HD_INLINE T operator()(T y, T dy) const {
    const T z = y * beta;
    return z > threshold ? dy : dy * -Expm1{}(-z);
  }
};

// scale * (x if x > 0, else alpha (e^(slope x) - 1)). elu, selu and celu are special cases.
template <class T>
struct Elu {
  T alpha, scale, slope;
  TAPEDECK_HD_INLINE T operator()(T x) const {
    const T left = alpha * Expm1{}(slope * x);
    return scale * (x > T(0) ? x : left);
  }
};
template <class T>
struct EluGrad {
  T offset, scale, slope;  // offset = alpha * scale; the smallest result y is -offset
  TAPEDECK_HD_INLINE T operator()(T y, T dy) const {
    const T left = slope * (y + offset), right = scale;
    return dy * (y > T(0) ? right : left);
  }
};

// From the result of clamp: the gradient passes between the bounds. An infinite bound does not bind.
template <class T>
struct ClampGrad {
  T low, high;
  TAPEDECK_HD_INLINE T operator()(T y, T dy) const {
    const T inf = std::numeric_limits<T>::infinity(), least = low, most = high;
    const bool over = bool(y > least) | bool(least == -inf), under = bool(y < most) | bool(most == inf);
    return (over & under) ? dy : T(0);
  }
};

template <class T>
struct LeakyRelu {
  T slope;
  TAPEDECK_HD_INLINE T operator()(T x) const {
    const T turned = slope * x;
    return x > T(0) ? x : turned;
  }
};
struct Prelu {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T weight) const {
    const T turned = weight * x;
    return x > T(0) ? x : turned;
  }
};

struct HardSigmoid {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return Clamp<T>{T(0), T(6)}(x + T(3)) / T(6);
  }
};
struct HardSwish {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x <= T(-3) ? T(0) : (x >= T(3) ? x : x * (x + T(3)) / T(6));
  }
};
struct HardSwishGrad {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T dy) const {
    const T inside = dy * ((x + x + T(3)) / T(6));
    return x <= T(-3) ? T(0) : (x >= T(3) ? dy : inside);
  }
};

// tanh(softplus(x)) = n / (n + 2) with n = e^x (e^x + 2). From x = 20 on the result is 1 in every type.
template <class T>
TAPEDECK_HD_INLINE T mish_gate(T x) {
  const T e = exp_of(x > T(20) ? T(20) : x);
  const T n = e * (e + T(2));
  return n / (n + T(2));
}
struct Mish {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x * mish_gate(x);
  }
};
struct MishGrad {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x, T dy) const {
    const T near = x > T(20) ? T(20) : x;  // the gate is 1 from 20 on, and times a larger x its rest would not be small
    const T e = exp_of(near);
    const T n = e * (e + T(2)), d = n + T(2);
    const T rest = T(4) * (n + T(1)) / (d * d);  // 1 - gate^2
    return dy * (n / d + near * rest * sigmoid_of(x));
  }
};

struct Softsign {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};
struct LogSigmoid {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return -softplus_of(-x);
  }
  TAPEDECK_HD_INLINE float begin(float x) const { return exp_of_minus_size_f32(x); }
  TAPEDECK_HD_INLINE float finish(float e, float x) const { return -softplus_from_exp_f32(e, -x); }
};
struct TanhShrink {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    return x - tanh_of(x);
  }
};

template <class T>
struct HardShrink {
  T bound;
  TAPEDECK_HD_INLINE T operator()(T x) const { return std::fabs(x) <= bound ? T(0) : x; }
};
template <class T>
struct SoftShrink {
  T bound;
  TAPEDECK_HD_INLINE T operator()(T x) const {
    const T outside = x > T(0) ? x - bound : x + bound;
    return std::fabs(x) <= bound ? T(0) : outside;
  }
};
template <class T>
struct Threshold {
  T threshold, value;
  TAPEDECK_HD_INLINE T operator()(T x) const {
    const T instead = value;
    return x <= threshold ? instead : x;
  }
};

}  // namespace tapedeck::kernels
