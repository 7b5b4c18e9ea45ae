// Products of bf16 numbers by the instruction of AVX-512 BF16 that multiplies pairs. A pair is two neighbours along the inner
// dimension. A register of the instruction holds the f32 sums of sixteen columns; each sum adds the two products of a pair.
//
// Every sum adds its pairs in order, whatever the block of rows and columns that it is computed in. So the bits depend on the
// values and on the inner size alone: not on tiles, strides or threads. Sums and operands below 2^-126 count as zero.
#pragma once

#include <cstdint>

namespace tapedeck::kernels::cpu {

using Bf16Pair = std::uint32_t;  // the first number is the low half

inline constexpr std::int64_t kBf16Panel = 32;  // columns

// Whether this processor has the instruction. The other functions of this header need it.
bool multiplies_bf16_pairs();

// The left factor as pairs: the distances from one row to the next, and from one pair to the next, are in bytes.
struct LeftPairs {
  const char* data;
  std::int64_t row_step, pair_step;
};

// Writes n pairs (low[i], high[i]). `high` may be null, and then counts as zeros.
void interleave_bf16(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high, Bf16Pair* to);

// Turns k rows and n columns of the right factor into panels of kBf16Panel columns. A panel holds the (k + 1) / 2 pairs of its
// columns, and zeros beyond column n and row k. The element of row p and column j lies at from[p * row_stride + j *
// col_stride].
void pack_bf16_panels(std::int64_t k, std::int64_t n, const std::uint16_t* from, std::int64_t row_stride,
                      std::int64_t col_stride, Bf16Pair* to);

// Computes c = a b, or c += a b if `accumulate`, for m rows, n columns and the inner size 2 * pairs. `panels` are those of
// pack_bf16_panels. Rows of c are c_stride elements apart and have room for all columns of all panels.
void multiply_bf16_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a, const Bf16Pair* panels, float* c,
                         std::int64_t c_stride, bool accumulate);

// The same product for at most kFewBf16Rows rows, with the right factor as it lies: k rows of n numbers, row_stride apart.
// Packing it would take longer than the product.
inline constexpr std::int64_t kFewBf16Rows = 4;
void multiply_few_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, LeftPairs a, const std::uint16_t* right,
                            std::int64_t row_stride, float* c, std::int64_t c_stride, bool accumulate);

}  // namespace tapedeck::kernels::cpu
