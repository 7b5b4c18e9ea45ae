// Tests indexing as authors call it: indices from the front and from the end, equal indices, indices out of range, masks.
// Expected values are written by hand.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/index.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/scan.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>
#include <numeric>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::message_of;
using Floats = std::vector<float>;
using Places = std::vector<std::int64_t>;

Tensor places(const std::vector<std::int64_t>& v, const Shape& shape) {
  Places filled = v;
  filled.push_back(0);  // so that data() is not null
  return from_bytes({DType::i64, shape}, filled.data());
}
Tensor places(const std::vector<std::int64_t>& v) { return places(v, {static_cast<std::int64_t>(v.size())}); }
Tensor bools(const std::vector<unsigned char>& v, const Shape& shape) { return from_bytes({DType::boolean, shape}, v.data()); }
Tensor counted_from_one(const Shape& shape) {
  Floats v(static_cast<std::size_t>(shape.numel()));
  std::iota(v.begin(), v.end(), 1.0f);
  return from_vector(v, shape);
}
Tensor wanting(Tensor x) { return x.requires_grad(true); }

TEST(Index, GatherTakesOneElementPerPlace) {
  const Tensor x = counted_from_one({2, 3});
  EXPECT_EQ(floats_of(gather(x, places({2, 0, -1, -3}, {2, 2}), 1)), (Floats{3, 1, 6, 4}));
  EXPECT_EQ(floats_of(gather(x, places({1, 0, 1}, {1, 3}), 0)), (Floats{4, 2, 6}));
  EXPECT_EQ(floats_of(gather(x, places({0}, {1, 1}), -2)), (Floats{1}));
  EXPECT_EQ(gather(cast(x, DType::u8), places({1, 1}, {2, 1}), 1).to_vector<unsigned char>(),
            (std::vector<unsigned char>{2, 5}));
}

TEST(Index, GradientOfGatherAddsUpEqualPlaces) {
  Tensor x = wanting(tensor({1, 2, 3}));
  backward(gather(x, places({1, 1, -1}), 0), {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 11, 100}));
}

TEST(Index, OfEqualPlacesTheLastStays) {
  EXPECT_EQ(floats_of(scatter(zeros({3}), places({1, 0, 1, -2}), tensor({1, 2, 3, 4}), 0)), (Floats{2, 4, 0}));
  EXPECT_EQ(floats_of(scatter(zeros({2, 2}), places({0, 1, 0, 0}, {2, 2}), counted_from_one({2, 2}), 0)), (Floats{3, 4, 0, 2}));
}

TEST(Index, GradientOfScatterGoesToWhatStayed) {
  Tensor x = wanting(zeros({3})), src = wanting(tensor({1, 2, 3}));
  backward(scatter(x, places({1, 0, 1}), src, 0), {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 0, 100}));
  EXPECT_EQ(floats_of(src.grad()), (Floats{0, 1, 10}));
}

TEST(Index, ScatterAddAddsInOrder) {
  EXPECT_EQ(floats_of(scatter_add(tensor({1, 1, 1}), places({1, 0, 1}), tensor({1, 2, 3}), 0)), (Floats{3, 5, 1}));
  // In f32, 2^24 + 1 + 1 is 2^24 if the sum goes from left to right.
  EXPECT_EQ(floats_of(scatter_add(zeros({1}), places({0, 0, 0}), tensor({16777216, 1, 1}), 0)), (Floats{16777216}));
  EXPECT_EQ(floats_of(scatter_add(zeros({1}), places({0, 0, 0}), tensor({1, 1, 16777216}), 0)), (Floats{16777218}));
}

TEST(Index, ScatterReduceCombinesWithWhatStandsThere) {
  const Tensor x = tensor({2, 5, -1}), at = places({1, 0, 1, -3}), src = tensor({3, 7, -4, 1});
  EXPECT_EQ(floats_of(scatter_reduce(x, at, src, 0, "mul")), (Floats{14, -60, -1}));
  EXPECT_EQ(floats_of(scatter_reduce(x, at, src, 0, "max")), (Floats{7, 5, -1}));
  EXPECT_EQ(floats_of(scatter_reduce(x, at, src, 0, "min")), (Floats{1, -4, -1}));
  EXPECT_EQ(floats_of(scatter_reduce(x, at, src, 0, "add")), (Floats{10, 4, -1}));
  EXPECT_EQ(
      floats_of(scatter_reduce(counted_from_one({2, 2}), places({1, 1, 0, 0}, {2, 2}), counted_from_one({2, 2}), -1, "mul")),
      (Floats{1, 4, 36, 4}));
  const Floats nan = floats_of(scatter_reduce(zeros({2}), places({0, 0}), tensor({NAN, 1}), 0, "max"));
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_EQ(nan[1], 0);
}

