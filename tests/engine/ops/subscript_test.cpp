// Tests subscripts against an oracle that follows the text of NumPy's manual element by element, on random subscripts; then
// views, gradients and errors by hand.
#include <tapedeck/engine/ops/subscript.h>

#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/seeds.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

namespace tapedeck {
namespace {

using testing::message_of;
using Numbers = std::vector<std::int64_t>;

Shape shape_of(const Numbers& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }
Tensor integers(const Numbers& values) { return from_vector(values, Shape{static_cast<std::int64_t>(values.size())}); }
Tensor bools_of(const std::vector<int>& values) {
  return not_equal(from_vector(values, Shape{static_cast<std::int64_t>(values.size())}), 0);
}
// 0, 1, 2, ... in this shape.
Tensor numbered(const Numbers& sizes) {
  std::int64_t n = 1;
  for (std::int64_t size : sizes) n *= size;
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return from_vector(values, shape_of(sizes));
}

// ---- the oracle ----

std::int64_t count_of(const Numbers& sizes) {
  std::int64_t n = 1;
  for (std::int64_t size : sizes) n *= size;
  return n;
}

Numbers coordinates(std::int64_t at, const Numbers& sizes) {
  Numbers all(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0; at /= sizes[d]) all[d] = at % sizes[d];
  return all;
}

// An array of integers; `at` repeats axes of size 1 and missing axes.
struct Array {
  Numbers sizes, values;
  std::int64_t at(const Numbers& place) const {
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      flat = flat * sizes[d] + (sizes[d] == 1 ? 0 : place[place.size() - sizes.size() + d]);
    return values[static_cast<std::size_t>(flat)];
  }
};

// A subscript of the oracle, and the one that index() gets.
struct Item {
  Index index;
  Array array;  // of a tensor or a mask
};

// The positions that Python's slice takes of n elements.
Numbers taken_by(const Range& r, std::int64_t n) {
  const bool up = r.step > 0;
  std::int64_t start = r.start.value_or(up ? 0 : n - 1), stop = r.stop.value_or(up ? n : -n - 1);
  if (start < 0 && r.start) start += n;
  if (stop < 0) stop += n;
  start = up ? std::max<std::int64_t>(start, 0) : std::min(start, n - 1);
  Numbers taken;
  for (std::int64_t i = start; (up ? i < std::min(stop, n) : i > std::max<std::int64_t>(stop, -1)); i += r.step)
    taken.push_back(i);
  return taken;
}

// What one axis of x reads: one of these positions by the coordinate `dim` of the result, or what the array says at the common
// coordinates of all arrays.
struct AxisPlan {
  Numbers positions;
  int dim = -1;
  Array array;
};

// The flat numbers of the elements x[items], and the shape of the result.
Array chosen(const Numbers& sizes, const std::vector<Item>& items) {
  std::vector<Item> all;
  std::int64_t named = 0;
  bool tensors = false, filled = false;
  for (const Item& item : items) {
    const Index::Kind kind = item.index.kind();
    tensors |= kind == Index::Kind::tensor;
    filled |= kind == Index::Kind::ellipsis;
    if (kind == Index::Kind::position || kind == Index::Kind::range) ++named;
    if (kind == Index::Kind::tensor)
      named += item.index.tensor().dtype() == DType::boolean ? static_cast<std::int64_t>(item.array.sizes.size()) : 1;
  }
  all = items;
  if (!filled) all.push_back({ellipsis, {}});

  std::vector<AxisPlan> axes;
  Numbers basic, common;  // the sizes of the axes of the result
  std::string order;      // b: basic; a: array
  std::size_t basic_before = 0;
  auto add_array = [&](const Array& array) {
    axes.push_back({{}, -1, array});
    if (order.find('a') == order.npos) basic_before = basic.size();
    order += 'a';
    Numbers wide(std::max(common.size(), array.sizes.size()), 1);
    for (std::size_t d = 0; d < common.size(); ++d) wide[wide.size() - common.size() + d] = common[d];
    for (std::size_t d = 0; d < array.sizes.size(); ++d)
      if (array.sizes[d] != 1) wide[wide.size() - array.sizes.size() + d] = array.sizes[d];
    common = wide;
  };
  auto add_basic = [&](const Numbers& positions) {
    axes.push_back({positions, static_cast<int>(basic.size()), {}});
    basic.push_back(static_cast<std::int64_t>(positions.size()));
  };
  for (const Item& item : all) {
    const std::int64_t n = axes.size() < sizes.size() ? sizes[axes.size()] : 0;
    auto wrapped = [&](std::int64_t p) { return p < 0 ? p + n : p; };
    switch (item.index.kind()) {
      case Index::Kind::position:
        if (tensors)
          add_array({{}, {wrapped(item.index.position())}});
        else
          axes.push_back({{}, -1, {{}, {wrapped(item.index.position())}}});
        break;
      case Index::Kind::range:
        add_basic(taken_by(item.index.range(), n));
        order += 'b';
        break;
      case Index::Kind::newaxis:
        basic.push_back(1);
        order += 'b';
        break;
      case Index::Kind::ellipsis:
        for (std::int64_t left = static_cast<std::int64_t>(sizes.size()) - named; left > 0; --left)
          add_basic(taken_by({}, sizes[axes.size()]));
        order += 'b';
        break;
      case Index::Kind::tensor:
        if (item.index.tensor().dtype() == DType::boolean) {
          const Numbers& shape = item.array.sizes;
          std::vector<Numbers> columns(shape.size());
          for (std::int64_t i = 0; i < count_of(shape); ++i)
            if (item.array.values[static_cast<std::size_t>(i)])
              for (std::size_t d = 0; d < shape.size(); ++d) columns[d].push_back(coordinates(i, shape)[d]);
          for (const Numbers& column : columns) add_array({{static_cast<std::int64_t>(column.size())}, column});
        } else {
          Array array = item.array;
          for (std::int64_t& p : array.values) p = wrapped(p);
          add_array(array);
        }
    }
  }
  const std::size_t first = order.find('a'), last = order.rfind('a');
  const bool apart = first != order.npos && order.substr(first, last - first).find('b') != order.npos;
  const std::size_t front = apart ? 0 : basic_before;
  Array result;
  result.sizes = basic;
  result.sizes.insert(result.sizes.begin() + static_cast<std::ptrdiff_t>(front), common.begin(), common.end());
  for (std::int64_t i = 0; i < count_of(result.sizes); ++i) {
    const Numbers place = coordinates(i, result.sizes);
    const Numbers in_common(place.begin() + static_cast<std::ptrdiff_t>(front),
                            place.begin() + static_cast<std::ptrdiff_t>(front + common.size()));
    Numbers in_basic(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(front));
    in_basic.insert(in_basic.end(), place.begin() + static_cast<std::ptrdiff_t>(front + common.size()), place.end());
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const AxisPlan& axis = axes[d];
      flat = flat * sizes[d] + (axis.dim < 0
                                    ? axis.array.at(in_common)
                                    : axis.positions[static_cast<std::size_t>(in_basic[static_cast<std::size_t>(axis.dim)])]);
    }
    result.values.push_back(flat);
  }
  return result;
}

// ---- random subscripts ----

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  std::int64_t from(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(high - low + 1));
  }
  bool once_in(int n) { return from(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

std::optional<std::int64_t> random_end(Dice& dice, std::int64_t n) {
  if (dice.once_in(3)) return {};
  return dice.from(-n - 2, n + 2);
}

Item random_tensor(Dice& dice, std::int64_t n, const Numbers& common) {
  Array array{Numbers(common.begin() + dice.from(0, static_cast<std::int64_t>(common.size())), common.end()), {}};
  for (std::int64_t& size : array.sizes)
    if (dice.once_in(4)) size = 1;
  for (std::int64_t i = 0; i < count_of(array.sizes); ++i) array.values.push_back(dice.from(-n, n - 1));
  const Tensor t = from_vector(array.values, shape_of(array.sizes));
  return {dice.once_in(2) ? Index(t) : Index(cast(t, DType::i32)), array};
}

Item random_mask(Dice& dice, const Numbers& sizes) {
  Array array{sizes, {}};
  for (std::int64_t i = 0; i < count_of(sizes); ++i) array.values.push_back(dice.from(0, 1));
  return {not_equal(from_vector(array.values, shape_of(sizes)), 0), array};
}

std::vector<Item> random_items(Dice& dice, const Numbers& sizes) {
  const std::int64_t style = dice.from(0, 3);  // 0, 1: no tensors; 2: tensors; 3: one mask
  Numbers common;
  for (std::int64_t left = dice.from(0, 2); left > 0; --left) common.push_back(dice.from(1, 3));
  std::vector<Item> items;
  bool filled = false, masked = false;
  int added = 0;
  std::size_t axis = 0;
  const auto rank = static_cast<std::int64_t>(sizes.size());
  while (axis < sizes.size() && !dice.once_in(7)) {
    const std::int64_t n = sizes[axis];
    if (added < 2 && dice.once_in(8)) {
      items.push_back({newaxis, {}});
      ++added;
    } else if (!filled && dice.once_in(8)) {
      items.push_back({ellipsis, {}});
      axis += static_cast<std::size_t>(dice.from(0, rank - static_cast<std::int64_t>(axis)));
      filled = true;
      // What follows the ellipsis must fill the axes up to the last one.
      for (; axis < sizes.size(); ++axis)
        items.push_back(sizes[axis] > 0 ? Item{dice.from(-sizes[axis], sizes[axis] - 1), {}} : Item{Range{}, {}});
    } else if (style == 2 && n > 0 && dice.once_in(2)) {
      items.push_back(random_tensor(dice, n, common));
      ++axis;
    } else if (style == 3 && !masked && dice.once_in(2)) {
      const auto end = static_cast<std::ptrdiff_t>(dice.from(static_cast<std::int64_t>(axis) + 1, rank));
      items.push_back(random_mask(dice, Numbers(sizes.begin() + static_cast<std::ptrdiff_t>(axis), sizes.begin() + end)));
      axis = static_cast<std::size_t>(end);
      masked = true;
    } else if (n > 0 && dice.once_in(3)) {
      items.push_back({dice.from(-n, n - 1), {}});
      ++axis;
    } else {
      std::int64_t step = dice.from(-3, 3);
      if (step == 0) step = 1;
      items.push_back({Range{random_end(dice, n), random_end(dice, n), step}, {}});
      ++axis;
    }
  }
  if (dice.once_in(6)) items.push_back({newaxis, {}});
  return items;
}

std::vector<Index> indices_of(const std::vector<Item>& items) {
  std::vector<Index> all;
  for (const Item& item : items) all.push_back(item.index);
  return all;
}

struct SubscriptCase {
  Numbers sizes;
  std::vector<Item> items;
};

SubscriptCase random_case(std::uint32_t seed) {
  Dice dice(seed);
  SubscriptCase made;
  for (std::int64_t rank = dice.from(0, 4); rank > 0; --rank) made.sizes.push_back(dice.once_in(12) ? 0 : dice.from(1, 4));
  made.items = random_items(dice, made.sizes);
  return made;
}

TEST(Subscript, ReadsWhatNumPyReads) {
  for (int seed = 1; seed <= test::seeds(3000); ++seed) {
    const SubscriptCase c = random_case(static_cast<std::uint32_t>(seed));
    const Tensor x = numbered(c.sizes);
    const Array expected = chosen(c.sizes, c.items);
    const Tensor y = index(x, indices_of(c.items));
    ASSERT_EQ(y.shape(), shape_of(expected.sizes)) << "seed " << seed;
    const std::vector<double> values = y.to_vector<double>();
    ASSERT_TRUE(std::equal(values.begin(), values.end(), expected.values.begin(), expected.values.end())) << "seed " << seed;
  }
}

TEST(Subscript, PassesGradientsToTheElementsThatItReads) {
  for (int seed = 1; seed <= test::seeds(300); ++seed) {
    const SubscriptCase c = random_case(static_cast<std::uint32_t>(seed));
    const Array expected = chosen(c.sizes, c.items);
    if (expected.values.empty()) continue;
    Tensor x = numbered(c.sizes);
    x.requires_grad(true);
    std::vector<double> weights, gradient(static_cast<std::size_t>(count_of(c.sizes)));
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      weights.push_back(static_cast<double>(i * i + 1));
      gradient[static_cast<std::size_t>(expected.values[i])] += weights.back();
    }
    backward(sum(index(x, indices_of(c.items)) * from_vector(weights, shape_of(expected.sizes))));
    ASSERT_EQ(x.grad().to_vector<double>(), gradient) << "seed " << seed;
  }
}

TEST(Subscript, GivesAbstractTensorsTheSameTypes) {
  int compared = 0;
  for (int seed = 1; seed <= test::seeds(300); ++seed) {
    const SubscriptCase c = random_case(static_cast<std::uint32_t>(seed));
    const bool masks = std::any_of(c.items.begin(), c.items.end(), [](const Item& item) {
      return item.index.kind() == Index::Kind::tensor && item.index.tensor().dtype() == DType::boolean;
    });
    if (masks) continue;
    const Tensor x = abstract_tensor({DType::f64, shape_of(c.sizes)});
    ASSERT_EQ(index(x, indices_of(c.items)).type(), index(numbered(c.sizes), indices_of(c.items)).type()) << "seed " << seed;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// ---- by hand ----

bool shares_storage(const Tensor& a, const Tensor& b) { return a.impl()->storage == b.impl()->storage; }

TEST(Subscript, MakesViewsOfPositionsRangesAndNewAxes) {
  const Tensor x = numbered({4, 3, 2});
  EXPECT_TRUE(shares_storage(x, index(x, {1})));
  EXPECT_TRUE(shares_storage(x, index(x, {Range{.step = 2}, newaxis, -1, Range{.start = 1}})));
  EXPECT_TRUE(shares_storage(x, index(x, {ellipsis})));
  EXPECT_TRUE(shares_storage(x, index(transpose(x, {2, 1, 0}), {Range{}, 1, Range{1, 4, 2}})));
  EXPECT_FALSE(shares_storage(x, index(x, {Range{.step = -1}})));
  EXPECT_FALSE(shares_storage(x, index(x, {integers({0, 1})})));
  EXPECT_FALSE(shares_storage(x, index(x, {bools_of({1, 0, 1, 1})})));
  copy_(index(x, {1, Range{}, 0}), 9);
  EXPECT_EQ(index(x, {1}).to_vector<double>(), (std::vector<double>{9, 7, 9, 9, 9, 11}));
}

TEST(Subscript, TakesLongAndShortIntegersAndExtremeRanges) {
  const Tensor x = numbered({5});
  EXPECT_EQ(index(x, {std::size_t{2}}).item(), 2);
  EXPECT_EQ(index(x, {static_cast<short>(-1)}).item(), 4);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(index(x, {Range{least, most, most}}).to_vector<double>(), (std::vector<double>{0}));
  EXPECT_EQ(index(x, {Range{most, least, least}}).to_vector<double>(), (std::vector<double>{4}));
  EXPECT_EQ(index(x, {Range{most, least, -1}}).to_vector<double>(), (std::vector<double>{4, 3, 2, 1, 0}));
}

TEST(Subscript, TakesMasksBesideTensors) {
  const Tensor x = numbered({2, 3, 2});
  const Tensor y = index(x, {bools_of({1, 1}), integers({0, 2}), 1});
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{1, 11}));
  EXPECT_EQ(index(x, {bools_of({0, 1}), integers({0, 2}), Range{}}).to_vector<double>(), (std::vector<double>{6, 7, 10, 11}));
}

TEST(Subscript, WritesIntoViewsAndUnderMasks) {
  const Tensor x = numbered({2, 3});
  index_put_(x, {Range{}, 1}, 7);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0, 7, 2, 3, 7, 5}));
  index_put_(x, {0, Range{.start = 1}}, from_vector(std::vector<double>{8, 9}, {2}));
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0, 8, 9, 3, 7, 5}));
  index_put_(x, {greater(x, 6)}, -1);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0, -1, -1, 3, -1, 5}));
  EXPECT_MENTIONS(message_of<TypeError>([&] { index_put_(x, {integers({0})}, 1); }),
                  "[index_put_] tensors among the subscripts");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index_put_(x, {Range{.step = -1}}, 1); }),
                  "a range of negative step makes a copy");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index_put_(x, {greater(x, 6)}, x); }), "masked_fill_()");
  EXPECT_THROW(index_put_(x, {Range{}, 1}, from_vector(std::vector<double>{8, 9, 10}, {3})), TypeError);
}

