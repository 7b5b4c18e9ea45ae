// Tests views and their inverses: the bytes that a view shows, and the result of writing through it. The oracles are plain
// loops over elements.
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/movement.h>
#include <tapedeck/engine/ops/ops.h>

#include <numeric>

namespace tapedeck {
namespace {

using testing::counting;
using testing::floats_of;
using testing::message_of;
using testing::without_folders;

using Floats = std::vector<float>;

bool shares_bytes(const Tensor& view, const Tensor& base) {
  const auto* from = static_cast<const char*>(base.data());
  const auto* at = static_cast<const char*>(view.data());
  return at >= from && at < from + base.bytes();
}

TEST(Slice, StepsAsInPython) {
  const Tensor x = counting({10});
  EXPECT_EQ(floats_of(slice(x, 0, 1, 10, 3)), (Floats{1, 4, 7}));
  EXPECT_EQ(floats_of(slice(x, 0, -3, 100, 2)), (Floats{7, 9}));
  EXPECT_EQ(floats_of(slice(x, 0, 4, 2, 2)), Floats{});
  EXPECT_EQ(floats_of(slice(x, 0, 2, 9, 1000)), (Floats{2}));
  EXPECT_EQ(floats_of(slice(counting({3, 4}), {0, 1}, {3, 4}, {2, 2})), (Floats{1, 3, 9, 11}));
  EXPECT_TRUE(shares_bytes(slice(x, 0, 1, 10, 3), x));
}

TEST(Slice, RefusesStepsThatDoNotAdvance) {
  const Tensor x = counting({4});
  EXPECT_EQ(without_folders(message_of<TypeError>([&] { slice(Arg(x, "a.cpp", 1), {0}, {4}, {0}); })),
            "[slice] step 0 in dimension 0 is not positive (a.cpp:1)");
  EXPECT_EQ(without_folders(message_of<TypeError>([&] {
              slice(Arg(x, "a.cpp", 1), {0}, {4}, {2, 2});
            })),
            "[slice] steps lists 2 numbers for f32[4] (a.cpp:1)");
}

TEST(Slice, GradientReachesTheElementsTaken) {
  Tensor x = counting({5});
  x.requires_grad(true);
  backward(sum(mul(slice(x, 0, 0, 5, 2), tensor({1, 2, 3}))));
  EXPECT_EQ(floats_of(x.grad()), (Floats{1, 0, 2, 0, 3}));
}

TEST(SliceAssign, ReplacesTheWindow) {
  EXPECT_EQ(floats_of(slice_assign(counting({5}), tensor({-1, -2}), {1}, {5}, {2})), (Floats{0, -1, 2, -2, 4}));
  EXPECT_EQ(floats_of(slice_assign(counting({2, 3}), counting({2, 1}), {0, -1}, {2, 3})), (Floats{0, 1, 0, 3, 4, 1}));
}

TEST(SliceAssign, RefusesAPieceThatDoesNotFit) {
  const Tensor x = counting({5}), piece = tensor({1, 2, 3});
  EXPECT_EQ(without_folders(message_of<TypeError>([&] { slice_assign(Arg(x, "a.cpp", 1), piece, {0}, {2}); })),
            "[slice_assign] the piece is f32[3], the window f32[2] (a.cpp:1)");
}

TEST(Diagonal, MainAboveAndBelow) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(floats_of(diagonal(x)), (Floats{0, 5, 10}));
  EXPECT_EQ(floats_of(diagonal(x, 2)), (Floats{2, 7}));
  EXPECT_EQ(floats_of(diagonal(x, -2)), (Floats{8}));
  EXPECT_EQ(floats_of(diagonal(x, 4)), Floats{});
  EXPECT_EQ(floats_of(diagonal(x, -9)), Floats{});
  EXPECT_EQ(floats_of(diagonal(x, 1, 1, 0)), (Floats{4, 9}));
  EXPECT_TRUE(shares_bytes(diagonal(x, 1), x));
}

TEST(Diagonal, OfABatchComesLast) {
  const Tensor y = diagonal(counting({2, 3, 3}), 0, -2, -1);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(floats_of(y), (Floats{0, 4, 8, 9, 13, 17}));
}

TEST(Diagonal, RefusesAxesThatMakeNoMatrix) {
  const Tensor x = counting({2, 2});
  EXPECT_EQ(without_folders(message_of<TypeError>([&] { diagonal(Arg(x, "a.cpp", 1), 0, 1, -1); })),
            "[diagonal] the two axes are the same (a.cpp:1)");
  EXPECT_EQ(without_folders(message_of<TypeError>([&] { diagonal(Arg(x, "a.cpp", 1), 0, 0, 2); })),
            "[diagonal] axis 2 is outside f32[2,2] (a.cpp:1)");
}

TEST(DiagonalAssign, ReplacesTheDiagonal) {
  EXPECT_EQ(floats_of(diagonal_assign(zeros({2, 3}), tensor({7, 8}), 1)), (Floats{0, 7, 0, 0, 0, 8}));
}

TEST(Alias, IsTheSameBytesAndPassesTheGradient) {
  Tensor x = counting({3});
  EXPECT_EQ(alias(x).data(), x.data());
  x.requires_grad(true);
  backward(sum(alias(x)));
  EXPECT_EQ(floats_of(x.grad()), (Floats{1, 1, 1}));
}

// A reshape copies nothing if the strides of each group of dimensions allow a view.
TEST(Reshape, IsAViewWhereverStridesAllow) {
  const Tensor x = counting({4, 6, 5});
  const Tensor rows = slice(x, {1, 0, 0}, {3, 6, 5});  // a block of whole rows
  EXPECT_TRUE(shares_bytes(reshape(rows, {60}), x));
  const Tensor columns = slice(x, {0, 0, 0}, {4, 6, 3});  // a gap behind every row of the last dimension
  EXPECT_TRUE(shares_bytes(reshape(columns, {24, 3}), x));
  EXPECT_TRUE(shares_bytes(reshape(columns, {2, 2, 3, 1, 2, 3}), x));
  EXPECT_FALSE(shares_bytes(reshape(columns, {4, 18}), x));
  const Tensor turned = transpose(x, {2, 0, 1});
  EXPECT_TRUE(shares_bytes(reshape(turned, {5, 24}), x));
  EXPECT_TRUE(shares_bytes(reshape(turned, {5, 1, 8, 3}), x));
  EXPECT_FALSE(shares_bytes(reshape(turned, {120}), x));
  EXPECT_TRUE(shares_bytes(reshape(slice(x, {0, 0, 0}, {4, 6, 5}, {1, 1, 5}), {2, 12}), x));  // every fifth element
}

TEST(Reshape, KeepsTheElementsOfEveryLayout) {
  const Tensor x = counting({4, 6, 5});
  const Ints orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const Ints& order : orders)
    for (const Ints& steps : {Ints{1, 1, 1}, Ints{2, 1, 1}, Ints{1, 2, 5}, Ints{2, 3, 1}, Ints{4, 6, 5}}) {
      const Tensor strided = transpose(slice(x, {0, 0, 0}, {4, 6, 5}, steps), order);
      const Tensor dense = copy(strided);
      for (std::int64_t first = 1; first <= dense.numel(); ++first)
        if (dense.numel() % first == 0) {
          EXPECT_EQ(floats_of(reshape(strided, {first, 1, -1})), floats_of(dense));
        }
    }
  EXPECT_EQ(floats_of(reshape(broadcast_to(tensor({1, 2}), Shape{3, 2}), {6})), (Floats{1, 2, 1, 2, 1, 2}));
}

