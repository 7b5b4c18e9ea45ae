// The calls of attention that the tests of its kernels make. The oracle is the CPU kernel in f64, on the same numbers.
#pragma once

#include <tapedeck/kernels/attrs/attention.h>
#include <tapedeck/kernels/kernel.h>
#include <tapedeck/tests/kernels/cuda/products/operands.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::kernels {

namespace cpu {
void scaled_dot_product_attention(const KernelCall& call);
void scaled_dot_product_attention_grad(const KernelCall& call);
}  // namespace cpu

struct AttentionCase {
  const char* name;
  DType dtype;
  std::int64_t b, h, t, s, d, e;
  AttentionAttrs attrs = {};
  std::optional<DType> mask = {};
  std::vector<std::int64_t> mask_sizes = {};
};

inline const std::vector<AttentionCase>& attention_cases() {
  static const std::vector<AttentionCase> cases = {
      {"small", DType::f32, 1, 2, 5, 7, 4, 6, {0.5, false}},
      {"several tiles", DType::f32, 1, 1, 66, 130, 12, 20, {0.3, false}},
      {"causal, more queries than keys", DType::f32, 1, 1, 130, 66, 9, 5, {0.4, true}},
      {"causal, more keys than queries", DType::f32, 1, 1, 66, 140, 40, 33, {0.2, true}},
      {"many blocks", DType::f32, 64, 2, 3, 5, 40, 33, {0.3, true}},
      {"wide rows", DType::f32, 1, 1, 65, 70, 128, 99, {0.1, false}},
      {"wide rows, causal, mask", DType::f32, 1, 1, 65, 64, 66, 128, {0.1, true}, DType::f32, {1, 1, 65, 64}},
      {"mask for each batch", DType::f32, 2, 2, 10, 12, 8, 8, {1, false}, DType::boolean, {2, 1, 1, 12}},
      {"mask for each query", DType::f32, 1, 2, 6, 3, 8, 8, {1, false}, DType::boolean, {6, 1}},
      {"mask for each head", DType::f32, 1, 3, 6, 5, 8, 8, {1, true}, DType::f32, {3, 1, 5}},
      {"no keys", DType::f32, 1, 2, 4, 0, 3, 2, {1, false}},
      {"rows of nothing", DType::f32, 1, 1, 3, 4, 0, 2, {1, false}},
      {"no values", DType::f32, 1, 1, 3, 4, 2, 0, {1, false}},
      {"too wide for tiles", DType::f32, 1, 2, 3, 5, 130, 7, {0.1, true}},
      {"results too wide for a block", DType::f32, 1, 1, 3, 5, 6, 600, {0.1, false}},
      {"f64", DType::f64, 1, 2, 5, 140, 5, 7, {0.5, false}, DType::f64, {5, 140}},
      {"f64, causal", DType::f64, 1, 1, 135, 6, 4, 3, {0.5, true}, DType::boolean, {6}},
      {"f16", DType::f16, 1, 2, 20, 40, 16, 16, {0.25, true}},
      {"f16, odd rows, mask", DType::f16, 1, 1, 20, 40, 15, 33, {0.25, false}, DType::f16, {20, 40}},
      {"bf16", DType::bf16, 2, 1, 20, 70, 64, 64, {0.125, true}, DType::boolean, {2, 1, 20, 70}},
      {"bf16, several tiles", DType::bf16, 1, 1, 37, 130, 32, 24, {0.3, false}},
      {"f16, several tiles, causal", DType::f16, 1, 2, 70, 131, 64, 64, {0.2, true}},
      {"f16, causal, more queries than keys", DType::f16, 1, 1, 140, 66, 40, 48, {0.2, true}},
      {"bf16, wide rows, causal", DType::bf16, 1, 1, 67, 80, 128, 128, {0.09, true}},
      {"f16, wide rows, mask for each query", DType::f16, 1, 1, 20, 68, 96, 72, {-0.1, false}, DType::boolean, {20, 1}},
      {"bf16, odd rows, mask for each head", DType::bf16, 1, 3, 6, 5, 7, 9, {1, true}, DType::bf16, {3, 1, 5}},
      {"f16, negative scale", DType::f16, 1, 1, 33, 65, 16, 16, {-0.3, false}},
      {"f16, no keys", DType::f16, 1, 2, 4, 0, 8, 8, {1, false}},
      {"bf16, rows of nothing", DType::bf16, 1, 1, 3, 4, 0, 2, {1, false}},
      {"f16, no values", DType::f16, 1, 1, 3, 4, 2, 0, {1, false}},
      {"f16, too wide for tiles", DType::f16, 1, 2, 3, 5, 130, 7, {0.1, true}},
  };
  return cases;
}

// The operands q, k, v of a case, and the mask if it has one.
struct AttentionOperands {
  explicit AttentionOperands(const AttentionCase& c) {
    Operands numbers(7);
    all.push_back(numbers.make(c.dtype, {c.b, c.h, c.t, c.d}));
    all.push_back(numbers.make(c.dtype, {c.b, c.h, c.s, c.d}));
    all.push_back(numbers.make(c.dtype, {c.b, c.h, c.s, c.e}));
    if (c.mask) mask = numbers.make(*c.mask, c.mask_sizes);
  }
  std::vector<Operand> all;
  std::optional<Operand> mask;
};

// A bool mask stays as it is.
inline Operand in_f64(const Operand& x) { return converted(x, x.view.dtype == DType::boolean ? DType::boolean : DType::f64); }

inline std::vector<Operand> in_f64(const std::vector<Operand>& operands) {
  std::vector<Operand> result;
  for (const Operand& x : operands) result.push_back(in_f64(x));
  return result;
}

inline std::vector<View> views_of(const std::vector<Operand>& operands) {
  std::vector<View> views;
  for (const Operand& x : operands) views.push_back(x.view);
  return views;
}

inline Operand zeros(DType dtype, const std::vector<std::int64_t>& sizes) {
  Operand x = Operands(3).make(dtype, sizes);
  for (std::int64_t i = 0; i < x.view.numel(); ++i) x.set(i, 0);
  return x;
}

inline Operand filled(DType dtype, const View& like) {
  return Operands(11).make(dtype, std::vector<std::int64_t>(like.sizes, like.sizes + like.rank));
}

inline double attention_tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 2e-3 : 1.6e-2;
}

// Compares the elements; the tolerance is relative for elements above 1.
inline void expect_close(const Operand& got, const Operand& wanted, double tolerance, const std::string& what) {
  for (std::int64_t i = 0; i < wanted.view.numel(); ++i) {
    const double w = wanted.at(i), g = got.at(i);
    if (std::isinf(w))
      ASSERT_EQ(g, w) << what << ", element " << i;
    else
      ASSERT_NEAR(g, w, tolerance * std::max(1.0, std::fabs(w))) << what << ", element " << i;
  }
}

}  // namespace tapedeck::kernels