// Place 0 meets 3, 3 and 1: both threes share its gradient with the 3 of x.
TEST(Index, EqualExtremesShareTheGradientOfAScatter) {
  Tensor x = wanting(tensor({3, 0})), src = wanting(tensor({3, 3, 1, 5}));
  backward(scatter_reduce(x, places({0, 0, 0, 1}), src, 0, "max"), {.head = tensor({6, 10})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{2, 0}));
  EXPECT_EQ(floats_of(src.grad()), (Floats{2, 2, 0, 10}));
}

// With one zero among the factors of a place only this zero has a gradient, with two none has.
TEST(Index, GradientOfAScatteredProductIsExactAtZeros) {
  Tensor x = wanting(tensor({2, 0, 3, 4})), src = wanting(tensor({5, 0, 7, 0, 0, -2}));
  backward(scatter_reduce(x, places({0, 0, 1, 2, 2, 3}), src, 0, "mul"), {.head = tensor({1, 10, 100, 1000})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 70, 0, -2000}));
  EXPECT_EQ(floats_of(src.grad()), (Floats{0, 10, 0, 0, 0, 4000}));
}

TEST(Index, ScatteredTuplesCombineToo) {
  const Tensor x = counted_from_one({2, 2}), rows = places({1, 1}, {2, 1}), src = counted_from_one({2, 2});
  EXPECT_EQ(floats_of(scatter_nd(x, rows, src, {.reduction = "mul"})), (Floats{1, 2, 9, 32}));
  EXPECT_EQ(floats_of(scatter_nd(x, rows, src, {.reduction = "max"})), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(scatter_nd(x, rows, src, {.reduction = "min"})), (Floats{1, 2, 1, 2}));
  Tensor one = wanting(counted_from_one({2, 2}));
  backward(scatter_nd(x, rows, one, {.reduction = "min"}), {.head = reshape(tensor({1, 1, 10, 20}), {2, 2})});
  EXPECT_EQ(floats_of(one.grad()), (Floats{10, 20, 0, 0}));
}

