// Scalar functors of the mathematical functions, written once for the CPU, CUDA and fused kernels. They follow the rules of
// scalar.h.
//
// The f32 functions are polynomials of this file. They select instead of branch, so that loops over them vectorise and every
// device gives the same bits. Most are within 2 ulp; tests/kernels/scalar_functions_test.cpp states the bound of each. std::fma
// is exact everywhere, also on a processor without the instruction. The f64 versions call std:: functions.
//
// The polynomial of sin, cos, tan, lgamma or digamma covers most operands, but not all. Such a functor has two more members:
// rare(x) says that x is not covered, and usual(x) is the polynomial. A call of the functor gives the right result for every x.
// A loop that vectorises calls usual() where no operand is rare (cpu/tile_loops.h).
#pragma once

#include <tapedeck/kernels/scalar.h>

#include <math.h>  // lgamma_r, which unlike std::lgamma writes no global

namespace tapedeck::kernels {

// ---- exponentials ----

TAPEDECK_HD_INLINE float magnitude_f32(float x) { return bits_float(float_bits(x) & 0x7FFFFFFFu); }
TAPEDECK_HD_INLINE float with_sign_of_f32(float magnitude, float x) {
  return bits_float((float_bits(magnitude) & 0x7FFFFFFFu) | (float_bits(x) & 0x80000000u));
}

// e^x = 2^n (1 + p) with |p| < 0.42.
struct ExpParts {
  float p;
  std::int32_t n;
};
TAPEDECK_HD_INLINE ExpParts split_exp_f32(float x) {
  const float clamped = x > 90.0f ? 90.0f : (x < -105.0f ? -105.0f : x);  // a NaN stays NaN
  const float shifter = 12582912.0f;                                      // 1.5 * 2^23: adding it rounds to an integer
  const float t = std::fma(clamped, 1.44269504088896341f, shifter);
  const float nf = t - shifter;
  const std::int32_t n = static_cast<std::int32_t>(float_bits(t) - 0x4B400000u);
  const float r = std::fma(nf, 2.12194440e-4f, std::fma(nf, -0.693359375f, clamped));
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  return {std::fma(p, r * r, r), n > 130 ? 130 : (n < -152 ? -152 : n)};  // only a NaN gives n outside this range
}
// x 2^n, applied as two factors, so that denormal results and overflow come out right.
TAPEDECK_HD_INLINE float scale_f32(float x, std::int32_t n) {
  const std::int32_t half = n >> 1;
  return x * power_of_two(half) * power_of_two(n - half);
}

// e^x / 2. It overflows only where sinh and cosh overflow.
TAPEDECK_HD_INLINE float half_exp_f32(float x) {
  const ExpParts e = split_exp_f32(x);
  return scale_f32(e.p + 1.0f, e.n - 1);
}

TAPEDECK_HD_INLINE float expm1_f32(float x) {
  const ExpParts e = split_exp_f32(x < -18.0f ? -18.0f : x);
  const std::int32_t down = e.n > 126 ? 126 : e.n;
  const float y = scale_f32(e.p + (1.0f - power_of_two(-down)), e.n);
  return x == 0.0f ? x : y;
}

TAPEDECK_HD_INLINE float exp2_f32(float x) {
  const float clamped = x > 129.0f ? 129.0f : (x < -151.0f ? -151.0f : x);
  const float shifter = 12582912.0f;
  const float t = clamped + shifter;
  const float r = clamped - (t - shifter);
  const std::int32_t n = static_cast<std::int32_t>(float_bits(t) - 0x4B400000u);
  float p = 1.535336188319500e-4f;
  p = std::fma(p, r, 1.339887440266574e-3f);
  p = std::fma(p, r, 9.618437357674640e-3f);
  p = std::fma(p, r, 5.550332471162809e-2f);
  p = std::fma(p, r, 2.402264791363012e-1f);
  p = std::fma(p, r, 6.931472028550421e-1f);
  return scale_f32(std::fma(p, r, 1.0f), n > 129 ? 129 : (n < -151 ? -151 : n));
}

TAPEDECK_HD_INLINE float sinh_f32(float x) {
  const float a = magnitude_f32(x), z = a * a;
  float p = 2.03721912945e-4f;
  p = std::fma(p, z, 8.33028376239e-3f);
  p = std::fma(p, z, 1.66667160211e-1f);
  const float near_zero = std::fma(p * z, a, a);
  const float e = half_exp_f32(a);
  const float y = a < 1.0f ? near_zero : e - 0.25f / e;
  return x == x ? with_sign_of_f32(y, x) : x;
}
TAPEDECK_HD_INLINE float cosh_f32(float x) {
  const float e = half_exp_f32(magnitude_f32(x));
  return e + 0.25f / e;
}

// ---- logarithms ----

TAPEDECK_HD_INLINE float log2_f32(float x) {
  const LogParts l = split_log_f32(x);
  const float rest = 0.44269504088896340736f;  // log2(e) - 1
  return log_edges_f32(x, (((l.y * rest + l.m * rest) + l.y) + l.m) + l.n);
}
TAPEDECK_HD_INLINE float log10_f32(float x) {
  const LogParts l = split_log_f32(x);
  float y = (l.m + l.y) * 7.00731903251827651129e-4f;  // log10(e) and log10(2), each as the sum of two constants
  y = y + l.n * 2.48745663981195213739e-4f;
  y = y + l.y * 4.3359375e-1f;
  y = y + l.m * 4.3359375e-1f;
  return log_edges_f32(x, y + l.n * 3.0078125e-1f);
}

// log(1 + x) = log(u) + lost / u, where u is 1 + x rounded and `lost` is the rounding error of u.
TAPEDECK_HD_INLINE float log1p_f32(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;
  const LogParts l = split_log_f32(u);
  float y = l.y + l.n * -2.12194440e-4f + lost;
  y = (l.m + y) + l.n * 0.693359375f;
  y = log_edges_f32(u, y);
  return x == 0.0f ? x : y;
}

TAPEDECK_HD_INLINE float asinh_f32(float x) {
  const float a = magnitude_f32(x);
  const bool big = a > 1e8f;
  const float near_zero = a + a * a / (1.0f + std::sqrt(a * a + 1.0f));
  const float y = log1p_f32(big ? a : near_zero) + (big ? 0.693147181f : 0.0f);
  return x == x ? with_sign_of_f32(y, x) : x;
}
TAPEDECK_HD_INLINE float acosh_f32(float x) {
  const float t = x - 1.0f;
  const bool big = x > 1e8f;
  const float y = log1p_f32(big ? x : t + std::sqrt(t + t + t * t)) + (big ? 0.693147181f : 0.0f);
  return x < 1.0f ? std::numeric_limits<float>::quiet_NaN() : y;
}
TAPEDECK_HD_INLINE float atanh_f32(float x) {
  const float a = magnitude_f32(x);
  const float y = 0.5f * log1p_f32((a + a) / (1.0f - a));
  return a <= 1.0f ? with_sign_of_f32(y, x) : y;
}

// ---- trigonometric functions ----

// x less the nearest multiple of pi/2: rest - low, in the quadrant n. For |x| <= 1e5. A zero keeps its sign.
struct Quadrant {
  float rest, low;
  std::uint32_t n;
};
TAPEDECK_HD_INLINE Quadrant quadrant_f32(float x) {
  const float shifter = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float t = std::fma(x, 0.636619772f, shifter);
  const float n = t - shifter;
  const float p1 = 1.57079625f, p2 = 7.54979013e-8f, p3 = -1.71512451e-15f;  // their sum is pi/2
  const float near = std::fma(n, -p1, x);                                    // exact
  const float step = n * p2, rest = near - step;
  const float lost = ((rest - near) + step) + std::fma(n, p2, -step);  // the rounding errors of rest and of step
  return {rest, std::fma(n, p3, lost), float_bits(t)};
}
TAPEDECK_HD_INLINE bool beyond_quadrants_f32(float x) { return !(magnitude_f32(x) <= 1e5f); }

// The sine of the angle that is `quarters` quarter turns beyond x.
TAPEDECK_HD_INLINE float sine_f32(float x, std::uint32_t quarters) {
  const Quadrant q = quadrant_f32(x);
  const float r = q.rest, z = r * r;
  float s = -1.951521845e-4f;
  s = std::fma(s, z, 8.332160302e-3f);
  s = std::fma(s, z, -1.666665524e-1f);
  const float sine = r - (q.low - r * z * s);
  float c = 2.443308404e-5f;
  c = std::fma(c, z, -1.388731529e-3f);
  c = std::fma(c, z, 4.166664556e-2f);
  const float half = 0.5f * z, rounded = 1.0f - half;
  const float cosine = rounded + (((1.0f - rounded) - half) + std::fma(z * z, c, r * q.low));
  const std::uint32_t n = q.n + quarters;
  return bits_float(float_bits(n & 1 ? cosine : sine) ^ ((n & 2) << 30));
}
TAPEDECK_HD_INLINE float sin_f32(float x) { return sine_f32(x, 0); }
TAPEDECK_HD_INLINE float cos_f32(float x) { return sine_f32(x, 1); }
TAPEDECK_HD_INLINE float tan_f32(float x) {
  const Quadrant q = quadrant_f32(x);
  const float r = q.rest, z = r * r;
  float p = 9.387641214e-3f;
  p = std::fma(p, z, 3.116196720e-3f);
  p = std::fma(p, z, 2.443241887e-2f);
  p = std::fma(p, z, 5.341065302e-2f);
  p = std::fma(p, z, 1.333880723e-1f);
  p = std::fma(p, z, 3.333315551e-1f);
  const float y = r - (q.low - r * z * p);
  const float turned = -1.0f / y;
  return q.n & 1 ? turned : y;
}

// ---- inverse trigonometric functions ----

// The angle of the point (x, y). One division: the smaller magnitude over the larger, turned by pi/4 if that gives a smaller
// quotient.
TAPEDECK_HD_INLINE float atan2_f32(float y, float x) {
  const float ay = magnitude_f32(y), ax = magnitude_f32(x);
  const bool steep = ay > ax;
  const float scale = (steep ? ay : ax) > 8.5e37f ? 0.25f : 1.0f;  // keeps low + high from overflowing
  const float less = (steep ? ax : ay) * scale, more = (steep ? ay : ax) * scale;
  const bool infinite = less == std::numeric_limits<float>::infinity();  // then x and y are both infinite
  const float low = infinite ? 1.0f : less, high = infinite ? 1.0f : more;
  const bool turned = low > 0.41421356f * high;
  const float top = turned ? low - high : low;
  const float bottom = turned ? low + high : (high == 0.0f ? 1.0f : high);
  const float t = top / bottom, z = t * t;
  float p = 8.05374449538e-2f;
  p = std::fma(p, z, -1.38776856032e-1f);
  p = std::fma(p, z, 1.99777106478e-1f);
  p = std::fma(p, z, -3.33329491539e-1f);
  float a = p * z * t + t;
  a = turned ? 0.785398163f + (a - 2.18556941e-8f) : a;
  a = steep ? 1.57079637f - (a + 4.37113883e-8f) : a;
  a = float_bits(x) >> 31 ? 3.14159274f - (a + 8.74227766e-8f) : a;
  return x == x && y == y ? with_sign_of_f32(a, y) : x + y;
}
TAPEDECK_HD_INLINE float atan_f32(float x) { return atan2_f32(x, 1.0f); }

// asin(s) / s - 1 as a polynomial in z = s^2 <= 1/4.
TAPEDECK_HD_INLINE float asin_excess_f32(float z) {
  float p = 4.2163199048e-2f;
  p = std::fma(p, z, 2.4181311049e-2f);
  p = std::fma(p, z, 4.5470025998e-2f);
  p = std::fma(p, z, 7.4953002686e-2f);
  p = std::fma(p, z, 1.6666752422e-1f);
  return p * z;
}
TAPEDECK_HD_INLINE float asin_f32(float x) {
  const float a = magnitude_f32(x);
  const bool far = a > 0.5f;
  const float z = far ? 0.5f * (1.0f - a) : a * a;  // |x| > 1 gives a negative z, and its square root is NaN
  const float s = far ? std::sqrt(z) : a;
  const float half = asin_excess_f32(z) * s + s;
  const float y = far ? 1.57079637f - (half + half + 4.37113883e-8f) : half;
  return y == y ? with_sign_of_f32(y, x) : y;
}
TAPEDECK_HD_INLINE float acos_f32(float x) {
  const float a = magnitude_f32(x);
  const bool far = a > 0.5f;
  const float z = far ? 0.5f * (1.0f - a) : a * a;
  const float s = far ? std::sqrt(z) : x;
  const float half = asin_excess_f32(z) * s + s;
  const float near_end = x > 0.0f ? half + half : 3.14159274f - (half + half + 8.74227766e-8f);
  return far ? near_end : 1.57079637f - (half + 4.37113883e-8f);
}

// ---- error functions ----

// e^(a^2) erfc(a) for 0 <= a <= 11: a smooth, slowly changing function (Shepherd and Laframboise, 1981).
TAPEDECK_HD_INLINE float scaled_erfc_f32(float a) {
  const float q = (a - 2.0f) / (a + 2.0f);
  float p = -4.01139259e-4f;
  p = std::fma(p, q, -1.23075210e-3f);
  p = std::fma(p, q, 1.31355342e-3f);
  p = std::fma(p, q, 8.63227434e-3f);
  p = std::fma(p, q, -8.05991981e-3f);
  p = std::fma(p, q, -5.42046614e-2f);
  p = std::fma(p, q, 1.64055392e-1f);
  p = std::fma(p, q, -1.66031361e-1f);
  p = std::fma(p, q, -9.27639827e-2f);
  p = std::fma(p, q, 2.76978403e-1f);
  return (1.0f + p) / (1.0f + (a + a));
}
// e^(-scale x^2) for scale 1 or 1/2, corrected for the rounding error of x^2.
TAPEDECK_HD_INLINE float bell_f32(float x, float scale) {
  const float s = x * x;
  const float e = exp_f32(-scale * s);
  return e - e * (scale * std::fma(x, x, -s));
}

TAPEDECK_HD_INLINE float erfc_f32(float x) {
  const float magnitude = magnitude_f32(x), a = magnitude > 11.0f ? 11.0f : magnitude;
  const float tail = scaled_erfc_f32(a) * bell_f32(a, 1.0f);
  return x < 0.0f ? 2.0f - tail : tail;
}

// erf(x) is an odd polynomial near zero, and 1 - e^(a polynomial) elsewhere. The exponent is computed first.
TAPEDECK_HD_INLINE float erf_exponent_f32(float x) {
  const float magnitude = magnitude_f32(x), a = magnitude > 5.0f ? 5.0f : magnitude;
  float r = -1.72853470e-5f;
  r = std::fma(r, a, 3.83197126e-4f);
  r = std::fma(r, a, -3.88396438e-3f);
  r = std::fma(r, a, 2.42546219e-2f);
  r = std::fma(r, a, -1.06777877e-1f);
  r = std::fma(r, a, -6.34846687e-1f);
  r = std::fma(r, a, -1.28717512e-1f);
  return r * a - a;
}
TAPEDECK_HD_INLINE float erf_from_exponent_f32(float exponent, float x) {
  const float magnitude = magnitude_f32(x), a = magnitude > 5.0f ? 5.0f : magnitude;
  const float z = a * a;
  float p = -5.96761703e-4f;
  p = std::fma(p, z, 4.99119423e-3f);
  p = std::fma(p, z, -2.67681349e-2f);
  p = std::fma(p, z, 1.12819925e-1f);
  p = std::fma(p, z, -3.76125336e-1f);
  p = std::fma(p, z, 1.28379166e-1f);
  const float near_zero = p * a + a;
  const float far_away = 1.0f - exp_f32(exponent);
  return with_sign_of_f32(a < 0.927734375f ? near_zero : far_away, x);
}
TAPEDECK_HD_INLINE float erf_f32(float x) { return erf_from_exponent_f32(erf_exponent_f32(x), x); }

// After Giles, "Approximating the erfinv function" (2010): a polynomial in w = -log(1 - x^2), or in sqrt(w) for large w.
TAPEDECK_HD_INLINE float erfinv_f32(float x) {
  const float w = -log_f32(std::fma(-x, x, 1.0f));
  const float c = w - 2.5f;
  float p = 2.81022636e-8f;
  p = std::fma(p, c, 3.43273939e-7f);
  p = std::fma(p, c, -3.5233877e-6f);
  p = std::fma(p, c, -4.39150654e-6f);
  p = std::fma(p, c, 2.1858087e-4f);
  p = std::fma(p, c, -1.25372503e-3f);
  p = std::fma(p, c, -4.17768164e-3f);
  p = std::fma(p, c, 2.46640727e-1f);
  p = std::fma(p, c, 1.50140941f);
  const float t = std::sqrt(w) - 3.0f;
  float r = -2.00214257e-4f;
  r = std::fma(r, t, 1.00950558e-4f);
  r = std::fma(r, t, 1.34934322e-3f);
  r = std::fma(r, t, -3.67342844e-3f);
  r = std::fma(r, t, 5.73950773e-3f);
  r = std::fma(r, t, -7.6224613e-3f);
  r = std::fma(r, t, 9.43887047e-3f);
  r = std::fma(r, t, 1.00167406f);
  r = std::fma(r, t, 2.83297682f);
  const float y = (w < 5.0f ? p : r) * x;
  return magnitude_f32(x) == 1.0f ? x * std::numeric_limits<float>::infinity() : y;
}

// A first guess within 1 %, then four cubic steps. The steps solve for erfc where erf is flat.
TAPEDECK_HD inline double erfinv_f64(double x) {
  const double a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? x * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  const double log_rest = std::log1p(-a * a), k = 4.3307467508 + 0.5 * log_rest;  // 2 / (pi 0.147)
  double y = std::sqrt(std::sqrt(k * k - log_rest / 0.147) - k);
  for (int step = 0; step < 4; ++step) {
    const double off = a > 0.5 ? (1 - a) - std::erfc(y) : std::erf(y) - a;
    const double newton = off / (1.12837916709551257390 * std::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return a < 1e-9 ? x * 0.88622692545275801365 : std::copysign(y, x);
}

// ---- the normal distribution: cdf(x) and e^(-x^2/2) together ----

template <class T>
struct Normal {
  T cdf, bell;
};
TAPEDECK_HD_INLINE Normal<float> normal_of(float x) {
  const float magnitude = magnitude_f32(x), a = magnitude > 15.0f ? 15.0f : magnitude;
  const float bell = bell_f32(a, 0.5f);
  const float tail = 0.5f * scaled_erfc_f32(a * 0.707106781f) * bell;
  return {x < 0.0f ? tail : 1.0f - tail, bell};
}
TAPEDECK_HD inline Normal<double> normal_of(double x) {
  return {0.5 * std::erfc(x * -0.70710678118654752440), std::exp(-0.5 * x * x)};
}

// ---- the gamma function's family, in double for every type ----

TAPEDECK_HD inline double lgamma_f64(double x) {
#ifdef __CUDA_ARCH__
  return ::lgamma(x);
#else
  int sign = 0;
  return ::lgamma_r(x, &sign);
#endif
}

// The recurrence raises x to 10 or more, and the asymptotic series follows. A negative x is reflected first. A pole gives NaN,
// but digamma(+0) = -inf and digamma(-0) = +inf.
TAPEDECK_HD inline double digamma_f64(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double y = 0;
  if (x < 0) {
    const double fraction = x - std::rint(x);
    if (!(fraction != 0)) return std::numeric_limits<double>::quiet_NaN();
    y = -3.14159265358979323846 / std::tan(3.14159265358979323846 * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) y -= 1 / x;
  const double z = 1 / (x * x);
  double s = 1.0 / 12;
  s = s * z - 691.0 / 32760;
  s = s * z + 1.0 / 132;
  s = s * z - 1.0 / 240;
  s = s * z + 1.0 / 252;
  s = s * z - 1.0 / 120;
  s = s * z + 1.0 / 12;
  return y + (std::log(x) - 0.5 / x - s * z);
}

inline constexpr int kMaxPolygamma = 20;

// The n-th derivative of cot(pi f) with respect to f, divided by pi^n. The derivative is a polynomial in cot, because
// cot' = -(1 + cot^2); c holds its coefficients.
TAPEDECK_HD inline double cotangent_derivative(int n, double f) {
  double c[kMaxPolygamma + 2] = {0, 1};
  for (int k = 0; k < n; ++k) {
    double next[kMaxPolygamma + 2] = {};
    for (int i = 1; i <= k + 1; ++i) {
      next[i - 1] -= i * c[i];
      next[i + 1] -= i * c[i];
    }
    for (int i = 0; i <= k + 2; ++i) c[i] = next[i];
  }
  const double cot = 1 / std::tan(3.14159265358979323846 * f);
  double y = 0;
  for (int i = n + 1; i >= 0; --i) y = y * cot + c[i];
  return y;
}

// For 1 <= n <= kMaxPolygamma. The recurrence raises x to 10 + n or more, and the sum formula of Euler and Maclaurin follows. A
// negative x is reflected.
TAPEDECK_HD inline double polygamma_f64(int n, double x) {
  const double sign = n % 2 ? 1 : -1;
  double factorial = 1, reflected = 0;
  for (int k = 2; k <= n; ++k) factorial *= k;
  const bool negative = x <= 0;
  if (negative) {
    const double fraction = x - std::rint(x);
    if (!(fraction != 0))
      return n % 2 && fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    reflected = -std::pow(3.14159265358979323846, n + 1) * cotangent_derivative(n, fraction);
    x = 1 - x;
  }
  double zeta = 0;
  for (; x < 10 + n; x += 1) zeta += std::pow(x, -(n + 1));
  // B_2j / (2j)!
  const double terms[] = {8.3333333333333333e-2,  -1.3888888888888889e-3,  3.3068783068783069e-5,  -8.2671957671957672e-7,
                          2.0876756987868099e-8,  -5.2841901386874932e-10, 1.3382536530684679e-11, -3.3896802963225829e-13,
                          8.5860620562778446e-15, -2.1748686985580619e-16};
  double power = std::pow(x, -n);
  zeta += power / n;
  power /= x;
  zeta += power * 0.5;
  double rising = n + 1;
  power /= x;
  for (int j = 0; j < 10; ++j) {
    zeta += terms[j] * rising * power;
    rising *= (n + 2.0 * j + 2) * (n + 2.0 * j + 3);
    power /= x * x;
  }
  const double y = sign * factorial * zeta;
  return negative ? (n % 2 ? -y : y) + reflected : y;
}

// lgamma(x) and digamma(x) for finite x > 0. Below 3 they are polynomials in t = (y - 3/2) / (y + 3/2) for y = x or, below 3/4,
// y = x + 1, times a factor that is 0 where the function is 0. From 3 on they are Stirling's series.
struct GammaParts {
  bool tiny, small;              // x < 3/4, x < 3
  float t, inverse, log, log_1;  // the latter two are log(x) and log(x) - 1
};
TAPEDECK_HD_INLINE GammaParts gamma_parts_f32(float x) {
  const bool tiny = x < 0.75f;
  const float t = (x - (tiny ? 0.5f : 1.5f)) / (x + (tiny ? 2.5f : 1.5f));
  const LogParts l = split_log_f32(x);
  const float low = l.m + (l.y + l.n * -2.12194440e-4f), high = l.n * 0.693359375f;
  return {tiny, x < 3.0f, t, 1.0f / x, low + high, low + (high - 1.0f)};
}
TAPEDECK_HD_INLINE float lgamma_f32(float x) {
  const GammaParts g = gamma_parts_f32(x);
  float p = -6.796074659e-2f;
  p = std::fma(p, g.t, 6.481293589e-2f);
  p = std::fma(p, g.t, -6.612159312e-2f);
  p = std::fma(p, g.t, 6.240140274e-2f);
  p = std::fma(p, g.t, -9.327892959e-2f);
  p = std::fma(p, g.t, 8.536387980e-2f);
  p = std::fma(p, g.t, -1.508025229e-1f);
  p = std::fma(p, g.t, 1.283220947e-1f);
  p = std::fma(p, g.t, -4.378796816e-1f);
  p = std::fma(p, g.t, 4.831289649e-1f);
  const float u = g.tiny ? x : x - 1.0f;
  const float near = (g.tiny ? -g.log : 0.0f) - u * (1.0f - u) * p;  // +0 for 1 and for 2
  const float z = g.inverse * g.inverse;
  float w = -4.416136944e-4f;
  w = std::fma(w, z, 7.822102634e-4f);
  w = std::fma(w, z, -2.777445596e-3f);
  w = std::fma(w, z, 8.333332837e-2f);
  const float far = std::fma(x - 0.5f, g.log_1, 0.418938547f + w * g.inverse);
  return g.small ? near : far;
}
TAPEDECK_HD_INLINE float digamma_f32(float x) {
  const GammaParts g = gamma_parts_f32(x);
  float p = 1.226689816f;
  p = std::fma(p, g.t, -1.259764671f);
  p = std::fma(p, g.t, 8.739469647e-1f);
  p = std::fma(p, g.t, -8.775184751e-1f);
  p = std::fma(p, g.t, 9.056820273e-1f);
  p = std::fma(p, g.t, -9.257177114e-1f);
  p = std::fma(p, g.t, 8.970384598e-1f);
  p = std::fma(p, g.t, -9.480094910e-1f);
  p = std::fma(p, g.t, 8.939999342e-1f);
  p = std::fma(p, g.t, -1.270882487f);
  p = std::fma(p, g.t, 9.510558844e-1f);
  const float from_root = (x - (g.tiny ? 0.46163213f : 1.46163213f)) - 1.24381501e-8f;
  const float near = from_root * p - (g.tiny ? g.inverse : 0.0f);
  const float z = g.inverse * g.inverse;
  float v = -2.781801624e-3f;
  v = std::fma(v, z, 3.856001189e-3f);
  v = std::fma(v, z, -8.329498582e-3f);
  v = std::fma(v, z, 8.333329111e-2f);
  const float far = g.log - (0.5f * g.inverse + z * v);
  return g.small ? near : far;
}
TAPEDECK_HD_INLINE bool beyond_gamma_f32(float x) { return !(x > 0.0f) | (x == std::numeric_limits<float>::infinity()); }

// ---- functors of one operand ----

#define TAPEDECK_FUNCTION(Name, f)               \
  struct Name {                                  \
    template <class T>                           \
    TAPEDECK_HD_INLINE T operator()(T x) const { \
      if constexpr (std::is_same_v<T, float>)    \
        return f##_f32(x);                       \
      else                                       \
        return std::f(x);                        \
    }                                            \
  };
TAPEDECK_FUNCTION(Exp2, exp2)
TAPEDECK_FUNCTION(Expm1, expm1)
TAPEDECK_FUNCTION(Log2, log2)
TAPEDECK_FUNCTION(Log10, log10)
TAPEDECK_FUNCTION(Log1p, log1p)
TAPEDECK_FUNCTION(Asin, asin)
TAPEDECK_FUNCTION(Acos, acos)
TAPEDECK_FUNCTION(Atan, atan)
TAPEDECK_FUNCTION(Sinh, sinh)
TAPEDECK_FUNCTION(Cosh, cosh)
TAPEDECK_FUNCTION(Asinh, asinh)
TAPEDECK_FUNCTION(Acosh, acosh)
TAPEDECK_FUNCTION(Atanh, atanh)
TAPEDECK_FUNCTION(Erfc, erfc)
#undef TAPEDECK_FUNCTION

struct Erf {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>)
      return erf_f32(x);
    else
      return std::erf(x);
  }
  TAPEDECK_HD_INLINE float begin(float x) const { return erf_exponent_f32(x); }
  TAPEDECK_HD_INLINE float finish(float exponent, float x) const { return erf_from_exponent_f32(exponent, x); }
};

#define TAPEDECK_USUAL_FUNCTION(Name, f, beyond, f64)                                  \
  struct Name {                                                                        \
    TAPEDECK_HD_INLINE bool rare(float x) const { return beyond(x); }                  \
    TAPEDECK_HD_INLINE float usual(float x) const { return f##_f32(x); }               \
    TAPEDECK_HD float operator()(float x) const {                                      \
      return beyond(x) ? static_cast<float>(f64(static_cast<double>(x))) : f##_f32(x); \
    }                                                                                  \
    TAPEDECK_HD double operator()(double x) const { return f64(x); }                   \
  };
TAPEDECK_USUAL_FUNCTION(Sin, sin, beyond_quadrants_f32, std::sin)
TAPEDECK_USUAL_FUNCTION(Cos, cos, beyond_quadrants_f32, std::cos)
TAPEDECK_USUAL_FUNCTION(Tan, tan, beyond_quadrants_f32, std::tan)
TAPEDECK_USUAL_FUNCTION(Lgamma, lgamma, beyond_gamma_f32, lgamma_f64)
TAPEDECK_USUAL_FUNCTION(Digamma, digamma, beyond_gamma_f32, digamma_f64)
#undef TAPEDECK_USUAL_FUNCTION

struct Erfinv {
  TAPEDECK_HD_INLINE float operator()(float x) const { return erfinv_f32(x); }
  TAPEDECK_HD double operator()(double x) const { return erfinv_f64(x); }
};
struct Polygamma {
  int n;
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    return static_cast<T>(polygamma_f64(n, static_cast<double>(x)));
  }
};
struct Reciprocal {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    return T(1) / x;
  }
};

// Rounding. An integer stays as it is.
struct Floor {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::ceil(x);
  }
};
// Halves round to the even neighbour.
struct Round {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::rint(x);
  }
};
struct Trunc {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::trunc(x);
  }
};
// The fraction of x, with the sign of x. An infinity has the fraction 0.
struct Frac {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    const T whole = std::trunc(x);
    return whole == x ? std::copysign(T(0), x) : x - whole;
  }
};

