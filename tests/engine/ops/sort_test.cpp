// Tests sorting as authors call it: order, ties, NaN, and gradients that follow the elements. The oracle for long lines is
// std::stable_sort.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/sort.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::message_of;
using Floats = std::vector<float>;
using Places = std::vector<std::int64_t>;

Places places_of(const Tensor& t) { return t.to_vector<std::int64_t>(); }

TEST(Sort, ValuesAndPlaces) {
  const auto [values, at] = sort(tensor({3, 1, 2}));
  EXPECT_EQ(floats_of(values), (Floats{1, 2, 3}));
  EXPECT_EQ(places_of(at), (Places{1, 2, 0}));
  EXPECT_EQ(places_of(argsort(tensor({3, 1, 2}), 0, true)), (Places{0, 2, 1}));
}

TEST(Sort, EqualElementsStayInOrderBothWays) {
  const Tensor x = tensor({1, 0, 1, -0.0f, 1});
  EXPECT_EQ(places_of(argsort(x)), (Places{1, 3, 0, 2, 4}));
  EXPECT_EQ(places_of(argsort(x, 0, true)), (Places{0, 2, 4, 1, 3}));
}

TEST(Sort, NaNIsTheLargestNumber) {
  const Tensor x = tensor({NAN, INFINITY, -INFINITY, -NAN, 0});
  EXPECT_EQ(places_of(argsort(x)), (Places{2, 4, 1, 0, 3}));
  EXPECT_EQ(places_of(argsort(x, 0, true)), (Places{0, 3, 1, 4, 2}));
}

TEST(Sort, ExtremeIntegersOfEveryWidth) {
  const std::int64_t wide[] = {0, std::numeric_limits<std::int64_t>::max(), -1, std::numeric_limits<std::int64_t>::min(), 1};
  EXPECT_EQ(places_of(argsort(from_bytes({DType::i64, {5}}, wide))), (Places{3, 2, 0, 4, 1}));
  const std::vector<std::int32_t> narrow{0, std::numeric_limits<std::int32_t>::max(), -1,
                                         std::numeric_limits<std::int32_t>::min(), 1};
  EXPECT_EQ(places_of(argsort(from_vector(narrow, {5}))), (Places{3, 2, 0, 4, 1}));
  const unsigned char bytes[] = {200, 0, 255, 100};
  EXPECT_EQ(places_of(argsort(from_bytes({DType::u8, {4}}, bytes))), (Places{1, 3, 0, 2}));
}

// Lines below and above the length from which the kernel uses radix sort, with many equal elements.
TEST(Sort, AgreesWithAStableSortOfAnyLength) {
  std::mt19937 random(7);
  for (std::int64_t n : {1, 2, 255, 256, 257, 5000}) {
    std::vector<double> line(static_cast<std::size_t>(n));
    for (double& v : line) v = static_cast<double>(random() % 200) / 7 - 13;
    Places order(line.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    auto value = [&](std::int64_t place) { return line[place]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return value(a) < value(b); });
    const Tensor x = from_bytes({DType::f64, {n}}, line.data());
    EXPECT_EQ(places_of(argsort(x)), order) << n;
    EXPECT_EQ(places_of(argsort(cast(x, DType::f32))), order) << n;
    const Tensor column = reshape(x, {n, 1});
    EXPECT_EQ(places_of(argsort(concat({column, column}, 1), 0)).front(), order.front()) << n;
    for (std::int64_t k : {std::int64_t{1}, n / 3, n}) {
      Places least(order.begin(), order.begin() + k);
      EXPECT_EQ(places_of(topk(x, k, 0, false).second), least) << n << " " << k;
      std::sort(least.begin(), least.end());
      EXPECT_EQ(places_of(topk(x, k, 0, false, false).second), least) << n << " " << k;
    }
  }
}

TEST(Sort, GradientFollowsTheElements) {
  Tensor x = tensor({3, 1, 2});
  x.requires_grad(true);
  backward(sort(x).first, {.head = tensor({1, 10, 100})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{100, 1, 10}));
}

TEST(Sort, TopkTakesTheFirstOfEquals) {
  const auto [values, at] = topk(tensor({1, 5, 2, 5, 5}), 2);
  EXPECT_EQ(floats_of(values), (Floats{5, 5}));
  EXPECT_EQ(places_of(at), (Places{1, 3}));
  EXPECT_EQ(places_of(topk(tensor({1, 9, 2, 5, 7}), 3, 0, true, false).second), (Places{1, 3, 4}));
}

TEST(Sort, GradientOfTopkIsZeroForTheOthers) {
  Tensor x = tensor({1, 9, 2, 5});
  x.requires_grad(true);
  backward(topk(x, 2).first, {.head = tensor({1, 10})});
  EXPECT_EQ(floats_of(x.grad()), (Floats{0, 1, 0, 10}));
}

TEST(Sort, KthSmallest) {
  const Tensor x = from_vector(Floats{3, 1, 2, 9, 7, 8}, {2, 3});
  const auto [values, at] = kthvalue(x, 2);
  EXPECT_EQ(floats_of(values), (Floats{2, 8}));
  EXPECT_EQ(places_of(at), (Places{2, 2}));
  EXPECT_EQ(kthvalue(x, 1, 0, true).first.shape(), (Shape{1, 3}));
}

TEST(Sort, SearchFindsTheFirstOrTheLastPlace) {
  const Tensor row = tensor({1, 3, 3, 5}), values = tensor({0, 3, 6, NAN});
  EXPECT_EQ(places_of(searchsorted(row, values)), (Places{0, 1, 4, 4}));
  EXPECT_EQ(places_of(searchsorted(row, values, true)), (Places{0, 3, 4, 4}));
  const Tensor rows = from_vector(Floats{1, 2, 3, 10, 20, 30}, {2, 3});
  EXPECT_EQ(places_of(searchsorted(rows, from_vector(Floats{2, 25}, {2, 1}))), (Places{1, 2}));
  EXPECT_EQ(searchsorted(row, 4).item(), 3);
}

TEST(Sort, MistakesAreRefused) {
  const Tensor x = zeros({3, 5});
  auto says = [](auto&& f, const char* message) { EXPECT_MENTIONS(message_of<TypeError>(f), message); };
  says([&] { sort(x, 2); }, "[sort] axis 2 is outside f32[3,5]");
  says([&] { sort(scalar(1), 1); }, "[sort] axis 1 is outside f32[]");
  says([&] { topk(x, 6); }, "[topk] k 6 does not fit axis 1 of f32[3,5]");
  says([&] { topk(x, -1); }, "[topk] k -1 does not fit axis 1 of f32[3,5]");
  says([&] { kthvalue(x, 0); }, "[kthvalue] k counts from 1, got 0");
  says([&] { searchsorted(scalar(1), x); }, "[searchsorted] the sorted operand needs at least one dimension");
  says([&] { searchsorted(x, zeros({2, 5})); }, "[searchsorted] values f32[2,5] do not fit rows f32[3,5]");
  says([&] { searchsorted(zeros({2}, DType::boolean), zeros({2}, DType::boolean)); },
       "[searchsorted] needs numbers, got bool[2]");
}

}  // namespace
}  // namespace tapedeck