TEST(Index, SlicesAlongAnyAxis) {
  const Tensor x = counted_from_one({2, 3});
  EXPECT_EQ(floats_of(index_select(x, 1, places({2, -3}))), (Floats{3, 1, 6, 4}));
  EXPECT_EQ(floats_of(index_select(x, 0, places({1, 1}))), (Floats{4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(floats_of(index_add(x, 0, places({1, -1}), counted_from_one({2, 3}))), (Floats{1, 2, 3, 9, 12, 15}));
  EXPECT_EQ(floats_of(index_add(x, 1, places({0, 0}), ones({2, 2}))), (Floats{3, 2, 3, 6, 5, 6}));
}

TEST(Index, TakeCountsAcrossDimensions) {
  EXPECT_EQ(floats_of(take(counted_from_one({2, 3}), places({5, 0, -2, 3}, {2, 2}))), (Floats{6, 1, 5, 4}));
}

TEST(Index, EmbeddingAndItsGradient) {
  Tensor table = wanting(counted_from_one({3, 2}));
  const Tensor y = embedding(table, places({2, 0, 2, -1}, {2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(floats_of(y), (Floats{5, 6, 1, 2, 5, 6, 5, 6}));
  backward(y, {.head = counted_from_one({2, 2, 2})});
  EXPECT_EQ(floats_of(table.grad()), (Floats{3, 4, 0, 0, 1 + 5 + 7, 2 + 6 + 8}));
}

// The table has more rows than one thread takes, and many ids name one row.
TEST(Index, GradientOfALargeEmbedding) {
  constexpr std::int64_t kRows = 1000, kIds = 5000, kWidth = 70;
  Places ids;
  for (std::int64_t i = 0; i < kIds; ++i) ids.push_back(i % 3 == 0 ? 7 : i % kRows);
  const Floats grad = floats_of(embedding_grad(places(ids), ones({kIds, kWidth}), kRows));
  Floats counts(kRows);
  for (std::int64_t id : ids) counts[id] += 1;
  for (std::size_t i = 0; i < grad.size(); ++i) ASSERT_EQ(grad[i], counts[i / kWidth]) << i;
}

TEST(Index, TuplesNameElementsOrSlices) {
  const Tensor x = counted_from_one({2, 3});
  EXPECT_EQ(floats_of(gather_nd(x, places({0, 2, 1, -3}, {2, 2}))), (Floats{3, 4}));
  EXPECT_EQ(floats_of(gather_nd(x, places({1}, {1, 1}))), (Floats{4, 5, 6}));
  EXPECT_EQ(floats_of(gather_nd(x, places({2, 0}, {2, 1}), 1)), (Floats{3, 4}));
  EXPECT_EQ(floats_of(scatter_nd(x, places({1, 1}, {2, 1}), counted_from_one({2, 3}))), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats_of(scatter_nd(x, places({1, 1}, {2, 1}), counted_from_one({2, 3}), {.reduction = "add"})),
            (Floats{1, 2, 3, 9, 12, 15}));
}

TEST(Index, GradientOfScatteredTuplesGoesToWhatStayed) {
  Tensor src = wanting(counted_from_one({2, 3}));
  backward(scatter_nd(zeros({2, 3}), places({1, 1}, {2, 1}), src), {.head = counted_from_one({2, 3})});
  EXPECT_EQ(floats_of(src.grad()), (Floats{0, 0, 0, 4, 5, 6}));
}

TEST(Index, NonzeroListsCoordinatesInOrder) {
  const Tensor at = nonzero(from_vector(Floats{0, 2, -0.0f, NAN, 0, 1}, {2, 3}));
  EXPECT_EQ(at.shape(), (Shape{3, 2}));
  EXPECT_EQ(at.to_vector<std::int64_t>(), (Places{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(nonzero(zeros({4})).shape(), (Shape{0, 1}));
  EXPECT_EQ(nonzero(scalar(3)).shape(), (Shape{1, 0}));
}

// The mask has more elements than one block of the kernel. Two of three elements are true.
TEST(Index, MasksOfManyBlocks) {
  constexpr std::int64_t kCount = 100000;
  std::vector<unsigned char> held(kCount);
  Floats values(kCount), kept;
  for (std::size_t i = 0; i < held.size(); ++i) {
    values[i] = static_cast<float>(i);
    held[i] = i % 3 != 1;
    if (held[i]) kept.push_back(values[i]);
  }
  const Tensor x = from_vector(values, {kCount}), mask = bools(held, {kCount}), picked = masked_select(x, mask);
  EXPECT_EQ(floats_of(picked), kept);
  EXPECT_TRUE(bit_equal(masked_scatter(x, mask, picked), x));
  EXPECT_EQ(nonzero(mask).to_vector<std::int64_t>()[4], 6);
}

TEST(Index, BooleanMaskPicksRows) {
  Tensor x = wanting(counted_from_one({3, 3}));
  const Tensor y = boolean_mask(x, bools({0, 1, 1}, {3}));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(floats_of(y), (Floats{4, 5, 6, 7, 8, 9}));
  backward(sum(y));
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(floats_of(boolean_mask(counted_from_one({2, 2}), bools({1, 0, 0, 1}, {2, 2}))), (Floats{1, 4}));
  EXPECT_EQ(boolean_mask(counted_from_one({2, 2}), bools({0, 0}, {2})).shape(), (Shape{0, 2}));
}

TEST(Index, MaskedSelectBroadcastsAndSendsTheGradientBack) {
  Tensor x = wanting(tensor({1, 2, 3}));
  const Tensor y = masked_select(x, bools({1, 0}, {2, 1}));
  EXPECT_EQ(floats_of(y), (Floats{1, 2, 3}));
  backward(y, {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{1, 10, 100}));
  Tensor z = wanting(tensor({1, 2, 3}));
  backward(masked_select(z, bools({1, 0, 1}, {3})), {.head = tensor({7, 8})});
  EXPECT_EQ(floats_of(z.grad()), (Floats{7, 0, 8}));
}

TEST(Index, GradientOfMaskedScatterIsSplit) {
  Tensor x = wanting(tensor({1, 2, 3})), src = wanting(tensor({8, 9}));
  const Tensor y = masked_scatter(x, bools({1, 0, 1}, {3}), src);
  EXPECT_EQ(floats_of(y), (Floats{8, 2, 9}));
  backward(y, {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 10, 0}));
  EXPECT_EQ(floats_of(src.grad()), (Floats{1, 100}));
}

TEST(Index, MaskedFillKeepsTheDtype) {
  const Tensor mask = bools({1, 0, 1}, {3});
  EXPECT_EQ(floats_of(masked_fill(tensor({1, 2, 3}), mask, -INFINITY)), (Floats{-INFINITY, 2, -INFINITY}));
  EXPECT_EQ(masked_fill(places({1, 2, 3}), mask, 9).to_vector<std::int64_t>(), (Places{9, 2, 9}));
}

TEST(Index, BinsCountNumbers) {
  EXPECT_EQ(bincount(places({1, 3, 1, 0})).to_vector<std::int64_t>(), (Places{1, 2, 0, 1}));
  EXPECT_EQ(bincount(places({1}), 4).to_vector<std::int64_t>(), (Places{0, 1, 0, 0}));
  EXPECT_EQ(bincount(places({})).numel(), 0);
}

TEST(Index, InPlaceWritesOverTheOperand) {
  const Tensor x = counted_from_one({3}), added[] = {x, places({0, 0}), tensor({10, 20})};
  const AxisAttrs attrs{0};
  apply_in_place(ops::index_add, added, &attrs, {});
  EXPECT_EQ(floats_of(x), (Floats{31, 2, 3}));
}

// ---- mistakes and their messages ----

TEST(Index, PlacesThatDoNotExistAreReportedWhenTheOpRuns) {
  const Tensor x = counted_from_one({2, 3}), src = ones({2, 1});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<ExecutionError>(f), message); };
  says([&] { gather(x, places({0, 3}, {2, 1}), 1); }, "[gather] index out of range (3)");
  says([&] { gather(x, places({0, -4}, {2, 1}), 1); }, "[gather] index out of range (-4)");
  says([&] { scatter(x, places({0, 3}, {2, 1}), src, 1); }, "[scatter] index out of range (3)");
  says([&] { scatter_add(x, places({0, -4}, {2, 1}), src, 1); }, "[scatter_add] index out of range (-4)");
  says([&] { scatter_reduce(x, places({0, 3}, {2, 1}), src, 1, "max"); }, "[scatter_reduce] index out of range (3)");
  says([&] { index_select(x, 0, places({2})); }, "[index_select] index out of range (2)");
  says([&] { index_add(x, 1, places({9}), src); }, "[index_add] index out of range (9)");
  says([&] { take(x, places({6})); }, "[index_select] index out of range (6)");
  says([&] { embedding(x, places({2})); }, "[embedding] index out of range (2)");
  says([&] { embedding_grad(places({-3}), ones({1, 4}), 2); }, "[embedding_grad] index out of range (-3)");
  says([&] { gather_nd(x, places({0, 3}, {1, 2})); }, "[gather_nd] index out of range (3)");
  says([&] { scatter_nd(x, places({2}, {1, 1}), ones({1, 3})); }, "[scatter_nd] index out of range (2)");
  says([&] { bincount(places({4}), 3); }, "[bincount] number outside the bins (4)");
  says([&] { bincount(places({-1}), 3); }, "[bincount] number outside the bins (-1)");
}

TEST(Index, AnotherCountThanPromisedIsReported) {
  const Tensor x = tensor({1, 0, 2}), mask = bools({1, 0, 1}, {3});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<ExecutionError>(f), message); };
  says([&] { nonzero(x, 1); }, "[nonzero] another number of elements than promised (2)");
  says([&] { masked_select(x, mask, 3); }, "[masked_select] another number of elements than promised (2)");
  says([&] { masked_scatter(x, mask, tensor({1})); }, "[masked_scatter] another number of elements than promised (2)");
}

TEST(Index, MistakesAreRefused) {
  const Tensor x = counted_from_one({2, 3}), at = places({0, 1}), none = zeros({0, 3}), reals = zeros({2}), wide = ones({2, 2});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<TypeError>(f), message); };
  says([&] { gather(x, reals, 0); }, "[gather] the index must be i32 or i64, not f32[2]");
  says([&] { gather(x, at, 0); }, "[gather] the index i64[2] does not fit f32[2,3] along axis 0");
  says([&] { gather(x, places({0, 0, 0}, {3, 1}), 1); }, "[gather] the index i64[3,1] does not fit f32[2,3] along axis 1");
  says([&] { gather(x, places({0}, {1, 1}), 2); }, "[gather] axis 2 is outside f32[2,3]");
  says(
      [&] {
        gather(none, places({0}, {1, 1}), 0);
      },
      "[gather] the index i64[1,1] names elements of an empty axis of f32[0,3]");
  says([&] { scatter(x, places({0}, {1, 1}), wide, 0); }, "[scatter] the source must be f32[1,1], not f32[2,2]");
  says([&] { scatter_add(bools({1, 0}, {2}), at, bools({1, 0}, {2}), 0); }, "[scatter_add] needs numbers, got bool[2]");
  says([&] { index_select(x, 0, places({0}, {1, 1})); }, "[index_select] the index needs one dimension, got i64[1,1]");
  says([&] { index_add(x, 1, at, x); }, "[index_add] the source must be f32[2,2], not f32[2,3]");
  says([&] { embedding(reals, at); }, "[embedding] the table needs two dimensions, got f32[2]");
  says([&] { embedding(none, at); }, "[embedding] the index i64[2] names elements of an empty axis of f32[0,3]");
  says([&] { embedding_grad(at, reals, 4); }, "[embedding_grad] the gradient f32[2] does not fit ids i64[2]");
  says([&] { embedding_grad(at, x, -1); }, "[embedding_grad] no table has -1 rows of 3");
  says([&] { gather_nd(x, scalar(0, DType::i64)); }, "[gather_nd] the indices need at least one dimension");
  says([&] { gather_nd(x, places({0, 0, 0})); }, "[gather_nd] tuples of 3 are too long for f32[2,3]");
  says([&] { gather_nd(x, at, 1); }, "[gather_nd] batch_dims 1 does not fit f32[2,3] and i64[2]");
  says([&] { gather_nd(x, places({0}, {1, 1}), 1); }, "[gather_nd] batch dimensions differ: f32[2,3] and i64[1,1]");
  says([&] { scatter_nd(x, at, wide); }, "[scatter_nd] the source must be f32[], not f32[2,2]");
  says([&] { scatter_nd(x, at, scalar(1), {.reduction = "mean"}); },
       "[scatter_nd] reduction is \"none\", \"add\", \"mul\", \"max\" or \"min\", not \"mean\"");
  says([&] { scatter_reduce(reals, at, reals, 0, "mean"); },
       "[scatter_reduce] reduction is \"mul\", \"max\" or \"min\", not \"mean\"");
  says([&] { scatter_reduce(reals, at, x, 0, "max"); }, "[scatter_reduce] the source must be f32[2], not f32[2,3]");
  says([&] { nonzero(x, 7); }, "[nonzero] a count of 7 does not fit f32[2,3]");
  says([&] { masked_select(x, at); }, "[masked_select] shapes do not broadcast: f32[2,3] and i64[2]");
  says([&] { masked_select(x, places({1}), 0); }, "[masked_select] the mask must be bool, not i64[2,3]");
  says([&] { masked_scatter(x, bools({1, 0}, {2}), reals); }, "[masked_scatter] the mask bool[2] does not fit f32[2,3]");
  says([&] { masked_scatter(reals, bools({1, 0}, {2}), wide); }, "[masked_scatter] the source must be f32[n], not f32[2,2]");
  says([&] { masked_scatter(reals, bools({1, 0}, {2}), zeros({3})); }, "[masked_scatter] f32[3] holds more than f32[2]");
  says(
      [&] {
        boolean_mask(x, bools({1, 0, 1}, {3}));
      },
      "[boolean_mask] the mask bool[3] does not fit the first dimensions of f32[2,3]");
  says([&] { bincount(reals); }, "[bincount] needs integers, got f32[2]");
}

}  // namespace
}  // namespace tapedeck
