// The loops over pairs of bf16 numbers (bf16_pairs.h), compiled for AVX-512 BF16 whatever the target of the build. A block of
// twelve rows by one panel keeps its sums in 24 registers.
#include <tapedeck/kernels/cpu/products/bf16_pairs.h>

#include <tapedeck/kernels/cpu/transpose.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TAPEDECK_BF16_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tapedeck::kernels::cpu {

#if defined(__x86_64__)

namespace {

Bf16Pair pair_at(const std::uint16_t* from, std::int64_t step, bool both) {
  return from[0] | static_cast<Bf16Pair>(both ? from[step] : 0) << 16;
}

constexpr std::uint32_t first_lanes(std::int64_t n) { return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1 : 0; }

// The places of the halves of 32 pairs in two registers: number i of the first, and number i of the second.
alignas(64) constexpr std::uint16_t kPairOrder[64] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                      8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47,
                                                      16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                      24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};

// Computes one row and at most 32 * kVectors columns, without panels. Lanes beyond the last column are zero.
template <int kVectors>
TAPEDECK_BF16_PAIRS void multiply_row(std::int64_t n, std::int64_t k, const char* a, std::int64_t pair_step,
                                      const std::uint16_t* right, std::int64_t row_stride, float* c, bool accumulate) {
  __m512 sums[kVectors][2];
  __mmask32 lanes[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    lanes[j] = first_lanes(n - 32 * j);
    for (int i = 0; i < 2; ++i) sums[j][i] = accumulate ? _mm512_loadu_ps(c + 32 * j + 16 * i) : _mm512_setzero_ps();
  }
  const __m512i first = _mm512_load_si512(kPairOrder), second = _mm512_load_si512(kPairOrder + 32);
  for (std::int64_t p = 0; 2 * p < k; ++p) {
    int pair;
    std::memcpy(&pair, a + p * pair_step, sizeof pair);
    const __m512bh left = (__m512bh)_mm512_set1_epi32(pair);
    const std::uint16_t* const row = right + 2 * p * row_stride;
    for (int j = 0; j < kVectors; ++j) {
      const __m512i low = _mm512_maskz_loadu_epi16(lanes[j], row + 32 * j);
      const __m512i high = _mm512_maskz_loadu_epi16(2 * p + 1 < k ? lanes[j] : 0, row + row_stride + 32 * j);
      sums[j][0] = _mm512_dpbf16_ps(sums[j][0], left, (__m512bh)_mm512_permutex2var_epi16(low, first, high));
      sums[j][1] = _mm512_dpbf16_ps(sums[j][1], left, (__m512bh)_mm512_permutex2var_epi16(low, second, high));
    }
  }
  for (int j = 0; j < kVectors; ++j)
    for (int i = 0; i < 2; ++i) _mm512_storeu_ps(c + 32 * j + 16 * i, sums[j][i]);
}

// Writes 32 pairs, of which those from n on are zero.
TAPEDECK_BF16_PAIRS void interleave_32(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high, Bf16Pair* to) {
  const __mmask32 lanes = first_lanes(n);
  const __m512i lows = _mm512_maskz_loadu_epi16(lanes, low);
  const __m512i highs = high ? _mm512_maskz_loadu_epi16(lanes, high) : _mm512_setzero_si512();
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(lows, _mm512_load_si512(kPairOrder), highs));
  _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(lows, _mm512_load_si512(kPairOrder + 32), highs));
}

// Packs one panel of columns whose elements lie one behind the other: eight columns by eight pairs at a time.
void pack_columns(std::int64_t k, std::int64_t n, const std::uint16_t* from, std::int64_t col_stride, Bf16Pair* to) {
  const std::int64_t full = k / 2 / 8 * 8;
  for (std::int64_t j = 0; j < n; j += 8) {
    const std::int64_t cols = std::min<std::int64_t>(8, n - j);
    for (std::int64_t p = 0; p < full; p += 8) {
      detail::Eight block[8] = {};
      for (std::int64_t i = 0; i < cols; ++i) std::memcpy(&block[i], from + (j + i) * col_stride + 2 * p, 32);
      detail::transpose_eight(block);
      for (std::int64_t i = 0; i < 8; ++i) std::memcpy(to + (p + i) * kBf16Panel + j, &block[i], 32);
    }
    for (std::int64_t p = full; 2 * p < k; ++p)
      for (std::int64_t i = 0; i < 8; ++i)
        to[p * kBf16Panel + j + i] = i < cols ? pair_at(from + (j + i) * col_stride + 2 * p, 1, 2 * p + 1 < k) : 0;
  }
}

