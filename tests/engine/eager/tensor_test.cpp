// Tests tensors alone: handles, views, reading, making, promotion. Expected values are written by hand.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;
using testing::message_of;

Tensor floats(const Floats& values, const Shape& shape) { return from_vector(values, shape); }
Tensor integers(const std::vector<std::int32_t>& values) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())});
}
Tensor of_type(DType dtype) { return full({2}, 1, dtype); }

// ---- views ----

TEST(Tensor, ViewsShareStorage) {
  Tensor base = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor flat = reshape(base, {6}), turned = transpose(base, {1, 0}), column = slice(base, 1, 1, 2);
  static_cast<float*>(base.mutable_data())[1] = 20;
  EXPECT_EQ(flat.to_vector<float>(), (Floats{1, 20, 3, 4, 5, 6}));
  EXPECT_EQ(turned.to_vector<float>(), (Floats{1, 4, 20, 5, 3, 6}));
  EXPECT_EQ(column.to_vector<float>(), (Floats{20, 5}));
  EXPECT_FALSE(turned.dense());
  EXPECT_EQ(copy(turned).to_vector<float>(), turned.to_vector<float>());
  EXPECT_TRUE(copy(turned).dense());
}

TEST(Tensor, AViewKeepsItsStorageAlive) {
  Tensor row;
  {
    const Tensor base = floats({1, 2, 3, 4}, {2, 2});
    row = slice(base, 0, 1, 2);
  }
  EXPECT_EQ(row.to_vector<float>(), (Floats{3, 4}));
}

TEST(Tensor, ReshapeOfStridedDataCopies) {
  Tensor base = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor flat = reshape(transpose(base, {1, 0}), {6});
  EXPECT_EQ(flat.to_vector<float>(), (Floats{1, 4, 2, 5, 3, 6}));
  static_cast<float*>(base.mutable_data())[0] = 9;
  EXPECT_EQ(flat.to_vector<float>()[0], 1);
}

