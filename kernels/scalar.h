// Scalar functions, written once as functors: the CPU kernels, the CUDA kernels and the fused kernels of both call them.
//
// Every functor is plain C++ on values. The f32 functors select instead of branch where speed matters, so that a loop over them
// vectorises and gives the same bits as single calls. exp, log, tanh and sigmoid of f32 are polynomials written here, not calls
// of a math library, so that every device gives equal bits. std::fma is exact everywhere, also on a processor without the
// instruction; otherwise the compiler must not contract floating-point expressions (-ffp-contract=off). The f64 versions call
// std:: functions.
//
// A functor with a long chain of operations that wait for each other has two more members: finish(begin(x), x) is its result. A
// processor looks ahead over a bounded number of operations, so two loops over a tile, first of begin() and then of finish(),
// are faster than one loop over both (cpu/tile_loops.h).
//
// Integers wrap around. max and min propagate NaN. A boolean is a byte that holds 0 or 1; any other byte reads as true.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define TAPEDECK_HD __host__ __device__
#else
#define TAPEDECK_HD
#endif

// For functions that must vectorise. A call left inside a loop keeps the loop scalar, and compilers inline less in large files,
// so these functions are always inlined.
#define TAPEDECK_HD_INLINE TAPEDECK_HD inline __attribute__((always_inline))