// Computes kRows rows of one panel.
template <int kRows>
TAPEDECK_BF16_PAIRS void multiply_cell(std::int64_t pairs, LeftPairs a, const Bf16Pair* panel, float* c, std::int64_t c_stride,
                                       bool accumulate) {
  __m512 sums[kRows][2];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < 2; ++j) sums[i][j] = accumulate ? _mm512_loadu_ps(c + i * c_stride + 16 * j) : _mm512_setzero_ps();
  for (std::int64_t p = 0; p < pairs; ++p) {
    const __m512bh first = (__m512bh)_mm512_loadu_si512(panel + p * kBf16Panel);
    const __m512bh second = (__m512bh)_mm512_loadu_si512(panel + p * kBf16Panel + 16);
    for (int i = 0; i < kRows; ++i) {
      int pair;
      std::memcpy(&pair, a.data + i * a.row_step + p * a.pair_step, sizeof pair);
      const __m512bh left = (__m512bh)_mm512_set1_epi32(pair);
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], left, first);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], left, second);
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < 2; ++j) _mm512_storeu_ps(c + i * c_stride + 16 * j, sums[i][j]);
}

void multiply_panel(std::int64_t m, std::int64_t pairs, LeftPairs a, const Bf16Pair* panel, float* c, std::int64_t c_stride,
                    bool accumulate) {
  const auto left = [&](std::int64_t row) { return LeftPairs{a.data + row * a.row_step, a.row_step, a.pair_step}; };
  std::int64_t row = 0;
  for (; row + 12 <= m; row += 12) multiply_cell<12>(pairs, left(row), panel, c + row * c_stride, c_stride, accumulate);
  for (; row + 4 <= m; row += 4) multiply_cell<4>(pairs, left(row), panel, c + row * c_stride, c_stride, accumulate);
  for (; row < m; ++row) multiply_cell<1>(pairs, left(row), panel, c + row * c_stride, c_stride, accumulate);
}

}  // namespace

bool multiplies_bf16_pairs() {
  static const bool yes = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bf16");
  return yes;
}

void interleave_bf16(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high, Bf16Pair* to) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) interleave_32(32, low + i, high ? high + i : nullptr, to + i);
  for (; i < n; ++i) to[i] = low[i] | static_cast<Bf16Pair>(high ? high[i] : 0) << 16;
}

void pack_bf16_panels(std::int64_t k, std::int64_t n, const std::uint16_t* from, std::int64_t row_stride,
                      std::int64_t col_stride, Bf16Pair* to) {
  const std::int64_t pairs = (k + 1) / 2;
  for (std::int64_t col = 0; col < n; col += kBf16Panel, to += pairs * kBf16Panel) {
    const std::int64_t cols = std::min(kBf16Panel, n - col);
    const std::uint16_t* const panel = from + col * col_stride;
    if (row_stride == 1 && col_stride != 1) {
      std::fill(to, to + (cols < kBf16Panel ? pairs * kBf16Panel : 0), 0);
      pack_columns(k, cols, panel, col_stride, to);
      continue;
    }
    for (std::int64_t p = 0; p < pairs; ++p) {
      const std::uint16_t* const low = panel + 2 * p * row_stride;
      const bool both = 2 * p + 1 < k;
      if (col_stride == 1)
        interleave_32(cols, low, both ? low + row_stride : nullptr, to + p * kBf16Panel);
      else
        for (std::int64_t j = 0; j < kBf16Panel; ++j)
          to[p * kBf16Panel + j] = j < cols ? pair_at(low + j * col_stride, row_stride, both) : 0;
    }
  }
}

void multiply_bf16_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a, const Bf16Pair* panels, float* c,
                         std::int64_t c_stride, bool accumulate) {
  for (std::int64_t col = 0; col < n; col += kBf16Panel)
    multiply_panel(m, pairs, a, panels + col * pairs, c + col, c_stride, accumulate);
}

void multiply_few_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, LeftPairs a, const std::uint16_t* right,
                            std::int64_t row_stride, float* c, std::int64_t c_stride, bool accumulate) {
  constexpr std::int64_t kWide = 128;
  for (std::int64_t col = 0; col < n; col += kWide)
    for (std::int64_t row = 0; row < m; ++row) {
      const auto run = n - col > kWide / 2 ? &multiply_row<4> : &multiply_row<2>;
      run(n - col, k, a.data + row * a.row_step, a.pair_step, right + col, row_stride, c + row * c_stride + col, accumulate);
    }
}

#else

bool multiplies_bf16_pairs() { return false; }
void interleave_bf16(std::int64_t, const std::uint16_t*, const std::uint16_t*, Bf16Pair*) { std::abort(); }
void pack_bf16_panels(std::int64_t, std::int64_t, const std::uint16_t*, std::int64_t, std::int64_t, Bf16Pair*) { std::abort(); }
void multiply_bf16_pairs(std::int64_t, std::int64_t, std::int64_t, LeftPairs, const Bf16Pair*, float*, std::int64_t, bool) {
  std::abort();
}
void multiply_few_bf16_rows(std::int64_t, std::int64_t, std::int64_t, LeftPairs, const std::uint16_t*, std::int64_t, float*,
                            std::int64_t, bool) {
  std::abort();
}

#endif

}  // namespace tapedeck::kernels::cpu
