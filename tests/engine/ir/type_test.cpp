// Tests types, shapes, broadcasting and promotion of dtypes against values worked out by hand, and the text of errors.
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/type.h>

#include <gtest/gtest.h>

#include <limits>

namespace tapedeck {
namespace {

Type type(DType dtype, std::initializer_list<std::int64_t> sizes) { return {dtype, Shape(sizes)}; }

TEST(Type, prints_as_in_the_graph_text) {
  EXPECT_EQ(to_string(type(DType::f32, {64, 784})), "f32[64,784]");
  EXPECT_EQ(to_string(type(DType::boolean, {})), "bool[]");
  EXPECT_EQ(to_string(type(DType::bf16, {0})), "bf16[0]");
  EXPECT_EQ(to_string(Shape{1, 2, 3}), "[1,2,3]");
}

TEST(Type, shapes_refuse_too_many_or_negative_sizes) {
  EXPECT_NO_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), TypeError);
  EXPECT_THROW((Shape{2, -1}), TypeError);
}

TEST(Type, equality_looks_at_dtype_rank_and_sizes_only) {
  EXPECT_EQ(type(DType::f32, {2, 3}), type(DType::f32, {2, 3}));
  EXPECT_NE(type(DType::f32, {2, 3}), type(DType::f64, {2, 3}));
  EXPECT_NE(type(DType::f32, {2, 3}), type(DType::f32, {2, 3, 1}));
  EXPECT_NE(type(DType::f32, {2, 3}), type(DType::f32, {3, 2}));
}

std::int64_t bytes_of(DType dtype, std::initializer_list<std::int64_t> sizes) {
  return checked_bytes(dtype, std::span<const std::int64_t>(sizes.begin(), sizes.size()));
}

TEST(Type, byte_counts_are_checked) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(bytes_of(DType::f32, {}), 4);
  EXPECT_EQ(bytes_of(DType::f64, {3, 5}), 120);
  EXPECT_EQ(bytes_of(DType::u8, {kMaxTypeBytes}), kMaxTypeBytes);
  EXPECT_EQ(bytes_of(DType::u8, {kMaxTypeBytes + 1}), -1);
  EXPECT_EQ(bytes_of(DType::u8, {-1}), -1);
  EXPECT_EQ(bytes_of(DType::u8, {most, most}), -1);
  EXPECT_EQ(bytes_of(DType::f32, {5, 0, 7}), 0);
  EXPECT_EQ(bytes_of(DType::f32, {most, most, 0}), -1) << "numel() would overflow on the way to the zero";
  EXPECT_EQ(bytes_of(DType::f32, {0, most, most}), -1) << "so would the strides";
}

TEST(Type, dense_strides_are_row_major) {
  std::int64_t strides[kMaxRank];
  dense_strides(Shape{4, 3, 2}, strides);
  EXPECT_EQ(strides[0], 6);
  EXPECT_EQ(strides[1], 2);
  EXPECT_EQ(strides[2], 1);
}

// The oracle computes each dimension from the right, as NumPy's manual states the rule.
bool broadcast_oracle(const Shape& a, const Shape& b, std::vector<std::int64_t>* out) {
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  out->assign(static_cast<std::size_t>(rank), 0);
  for (int right = 1; right <= rank; ++right) {
    std::int64_t x = right <= a.rank ? a[a.rank - right] : 1, y = right <= b.rank ? b[b.rank - right] : 1;
    if (x == 1) x = y;
    if (y == 1) y = x;
    if (x != y) return false;
    (*out)[rank - right] = x;
  }
  return true;
}

TEST(Type, broadcasting_agrees_with_the_rule_on_all_small_shapes) {
  std::vector<Shape> shapes = {Shape{}};
  for (std::int64_t i = 0; i < 4; ++i) {
    shapes.push_back(Shape{i});
    for (std::int64_t j = 0; j < 4; ++j) {
      shapes.push_back(Shape{i, j});
      for (std::int64_t k = 0; k < 4; ++k) shapes.push_back(Shape{i, j, k});
    }
  }
  for (const Shape& a : shapes)
    for (const Shape& b : shapes) {
      std::vector<std::int64_t> expected;
      const bool fits = broadcast_oracle(a, b, &expected);
      Shape out{9, 9};
      ASSERT_EQ(broadcast_shapes(a, b, &out), fits) << to_string(a) << " with " << to_string(b);
      if (!fits) expected = {9, 9};  // not changed
      ASSERT_EQ(std::vector<std::int64_t>(out.begin(), out.end()), expected) << to_string(a) << " with " << to_string(b);
    }
  Shape a{5, 1};
  EXPECT_TRUE(broadcast_shapes(a, Shape{3}, &a));  // the result may be the operand itself
  EXPECT_EQ(a, (Shape{5, 3}));
}

TEST(Type, promotion_takes_the_later_dtype) {
  const DType order[] = {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};
  for (int i = 0; i < kDTypeCount; ++i)
    for (int j = 0; j < kDTypeCount; ++j) {
      const bool both_halves =
          i != j && (order[i] == DType::f16 || order[i] == DType::bf16) && (order[j] == DType::f16 || order[j] == DType::bf16);
      EXPECT_EQ(promote(order[i], order[j]), both_halves ? DType::f32 : order[i > j ? i : j]);
    }
}

TEST(Error, text_carries_op_and_place) {
  EXPECT_EQ(error_text("matmul", "inner sizes differ", {"train.cpp", 12}).str(), "[matmul] inner sizes differ (train.cpp:12)");
  EXPECT_EQ(error_text("matmul", "inner sizes differ", {}).str(), "[matmul] inner sizes differ");
  EXPECT_EQ(error_text("", "no such thing", {}).str(), "no such thing");
}

TEST(Error, has_its_parts_as_fields) {
  const TypeError error(error_text("matmul", "inner sizes differ", {"train.cpp", 12}));
  EXPECT_STREQ(error.what(), "[matmul] inner sizes differ (train.cpp:12)");
  EXPECT_STREQ(error.kind(), "TypeError");
  EXPECT_EQ(error.op(), "matmul");
  EXPECT_EQ(error.message(), "inner sizes differ");
  EXPECT_EQ(error.file(), "train.cpp");
  EXPECT_EQ(error.line(), 12);
  const Error plain("no such thing");
  EXPECT_STREQ(plain.kind(), "Error");
  EXPECT_EQ(plain.op() + plain.file(), "");
  EXPECT_EQ(plain.message(), "no such thing");
  EXPECT_EQ(plain.line(), 0);
}

}  // namespace
}  // namespace tapedeck