TEST(Tensor, ReshapeFindsTheMissingSize) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {6});
  EXPECT_EQ(reshape(x, {2, -1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(reshape(x, {-1}).shape(), (Shape{6}));
  EXPECT_EQ(reshape(x, {-1, 6, 1}).shape(), (Shape{1, 6, 1}));
  EXPECT_THROW(reshape(x, {-1, 4}), TypeError);
  EXPECT_THROW(reshape(x, {-1, -1}), TypeError);
  EXPECT_THROW(reshape(x, {0, -1}), TypeError);
  EXPECT_THROW(reshape(x, {-2, 3}), TypeError);
  EXPECT_THROW(reshape(x, {-2, -3}), TypeError);
  EXPECT_THROW(reshape(x, {7}), TypeError);
}

TEST(Tensor, SliceClampsAsPythonDoes) {
  const Tensor x = floats({0, 1, 2, 3, 4}, {5});
  auto cut = [&](std::int64_t start, std::int64_t stop) { return slice(x, 0, start, stop).to_vector<float>(); };
  EXPECT_EQ(cut(1, 3), (Floats{1, 2}));
  EXPECT_EQ(cut(-2, 5), (Floats{3, 4}));
  EXPECT_EQ(cut(0, -1), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(cut(3, 100), (Floats{3, 4}));
  EXPECT_EQ(cut(-100, 2), (Floats{0, 1}));
  EXPECT_EQ(cut(4, 2), (Floats{}));
  EXPECT_EQ(cut(100, 200), (Floats{}));
  EXPECT_THROW(slice(x, 1, 0, 1), TypeError);
  EXPECT_THROW(slice(x, -2, 0, 1), TypeError);
}

TEST(Tensor, TransposeRefusesWhatIsNoPermutation) {
  const Tensor x = floats({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(transpose(x, {-1, 0}).to_vector<float>(), (Floats{1, 3, 2, 4}));
  EXPECT_THROW(transpose(x, {0, 0}), TypeError);
  EXPECT_THROW(transpose(x, {0}), TypeError);
  EXPECT_THROW(transpose(x, {0, 2}), TypeError);
  EXPECT_THROW(transpose(x, {-3, 0}), TypeError);
}

TEST(Tensor, SizeCountsFromEitherEnd) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(x.size(0), 2);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_THROW(x.size(2), TypeError);
  EXPECT_THROW(x.size(-3), TypeError);
}

// ---- reading and making ----

TEST(Tensor, ItemConvertsTheOneElement) {
  EXPECT_EQ(scalar(2.5).item(), 2.5);
  EXPECT_EQ(scalar(-7, DType::i64).item(), -7);
  EXPECT_EQ(scalar(200, DType::u8).item(), 200);
  EXPECT_EQ(scalar(3, DType::boolean).item(), 1);
  EXPECT_EQ(floats({4}, {1, 1}).item(), 4);
  EXPECT_EQ(slice(tensor({1, 2, 3}), 0, 2, 3).item(), 3);
  EXPECT_THROW(tensor({1, 2}).item(), TypeError);
  EXPECT_THROW(zeros({0}).item(), TypeError);
}

TEST(Tensor, ToVectorChecksTheElementSize) {
  EXPECT_THROW(tensor({1, 2}).to_vector<double>(), TypeError);
  EXPECT_EQ(of_type(DType::boolean).to_vector<unsigned char>(), (std::vector<unsigned char>{1, 1}));
  EXPECT_EQ(zeros({0, 3}).to_vector<float>(), Floats{});
}

TEST(Tensor, FromVectorChecksTheCount) {
  EXPECT_THROW(floats({1, 2, 3}, {2, 2}), TypeError);
  EXPECT_THROW(floats({}, {1}), TypeError);
  EXPECT_EQ(floats({}, {0, 4}).numel(), 0);
}

TEST(Tensor, UndefinedOnesAreErrorsToUse) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_THROW(none.shape(), TypeError);
  EXPECT_THROW(none.item(), TypeError);
  EXPECT_THROW(none.detach(), TypeError);
  EXPECT_THROW(none + tensor({1}), TypeError);
  EXPECT_THROW(none + 1, TypeError);
  EXPECT_THROW(relu(none), TypeError);
  EXPECT_THROW(sum(none), TypeError);
  EXPECT_THROW(reshape(none, {1}), TypeError);
  EXPECT_THROW(softmax(none), TypeError);
  EXPECT_THROW(concat({none}, 0), TypeError);
  EXPECT_THROW(concat({tensor({1}), none}, 0), TypeError);
  EXPECT_THROW(cast(none, DType::f64), TypeError);
  EXPECT_THROW(matmul(none, none), TypeError);
  EXPECT_THROW(where(none, 1, 2), TypeError);
  EXPECT_THROW(dropout(none, 0.5), TypeError);
}

TEST(Tensor, AbstractOnesHaveATypeAndNoData) {
  const Tensor x = abstract_tensor({DType::f32, {64, 784}});
  EXPECT_TRUE(x.abstract());
  EXPECT_EQ(to_string(matmul(x, abstract_tensor({DType::f32, {784, 10}})).type()), "f32[64,10]");
  EXPECT_THROW(x.item(), TypeError);
  EXPECT_THROW(x.to_vector<float>(), TypeError);
  EXPECT_THROW(x.data(), TypeError);
  EXPECT_TRUE((x + ones({784})).abstract()) << "one abstract operand is enough";
}

// The reshape would have to copy 2^40 elements.
TEST(Tensor, AbstractModeCopiesNoElementsForAView) {
  const Tensor expanded = broadcast_to(ones({2, 1}), {2, std::int64_t{1} << 39});
  const AbstractMode types;
  const Tensor row = reshape(expanded, {std::int64_t{1} << 40});
  EXPECT_TRUE(row.abstract());
  EXPECT_EQ(to_string(row.type()), "f32[1099511627776]");
}

TEST(Tensor, BitEqualSeesTypesAndSignsOfZero) {
  EXPECT_TRUE(bit_equal(tensor({1, 2}), tensor({1, 2})));
  EXPECT_FALSE(bit_equal(tensor({0}), tensor({-0.0f})));
  EXPECT_FALSE(bit_equal(floats({1, 2}, {2}), floats({1, 2}, {1, 2})));
  const Tensor x = floats({1, 2, 3, 4}, {2, 2});
  EXPECT_TRUE(bit_equal(transpose(x, {1, 0}), floats({1, 3, 2, 4}, {2, 2})));
  EXPECT_TRUE(bit_equal(zeros({0}), zeros({0})));
}

// ---- broadcasting and promotion ----

TEST(Broadcasting, FollowsNumPy) {
  EXPECT_EQ((floats({1, 2}, {2, 1}) + floats({10, 20, 30}, {3})).to_vector<float>(), (Floats{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ((zeros({0, 3}) + zeros({1, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ((zeros({0}) + scalar(1)).shape(), (Shape{0}));
  EXPECT_EQ((zeros({1}) + zeros({0})).shape(), (Shape{0}));
  EXPECT_THROW(zeros({2}) + zeros({3}), TypeError);
  EXPECT_THROW(zeros({0}) + zeros({2}), TypeError);
  EXPECT_EQ(broadcast_to(tensor({1, 2}), {2, 2}).to_vector<float>(), (Floats{1, 2, 1, 2}));
  EXPECT_THROW(broadcast_to(tensor({1, 2}), {3}), TypeError);
}

TEST(Promotion, TakesTheLaterDtype) {
  const DType order[] = {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f32, DType::f64};
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 6; ++b)
      EXPECT_EQ(promoted("test", of_type(order[a]), of_type(order[b])).first.dtype(), order[std::max(a, b)]) << a << ' ' << b;
}

TEST(Promotion, NumbersTakeTheTensorsDtype) {
  EXPECT_EQ((integers({1, 2}) + 1).dtype(), DType::i32);
  EXPECT_EQ((1 - integers({1, 2})).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ((integers({1, 2}) * 0.5).dtype(), DType::f32);
  EXPECT_EQ((integers({1, 2}) * 0.5).to_vector<float>(), (Floats{0.5f, 1}));
  EXPECT_EQ((tensor({1}) * 2).dtype(), DType::f32);
  EXPECT_EQ((of_type(DType::f64) * 0.1).to_vector<double>()[0], 0.1) << "not rounded to float on the way";
  EXPECT_EQ((of_type(DType::boolean) + 1).dtype(), DType::i64);
  EXPECT_EQ((of_type(DType::u8) + 1).dtype(), DType::u8);
}

TEST(Promotion, ComparesAcrossDtypes) {
  EXPECT_EQ(less(integers({1, 2, 3}), 2.5).to_vector<unsigned char>(), (std::vector<unsigned char>{1, 1, 0}));
  EXPECT_EQ(equal(integers({1, 2}), tensor({1, 3})).dtype(), DType::boolean);
}

TEST(Promotion, WhereChoosesBetweenNumbers) {
  const Tensor c = less(tensor({1, 5}), 3);
  EXPECT_EQ(where(c, tensor({1, 1}), 0).to_vector<float>(), (Floats{1, 0}));
  EXPECT_EQ(where(c, 1, 0).dtype(), DType::i64);
}

TEST(IntegerDivision, ByZeroIsAnError) {
  EXPECT_EQ(div(integers({7, -7}), integers({2, 2})).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, -3}));
  EXPECT_THROW(div(integers({1, 1}), integers({1, 0})), ExecutionError);
}

}  // namespace
}  // namespace tapedeck