// unview(base, piece) equals the base with its window replaced by the piece.
TEST(Unview, WritesTheWindowOfEveryView) {
  const auto bytes = [](const auto& a) {
    const auto* from = reinterpret_cast<const unsigned char*>(&a);
    return std::vector<unsigned char>(from, from + sizeof a);
  };
  const std::pair<const Op*, std::vector<unsigned char>> cases[] = {
      {&ops::reshape, bytes(ShapeAttrs{{2, 6}})},           {&ops::transpose, bytes(PermuteAttrs{{1, 0}})},
      {&ops::slice, bytes(SliceAttrs{{1, 0}, {3, 4}, {}})}, {&ops::slice, bytes(SliceAttrs{{0, 1}, {3, 4}, {2, 2}})},
      {&ops::diagonal, bytes(DiagonalAttrs{1, 0, 1})},
  };
  for (const auto& [op, attrs] : cases) {
    SCOPED_TRACE(op->name);
    const Tensor base = counting({3, 4});
    const Tensor seen = apply(*op, {&base}, attrs.data(), {});
    const Tensor piece = neg(add(seen, 100));
    const Tensor written = op->unview(base, piece, attrs.data(), {});
    ASSERT_EQ(written.type(), base.type());
    EXPECT_TRUE(bit_equal(apply(*op, {&written}, attrs.data(), {}), piece));
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < 12; ++i) kept += floats_of(written)[i] == floats_of(base)[i];
    EXPECT_EQ(kept, 12 - piece.numel());
  }
  EXPECT_EQ(ops::broadcast_to.unview, nullptr);
  EXPECT_EQ(ops::stop_gradient.unview, nullptr);
}

TEST(Movement, TakesEveryDtype) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_name(dtype));
    unsigned char raw[6 * 8];
    for (int i = 0; i < 48; ++i) raw[i] = static_cast<unsigned char>(dtype == DType::boolean ? i & 1 : i);
    const Tensor x = from_bytes({dtype, {2, 3}}, raw);
    const std::size_t width = dtype_size(dtype);
    std::vector<unsigned char> turned(6 * width);
    transpose(x, {1, 0}).copy_to(turned.data(), turned.size(), width);
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t b = 0; b < width; ++b) EXPECT_EQ(turned[i * width + b], raw[(i % 2 * 3 + i / 2) * width + b]);
  }
}

TEST(Concat, PromotesDtypes) {
  const Tensor whole = from_vector(std::vector<std::int32_t>{1, 2}, {2});
  const Tensor joined = concat({whole, cast(counting({2}), DType::bf16), counting({1})}, 0);
  EXPECT_EQ(joined.type(), (Type{DType::f32, {5}}));
  EXPECT_EQ(floats_of(joined), (Floats{1, 2, 0, 1, 0}));
  Tensor x = cast(counting({2}), DType::f16).requires_grad(true);
  backward(sum(concat({x, counting({3})}, 0)));
  EXPECT_EQ(x.grad().type(), (Type{DType::f16, {2}}));
}

}  // namespace
}  // namespace tapedeck