struct IsNan {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return 0;
    else
      return std::fabs(x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return 1;
    else
      return std::fabs(x) < std::numeric_limits<T>::infinity();
  }
};

// Limits x to [low, high]; the bounds have the type T, and low <= high. NaN stays NaN.
template <class T>
struct Clamp {
  T low, high;
  TAPEDECK_HD T operator()(T x) const {
    const T least = low, most = high;  // local copies, so that the loop holds selects only
    const bool below = x<least, above = x> most;
    return above ? most : (below ? least : x);
  }
};
template <class T>
struct NanToNum {
  T nan, posinf, neginf;
  TAPEDECK_HD T operator()(T x) const {
    const T inf = std::numeric_limits<T>::infinity();
    const T y = x == inf ? posinf : (x == -inf ? neginf : x);
    return x == x ? y : nan;
  }
};

// ---- functors of two and three operands ----

// The remainder of an f32 division is exact in f32: a - b q is computed with one rounding, and its exact value is a float if q
// is the quotient rounded to an integer. Below 2^22 the rounded quotient is at most one too far from zero, and the remainder
// shows it by its sign. Other quotients, infinite divisors and NaN are rare.
struct UsualQuotient {
  TAPEDECK_HD_INLINE bool rare(float a, float b) const {
    const bool near = magnitude_f32(a / b) < 4194304.0f, finite = magnitude_f32(b) < std::numeric_limits<float>::infinity();
    return !(near & finite);
  }
};
TAPEDECK_HD_INLINE float usual_fmod_f32(float a, float b) {
  const float r = std::fma(-std::trunc(a / b), b, a);
  const float back = r + with_sign_of_f32(b, a);
  const bool nonzero = r != 0.0f, negative = r < 0.0f, below = a < 0.0f;
  return with_sign_of_f32((nonzero & (negative != below)) ? back : r, a);
}