namespace tapedeck::kernels {

// ---- bits of floats ----

TAPEDECK_HD_INLINE std::uint32_t float_bits(float x) {
  std::uint32_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}
TAPEDECK_HD_INLINE float bits_float(std::uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}
TAPEDECK_HD_INLINE std::uint64_t double_bits(double x) {
  std::uint64_t u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
}
TAPEDECK_HD_INLINE double bits_double(std::uint64_t u) {
  double x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
}

// ---- f32 polynomials ----

// 2^n for -126 <= n <= 127.
TAPEDECK_HD_INLINE float power_of_two(std::int32_t n) { return bits_float(static_cast<std::uint32_t>(n + 127) << 23); }

// e^x = 2^n e^r with |r| <= ln2/2, within about 1 ulp. The factor 2^n is applied as two factors, so that denormal results and
// results close to overflow are right. The first factor is added to the exponent of e^r, which gives the same bits as a
// multiplication. A result far outside the range of f32 is selected at the end.
TAPEDECK_HD_INLINE float exp_f32(float x) {
  const float shifter = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float t = std::fma(x, 1.44269504088896341f, shifter);
  const float nf = t - shifter;
  const float r = std::fma(nf, 2.12194440e-4f, std::fma(nf, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  const float e = std::fma(p, r * r, r) + 1.0f;
  const std::uint32_t n = float_bits(t) - 0x4B400000u;  // in [-152, 128] for every x that keeps its y below
  const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  float y = bits_float(float_bits(e) + (half << 23)) * bits_float((n - half + 127u) << 23);
  const float beyond = x + std::numeric_limits<float>::infinity();  // inf or NaN
  y = x <= 89.0f ? y : beyond;
  return x < -105.0f ? 0.0f : y;
}

// log(1 + m) - m + m^2 / 2 for sqrt(1/2) <= 1 + m < sqrt(2); `square` is m^2.
TAPEDECK_HD_INLINE float log_cubic_f32(float m, float square) {
  float p = 7.0376836292e-2f;
  p = std::fma(p, m, -1.1514610310e-1f);
  p = std::fma(p, m, 1.1676998740e-1f);
  p = std::fma(p, m, -1.2420140846e-1f);
  p = std::fma(p, m, 1.4249322787e-1f);
  p = std::fma(p, m, -1.6668057665e-1f);
  p = std::fma(p, m, 2.0000714765e-1f);
  p = std::fma(p, m, -2.4999993993e-1f);
  p = std::fma(p, m, 3.3333331174e-1f);
  return p * m * square;
}

// log x = n log 2 + (m + y) with sqrt(1/2) <= 1 + m < sqrt(2); y is small against m. Valid for 0 < x < inf.
struct LogParts {
  float n, m, y;
  float cubic;  // y + m^2 / 2
};
TAPEDECK_HD_INLINE LogParts split_log_f32(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const std::uint32_t u = float_bits(tiny ? x * 8388608.0f : x);
  const std::uint32_t shifted = u - 0x3F3504F3u;  // now the exponent field counts from sqrt(1/2)
  const std::int32_t n = (static_cast<std::int32_t>(shifted) >> 23) - (tiny ? 23 : 0);
  const float m = bits_float((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  const float square = m * m, cubic = log_cubic_f32(m, square);
  return {static_cast<float>(n), m, std::fma(-0.5f, square, cubic), cubic};
}
// Takes y as the logarithm of a positive finite x, and replaces it where x is 0, inf, negative or NaN.
TAPEDECK_HD_INLINE float log_edges_f32(float x, float y) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  y = x < inf ? y : x;
  y = x == 0.0f ? -inf : y;
  return x < 0.0f ? nan : y;
}

// Within about 1 ulp.
TAPEDECK_HD_INLINE float log_f32(float x) {
  const LogParts l = split_log_f32(x);
  const float rest = std::fma(-0.5f, l.m * l.m, std::fma(l.n, -2.12194440e-4f, l.cubic));
  return log_edges_f32(x, std::fma(l.n, 0.693359375f, l.m + rest));
}

// log(1 + e) for 0 <= e <= 1, within 1.5 ulp: the polynomial of log, without a logarithm's search for the exponent.
TAPEDECK_HD_INLINE float log1p_unit_f32(float e) {
  const bool halved = e > 0.41421356f;  // then 1 + e = 2 (1 + m)
  const float n = halved ? 1.0f : 0.0f, m = halved ? 0.5f * (e - 1.0f) : e;
  const float square = m * m, cubic = log_cubic_f32(m, square);
  const float rest = std::fma(-0.5f, square, std::fma(n, -2.12194440e-4f, cubic));
  return std::fma(n, 0.693359375f, m + rest);
}

// tanh(x), where e = e^(2|x|): an odd polynomial near zero, and 1 - 2 / (e + 1) elsewhere, with the sign bit of x. Within 3
// ulp.
TAPEDECK_HD_INLINE float tanh_from_exp_f32(float e, float x) {
  const std::uint32_t sign = float_bits(x) & 0x80000000u;
  const float a = bits_float(float_bits(x) & 0x7FFFFFFFu);
  const float z = a * a;
  float p = -5.70498872745e-3f;
  p = std::fma(p, z, 2.06390887954e-2f);
  p = std::fma(p, z, -5.37397155531e-2f);
  p = std::fma(p, z, 1.33314422036e-1f);
  p = std::fma(p, z, -3.33332819422e-1f);
  const float near_zero = std::fma(p * z, a, a);
  const float far_away = 1.0f - 2.0f / (e + 1.0f);
  const float y = a < 0.625f ? near_zero : far_away;
  return bits_float(float_bits(y) | sign);
}
TAPEDECK_HD_INLINE float exp_for_tanh_f32(float x) {
  const float a = bits_float(float_bits(x) & 0x7FFFFFFFu);
  return exp_f32(a + a);
}
TAPEDECK_HD_INLINE float tanh_f32(float x) { return tanh_from_exp_f32(exp_for_tanh_f32(x), x); }

// 1 / (1 + e^-x), computed from e = e^-|x|, which never overflows. Both tails keep their relative precision.
TAPEDECK_HD_INLINE float sigmoid_from_exp_f32(float e, float x) { return (x < 0.0f ? e : 1.0f) / (1.0f + e); }
TAPEDECK_HD_INLINE float exp_of_minus_size_f32(float x) { return exp_f32(-bits_float(float_bits(x) & 0x7FFFFFFFu)); }
TAPEDECK_HD_INLINE float sigmoid_f32(float x) { return sigmoid_from_exp_f32(exp_of_minus_size_f32(x), x); }

// log(1 + e^x), computed from e = e^-|x|.
TAPEDECK_HD_INLINE float softplus_from_exp_f32(float e, float x) { return (x < 0.0f ? 0.0f : x) + log1p_unit_f32(e); }

// a^b = 2^(b log2 |a|) in double, rounded once: within 0.54 ulp, also where the result is a denormal. log2 |a| is n + l(s) with
// s = (m - 1) / (m + 1); a division in f32 and one step of correction give s. First the exponent, for any a; the edges are
// selected in the second half.
TAPEDECK_HD_INLINE double pow_exponent_f32(float a, float b) {
  const float size = bits_float(float_bits(a) & 0x7FFFFFFFu);
  const bool tiny = size < 1.17549435e-38f;
  const std::uint32_t shifted = float_bits(tiny ? size * 8388608.0f : size) - 0x3F3504F3u;
  const std::int32_t n = (static_cast<std::int32_t>(shifted) >> 23) - (tiny ? 23 : 0);
  const float m = bits_float((shifted & 0x007FFFFFu) + 0x3F3504F3u), inverse = 1.0f / (m + 1.0f);
  const double wide = m, guess = (m - 1.0f) * inverse;
  const double s = std::fma(std::fma(-guess, wide + 1.0, wide - 1.0), static_cast<double>(inverse), guess), z = s * s;
  double l = 0.340728008154121367;
  l = std::fma(l, z, 0.411672827125031249);
  l = std::fma(l, z, 0.577083583259469496);
  l = std::fma(l, z, 0.961796673350169306);
  l = std::fma(l, z, 2.88539008179007999);
  return static_cast<double>(b) * std::fma(l, s, static_cast<double>(n));
}
// 2^y, and inf or 0 beyond the range of f32. A NaN gives any number.
TAPEDECK_HD_INLINE float rounded_exp2(double y) {
  const double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double t = y + shifter, r = y - (t - shifter);
  double p = 1.53457884180190759e-4;
  p = std::fma(p, r, 1.33999321014607504e-3);
  p = std::fma(p, r, 9.61848906854332423e-3);
  p = std::fma(p, r, 5.55032877377184293e-2);
  p = std::fma(p, r, 2.40226468890733134e-1);
  p = std::fma(p, r, 6.93147205740211984e-1);
  p = std::fma(p, r, 1.00000000055486843);
  const float power = static_cast<float>(p * bits_double((double_bits(t) + 1023) << 52)), exponent = static_cast<float>(y);
  const float least = exponent <= -160.0f ? 0.0f : power;
  return exponent >= 130.0f ? std::numeric_limits<float>::infinity() : least;
}
TAPEDECK_HD_INLINE float pow_from_exponent_f32(double y, float a, float b) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float size = bits_float(float_bits(a) & 0x7FFFFFFFu);
  const bool infinite = size == inf, zero = size == 0.0f, rises = b > 0.0f;
  const float edge = infinite == rises ? inf : 0.0f;
  float power = rounded_exp2(y);
  power = (infinite | zero) ? edge : power;
  power = size == 1.0f ? 1.0f : power;
  const float half = 0.5f * b;
  const bool whole = std::rint(b) == b, halved = std::rint(half) == half;
  power = bits_float(float_bits(power) | ((whole & !halved) ? float_bits(a) & 0x80000000u : 0u));
  const bool negative = a < 0.0f, no_number = a != a, no_power = b != b, nothing = b == 0.0f, one = a == 1.0f;
  power = (negative & !infinite & !whole) ? nan : power;
  power = (no_number | no_power) ? a + b : power;
  return (nothing | one) ? 1.0f : power;
}

// ---- one name for each function over all the types ----

// The type in which values of type T are added and multiplied: unsigned for integers, so that overflow wraps around.
template <class T, bool kInteger = std::is_integral_v<T>>
struct WrapType {
  using type = T;
};
template <class T>
struct WrapType<T, true> {
  using type = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;
};
template <class T>
using Wrap = typename WrapType<T>::type;

template <class T>
TAPEDECK_HD_INLINE T exp_of(T x) {
  if constexpr (std::is_same_v<T, float>)
    return exp_f32(x);
  else
    return std::exp(x);
}
template <class T>
TAPEDECK_HD_INLINE T log_of(T x) {
  if constexpr (std::is_same_v<T, float>)
    return log_f32(x);
  else
    return std::log(x);
}
template <class T>
TAPEDECK_HD_INLINE T tanh_of(T x) {
  if constexpr (std::is_same_v<T, float>)
    return tanh_f32(x);
  else
    return std::tanh(x);
}
template <class T>
TAPEDECK_HD_INLINE T sigmoid_of(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return sigmoid_f32(x);
  } else {
    const T e = std::exp(-std::fabs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
  }
}

// log(1 + e^x), without overflow for large x and without loss of precision for small x.
template <class T>
TAPEDECK_HD_INLINE T softplus_of(T x) {
  if constexpr (std::is_same_v<T, float>)
    return softplus_from_exp_f32(exp_of_minus_size_f32(x), x);
  else
    return (x < T(0) ? T(0) : x) + std::log1p(std::exp(-std::fabs(x)));
}

// ---- binary ----

struct Add {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
};
struct Sub {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
struct Mul {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
};
// Integers round toward zero. An integer divided by zero gives 0; the kernel that calls Div reports the fault. The lowest
// integer divided by -1 wraps around to itself.
struct Div {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(a));
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
struct Maximum {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return a > b ? a : b;
    else
      return ((a > b) | (a != a)) ? a : b;  // a NaN in b fails both tests, so b is the result
  }
};
struct Minimum {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return a < b ? a : b;
    else
      return ((a < b) | (a != a)) ? a : b;
  }
};
// Integers are raised by repeated squaring and wrap around. A negative exponent gives the reciprocal, truncated: 0 unless the
// base is 1 or -1. The kernel that calls Pow reports a base of 0 with a negative exponent.
//
// Floats have their own bodies for the exponents that programs write most. They are rare in a tensor of exponents.
struct Pow {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
      }
      Wrap<T> base = static_cast<Wrap<T>>(a), result = 1;
      for (Wrap<T> e = static_cast<Wrap<T>>(b); e != 0; e >>= 1) {
        if (e & 1) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else {
      if (b == T(2)) return squared(a);
      if (b == T(3)) return cubed(a);
      if (b == T(0.5)) return root(a);
      if (b == T(-0.5)) return T(1) / root(a);
      if (b == T(-1)) return T(1) / a;
      if constexpr (std::is_same_v<T, float>)
        return pow_from_exponent_f32(pow_exponent_f32(a, b), a, b);
      else
        return std::pow(a, b);
    }
  }
  TAPEDECK_HD_INLINE bool rare(float, float b) const {
    const bool two = b == 2.0f, three = b == 3.0f, half = b == 0.5f, minus_half = b == -0.5f, minus_one = b == -1.0f;
    return two | three | half | minus_half | minus_one;
  }
  TAPEDECK_HD_INLINE double begin(float a, float b) const { return pow_exponent_f32(a, b); }
  TAPEDECK_HD_INLINE float finish(double y, float a, float b) const { return pow_from_exponent_f32(y, a, b); }

  template <class T>
  TAPEDECK_HD_INLINE static T squared(T a) {
    return a * a;
  }
  template <class T>
  TAPEDECK_HD_INLINE static T cubed(T a) {
    return a * a * a;
  }
  // The square root of -0 is -0, and that of -inf is NaN; the powers are 0 and inf.
  template <class T>
  TAPEDECK_HD_INLINE static T root(T a) {
    const T inf = std::numeric_limits<T>::infinity(), y = std::sqrt(a + T(0));
    return a == -inf ? inf : y;
  }
};

// ---- unary ----

struct Neg {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(a));
    else
      return -a;
  }
};
struct Abs {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else if constexpr (std::is_signed_v<T>)
      return a < T(0) ? Neg{}(a) : a;
    else
      return a;
  }
};
struct Sign {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return a > T(0) ? T(1) : (a < T(0) ? T(-1) : a);  // zeros keep their sign, and NaN stays NaN
    else if constexpr (std::is_signed_v<T>)
      return static_cast<T>((a > T(0)) - (a < T(0)));
    else
      return static_cast<T>(a != T(0));
  }
};
struct Exp {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return exp_of(a);
  }
};
struct Log {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return log_of(a);
  }
};
struct Tanh {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return tanh_of(a);
  }
  TAPEDECK_HD_INLINE float begin(float a) const { return exp_for_tanh_f32(a); }
  TAPEDECK_HD_INLINE float finish(float e, float a) const { return tanh_from_exp_f32(e, a); }
};
struct Sigmoid {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return sigmoid_of(a);
  }
  TAPEDECK_HD_INLINE float begin(float a) const { return exp_of_minus_size_f32(a); }
  TAPEDECK_HD_INLINE float finish(float e, float a) const { return sigmoid_from_exp_f32(e, a); }
};
struct Relu {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return a < T(0) ? T(0) : a;
  }  // NaN stays NaN
};
struct Sqrt {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Rsqrt {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return T(1) / std::sqrt(a);
  }
};
struct Square {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return Mul{}(a, a);
  }
};
// ---- gradients that read the result ----