TEST(Subscript, NamesWhatIsWrongAndWhere) {
  const Tensor x = numbered({2, 3});
  const int line = __LINE__ + 1;
  const std::string outside = message_of<TypeError>([&] { index(x, {0, 3}); });
  EXPECT_MENTIONS(outside, "[index] position 3 is outside axis 1 of f64[2,3], which has size 3");
  EXPECT_MENTIONS(outside, "subscript_test.cpp:" + std::to_string(line));
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {-3}); }),
                  "position -3 is outside axis 0 of f64[2,3], which has size 2");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {~std::uint64_t{0}}); }), "is outside axis 0");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {0, 0, 0}); }), "the subscripts name 3 axes; f64[2,3] has 2");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {ellipsis, ellipsis}); }), "only one `ellipsis`");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {Range{.step = 0}}); }), "the step of axis 0 is 0");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {x}); }), "must be i32, i64 or bool, not f64[2,3]");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {cast(integers({1, 0}), DType::u8)}); }), "not u8[2]");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {Tensor()}); }), "is undefined");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(Tensor(), {0}); }), "the tensor is undefined");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    index(x, {bools_of({1, 0, 1})});
                  }),
                  "the mask bool[3] does not fit f64[2,3] from axis 0 on");
  EXPECT_MENTIONS(message_of<TypeError>([&] { index(x, {not_equal(scalar(1), 0)}); }), "a mask needs at least one dimension");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    index(x, {integers({0, 1}), integers({0, 1, 2})});
                  }),
                  "the tensors do not broadcast to each other: i64[2], i64[3]");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    index(x, {newaxis, newaxis, newaxis, newaxis, newaxis, newaxis, newaxis});
                  }),
                  "the result would have 9 dimensions, and no tensor has more than 8");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    index(x, {reshape(integers({0}), {1, 1, 1, 1, 1, 1, 1, 1})});
                  }),
                  "the result would have 9 dimensions");
  EXPECT_THROW(index(x, {abstract_tensor({DType::boolean, {2}})}), TypeError) << "the shape depends on the mask";
  const std::string late = message_of<ExecutionError>([&] { index(x, {integers({5})}); });
  EXPECT_MENTIONS(late, "index out of range");
  EXPECT_MENTIONS(late, "subscript_test.cpp:");
}

TEST(Subscript, WorksInsideACheckpoint) {
  Tensor x = numbered({3, 4});
  x.requires_grad(true);
  const Tensor rows = integers({2, 0, 2}), y = checkpoint([&] {
                                             const Tensor part = index(x, {rows, Range{.start = 1}});
                                             return sum(part * part);
                                           });
  backward(y);
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, 2, 4, 6, 0, 0, 0, 0, 0, 36, 40, 44}));
}

}  // namespace
}  // namespace tapedeck