// The remainder with the sign of b, as in Python. An integer divided by zero gives 0, and the kernel reports the fault.
struct Remainder : UsualQuotient {
  TAPEDECK_HD_INLINE float usual(float a, float b) const {
    const float r = std::fma(-std::floor(a / b), b, a);
    const bool nonzero = r != 0.0f, negative = r < 0.0f, below = b < 0.0f;
    return with_sign_of_f32((nonzero & (negative != below)) ? r + b : r, b);
  }
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
        const T r = static_cast<T>(a % b);
        return r != T(0) && (r < T(0)) != (b < T(0)) ? static_cast<T>(r + b) : r;
      } else {
        return static_cast<T>(a % b);
      }
    } else {
      if constexpr (std::is_same_v<T, float>) {
        if (!rare(a, b)) return usual(a, b);
      }
      const T r = std::fmod(a, b);
      if (r == T(0)) return std::copysign(T(0), b);
      return (r < T(0)) != (b < T(0)) ? r + b : r;
    }
  }
};
// The remainder with the sign of a, as in C.
struct Fmod : UsualQuotient {
  TAPEDECK_HD_INLINE float usual(float a, float b) const { return usual_fmod_f32(a, b); }
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return static_cast<T>(a % b);
    } else {
      if constexpr (std::is_same_v<T, float>) {
        if (!rare(a, b)) return usual(a, b);
      }
      return std::fmod(a, b);
    }
  }
};
// The floor of the exact quotient a / b, computed from the exact remainder.
struct FloorDivide : UsualQuotient {
  TAPEDECK_HD_INLINE float usual(float a, float b) const { return from_remainder(a, b, usual_fmod_f32(a, b)); }
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T q = Div{}(a, b);
      if constexpr (std::is_signed_v<T>) {
        if (b != T(0) && b != T(-1) && a % b != T(0) && (a < T(0)) != (b < T(0))) return static_cast<T>(q - 1);
      }
      return q;
    } else {
      if constexpr (std::is_same_v<T, float>) {
        if (!rare(a, b)) return usual(a, b);
      }
      return b == T(0) ? a / b : from_remainder(a, b, std::fmod(a, b));
    }
  }

 private:
  template <class T>
  TAPEDECK_HD_INLINE static T from_remainder(T a, T b, T r) {
    const T whole = (a - r) / b;
    const bool nonzero = r != T(0), negative = r < T(0), below = b < T(0);
    const T q = (nonzero & (negative != below)) ? whole - T(1) : whole;
    const T floored = std::floor(q), rounded = q - floored > T(0.5) ? floored + T(1) : floored;
    return q == T(0) ? std::copysign(T(0), a / b) : rounded;
  }
};
struct Atan2 {
  TAPEDECK_HD_INLINE float operator()(float a, float b) const { return atan2_f32(a, b); }
  TAPEDECK_HD double operator()(double a, double b) const { return std::atan2(a, b); }
};
struct Hypot {
  TAPEDECK_HD_INLINE float operator()(float a, float b) const {
    const double x = a, y = b;
    const float root = static_cast<float>(std::sqrt(x * x + y * y));
    const float inf = std::numeric_limits<float>::infinity();
    return magnitude_f32(a) == inf || magnitude_f32(b) == inf ? inf : root;
  }
  TAPEDECK_HD double operator()(double a, double b) const { return std::hypot(a, b); }
};
struct LogAddExp {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T a, T b) const {
    const T gap = std::fabs(a - b);  // NaN for equal infinities
    return sum(exp_of(-gap), a, b);
  }
  TAPEDECK_HD_INLINE float begin(float a, float b) const { return exp_of_minus_size_f32(a - b); }
  TAPEDECK_HD_INLINE float finish(float e, float a, float b) const { return sum(e, a, b); }

 private:
  template <class T>
  TAPEDECK_HD_INLINE static T sum(T e, T a, T b) {
    T y = Maximum{}(a, b);
    if constexpr (std::is_same_v<T, float>)
      y = y + log1p_unit_f32(e);
    else
      y = y + std::log1p(e);
    return a == b ? a + T(0.69314718055994530942) : y;
  }
};
struct CopySign {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
// a + weight (b - a), computed from the nearer end, so that weight 0 gives exactly a and weight 1 exactly b.
struct Lerp {
  template <class T>
  TAPEDECK_HD_INLINE T operator()(T a, T b, T weight) const {
    const T gap = b - a;
    return weight < T(0.5) ? a + weight * gap : b - gap * (T(1) - weight);
  }
};
struct IsClose {
  double rtol, atol;
  bool equal_nan;
  template <class T>
  TAPEDECK_HD std::uint8_t operator()(T a, T b) const {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    const bool near = std::fabs(x - y) <= atol + rtol * std::fabs(y);
    const bool finite = std::fabs(y) < std::numeric_limits<double>::infinity();
    return (a == b) | (near & finite) | (equal_nan & (a != a) & (b != b));
  }
};

// ---- bits of integers ----

struct BitwiseAnd {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseNot {
  template <class T>
  TAPEDECK_HD T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct LogicalXor {
  TAPEDECK_HD std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return (a != 0) != (b != 0); }
};
// A count of the width of T or more shifts all bits out. A negative count gives 0, and the kernel reports the fault.
struct LeftShift {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if (b < T(0) || b >= T(8 * sizeof(T))) return T(0);
    return static_cast<T>(static_cast<Wrap<T>>(a) << b);
  }
};
// A right shift of a negative number rounds down.
struct RightShift {
  template <class T>
  TAPEDECK_HD T operator()(T a, T b) const {
    if (b < T(0)) return T(0);
    if (b >= T(8 * sizeof(T))) return a < T(0) ? T(-1) : T(0);
    return static_cast<T>(a >> b);
  }
};

}  // namespace tapedeck::kernels