struct ReluGrad {
  template <class T>
  TAPEDECK_HD T operator()(T y, T dy) const {
    return y > T(0) ? dy : T(0);
  }
};
struct TanhGrad {
  template <class T>
  TAPEDECK_HD T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGrad {
  template <class T>
  TAPEDECK_HD T operator()(T y, T dy) const {
    return dy * (y * (T(1) - y));
  }
};

// ---- comparisons and logic, to bytes ----

struct Equal {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    return a >= b;
  }
};
struct LogicalAnd {
  TAPEDECK_HD std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return (a != 0) & (b != 0); }
};
struct LogicalOr {
  TAPEDECK_HD std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return (a != 0) | (b != 0); }
};
struct LogicalNot {
  TAPEDECK_HD std::uint8_t operator()(std::uint8_t a) const { return a == 0; }
};

struct Where {
  template <class T>
  TAPEDECK_HD T operator()(std::uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};

// ---- casts ----

// Casts between numbers. A float becomes an integer by truncation and saturation, and NaN becomes 0. An integer that becomes a
// narrower integer wraps around. All other casts round to nearest. bool shares its C++ type with u8, and has its own casts
// below.
template <class To>
struct Cast {
  template <class From>
  TAPEDECK_HD To operator()(From x) const {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      const From lowest = static_cast<From>(std::numeric_limits<To>::lowest());  // exact: this is 0 or a power of two
      const From beyond = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
      if (!(x >= lowest)) return x != x ? To(0) : std::numeric_limits<To>::lowest();
      return x >= beyond ? std::numeric_limits<To>::max() : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};
struct ToBool {
  template <class From>
  TAPEDECK_HD std::uint8_t operator()(From x) const {
    return x != From(0);
  }
};
template <class To>
struct FromBool {
  TAPEDECK_HD To operator()(std::uint8_t x) const { return static_cast<To>(x != 0); }
};

}  // namespace tapedeck::kernels
