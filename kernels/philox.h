// Philox4x32-10 (Salmon et al., SC 2011): random numbers as a pure function of a key and a counter, the same on every device.
//
// A random op has an operand rng = i64[2] (seed, step) and an attribute `path` that names its stream. Its numbers come from
//   key     = 64 bits mixed from the seed and the FNV-1a hash of the path
//   counter = (block low, block high, step low, step high)
// Every block gives four 32-bit words. An f32 draw uses one word per element: element i takes word i % 4 of block i / 4.
// An f64 draw uses two: element i takes words 2 (i % 2) and 2 (i % 2) + 1 of block i / 2, the low word first.
//   uniform: the top 24 (f32) or 53 (f64) bits as a fraction in [0, 1)
//   normal:  Box-Muller; elements 2j and 2j + 1 are the cosine and the sine of one pair of uniforms, in the order of their
//   words dropout: one word per element for every type, so that the mask depends on the shape alone
// An integer below a bound uses two words per element, like an f64 draw: the high 64 bits of the product of these 64 bits and
// the bound. Logarithm, sine and cosine are polynomials of this file: the bits of a draw do not depend on a math library.
#pragma once

#include <tapedeck/kernels/scalar.h>

#include <cstdint>
#include <string_view>

namespace tapedeck::kernels {

struct PhiloxBlock {
  std::uint32_t word[4];
};
struct PhiloxKey {
  std::uint32_t low;
  std::uint32_t high;
};

inline constexpr int kPhiloxRounds = 10;

TAPEDECK_HD inline PhiloxKey next_key(PhiloxKey key) { return {key.low + 0x9E3779B9u, key.high + 0xBB67AE85u}; }

TAPEDECK_HD inline PhiloxBlock philox_round(PhiloxBlock counter, PhiloxKey key) {
  const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.word[0];
  const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
  return {{static_cast<std::uint32_t>(p1 >> 32) ^ counter.word[1] ^ key.low, static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ counter.word[3] ^ key.high, static_cast<std::uint32_t>(p0)}};
}

TAPEDECK_HD inline PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round, key = next_key(key)) counter = philox_round(counter, key);
  return counter;
}

// The mixing function of SplitMix64 (Steele, Lea and Flood, 2014).
TAPEDECK_HD inline std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The hash FNV-1a of a text, 64 bits.
inline std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// One stream of random numbers: the key made from seed and path, and the step.
struct RandomStream {
  PhiloxKey key;
  std::uint64_t step;

  TAPEDECK_HD PhiloxBlock counter(std::uint64_t index) const {
    return {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(step),
             static_cast<std::uint32_t>(step >> 32)}};
  }
  TAPEDECK_HD PhiloxBlock block(std::uint64_t index) const { return philox(counter(index), key); }
};

// The stream for a seed, a step and a path.
inline RandomStream random_stream(std::int64_t seed, std::int64_t step, std::string_view path) {
  const std::uint64_t key = splitmix64(splitmix64(static_cast<std::uint64_t>(seed)) ^ fnv1a64(path));
  return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}, static_cast<std::uint64_t>(step)};
}

// A number in [0, 1) from the top 24 bits of one word (f32), or from the top 53 bits of two words (f64).
TAPEDECK_HD inline float uniform_f32(std::uint32_t word) { return static_cast<float>(word >> 8) * 5.9604644775390625e-8f; }
TAPEDECK_HD inline double uniform_f64(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 1.1102230246251565e-16;
}

// An integer in [0, bound). The probabilities of any two results differ by at most 2^-64.
TAPEDECK_HD inline std::uint64_t below(std::uint32_t low, std::uint32_t high, std::uint64_t bound) {
  const std::uint64_t bound_low = bound & 0xFFFFFFFFu, bound_high = bound >> 32;
  const std::uint64_t middle = std::uint64_t{high} * bound_low + (std::uint64_t{low} * bound_low >> 32);
  const std::uint64_t carry = (middle & 0xFFFFFFFFu) + std::uint64_t{low} * bound_high;
  return std::uint64_t{high} * bound_high + (middle >> 32) + (carry >> 32);
}

// log x for a normal x in (0, 1]. The polynomial is that of fdlibm.
TAPEDECK_HD inline double log_f64(double x) {
  const std::uint64_t shifted = double_bits(x) - 0x3FE6A09E00000000u;  // exponents count from about sqrt(1/2)
  const double n = static_cast<double>(static_cast<std::int64_t>(shifted) >> 52);
  const double f = bits_double((shifted & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E00000000u) - 1.0;
  const double s = f / (2.0 + f), z = s * s, w = z * z;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f;
  return n * 6.93147180369123816490e-01 - ((half - (s * (half + (even + odd)) + n * 1.90821492927058770002e-10)) - f);
}

// cos and sin of 2 pi u for u in [0, 1). An exact reduction leaves at most an eighth of a turn on either side of the nearest
// quarter turn; two short polynomials do the rest.
template <class T>
TAPEDECK_HD inline void cos_sin_turn(T u, T* cosine, T* sine) {
  const T quarters = u * T(4) + T(0.5);
  const std::int32_t quadrant = static_cast<std::int32_t>(quarters);
  const T x = (u - static_cast<T>(quadrant) * T(0.25)) * T(6.283185307179586476925);
  const T z = x * x;
  T s, c;
  if constexpr (std::is_same_v<T, float>) {
    s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
    c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  } else {
    s = (((((1.58969099521155010221e-10 * z - 2.50507602534068634195e-08) * z + 2.75573137070700676789e-06) * z -
           1.98412698298579493134e-04) *
              z +
          8.33333333332248946124e-03) *
             z -
         1.66666666666666324348e-01) *
            z * x +
        x;
    c = (((((-1.13596475577881948265e-11 * z + 2.08757232129817482790e-09) * z - 2.75573143513906633035e-07) * z +
           2.48015872894767294178e-05) *
              z -
          1.38888888888741095749e-03) *
             z +
         4.16666666666666019037e-02) *
            z * z -
        0.5 * z + 1.0;
  }
  const bool swapped = (quadrant & 1) != 0;
  const T a = swapped ? s : c, b = swapped ? c : s;
  *cosine = ((quadrant + 1) & 2) != 0 ? -a : a;
  *sine = (quadrant & 2) != 0 ? -b : b;
}

// Two independent standard normal numbers from two uniforms in [0, 1).
TAPEDECK_HD inline void box_muller(float u, float v, float* first, float* second) {
  const float radius = std::sqrt(-2.0f * log_f32(1.0f - u));
  cos_sin_turn(v, first, second);
  *first *= radius;
  *second *= radius;
}
TAPEDECK_HD inline void box_muller(double u, double v, double* first, double* second) {
  const double radius = std::sqrt(-2.0 * log_f64(1.0 - u));
  cos_sin_turn(v, first, second);
  *first *= radius;
  *second *= radius;
}

}  // namespace tapedeck::kernels
