// Tests sums of gradient pieces that cover windows of a tensor. The oracle is a plain loop over elements. Other checks count
// the zeros, additions and copies that fall away.
#include <tapedeck/engine/gradient/box_index.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/window_sum.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/gradient/run_graph.h>
#include <tapedeck/tests/engine/reference.h>

#include <algorithm>
#include <random>

namespace tapedeck::testing {
namespace {

Box random_box(const Shape& shape, std::mt19937_64& random) {
  Box box;
  box.rank = shape.rank;
  for (int d = 0; d < shape.rank; ++d) {
    const std::int64_t a = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(shape[d] + 1));
    const std::int64_t b = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(shape[d] + 1));
    box.low[d] = std::min(a, b);
    box.high[d] = std::max(a, b);
  }
  return box;
}

bool inside(const Box& box, const std::vector<std::int64_t>& at) {
  for (std::size_t d = 0; d < at.size(); ++d)
    if (at[d] < box.low[d] || at[d] >= box.high[d]) return false;
  return true;
}

SliceAttrs window_of(const Box& box) {
  SliceAttrs attrs;
  for (int d = 0; d < box.rank; ++d) {
    attrs.starts.push_back(box.low[d]);
    attrs.stops.push_back(box.high[d]);
  }
  return attrs;
}

// ---- Box: a window of a tensor ----

TEST(Box, WithoutAHoleIsTheRestInDisjointParts) {
  std::mt19937_64 random(1);
  const Shape shape{4, 5, 3};
  for (int round = 0; round < 200; ++round) {
    const Box a = random_box(shape, random), b = random_box(shape, random);
    if (!a.overlaps(b)) continue;
    const Box hole = a.common(b);
    const std::vector<Box> parts = a.without(hole);
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      const std::vector<std::int64_t> at = coordinates(i, shape);
      const auto n = std::count_if(parts.begin(), parts.end(), [&](const Box& part) { return inside(part, at); });
      EXPECT_EQ(n, inside(a, at) && !inside(hole, at) ? 1 : 0);
    }
  }
}

TEST(BoxIndex, FindsWhatALookAtEachFinds) {
  std::mt19937_64 random(2);
  const Shape shape{20, 30};
  BoxIndex index;
  std::vector<Box> boxes;
  std::vector<bool> removed;
  for (int round = 0; round < 500; ++round) {
    const Box box = random_box(shape, random);
    if (box.numel() == 0) continue;
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      if (!removed[i] && boxes[i].overlaps(box)) expected.push_back(static_cast<std::int32_t>(i));
    EXPECT_EQ(index.overlapping(box), expected);
    index.add(box, static_cast<std::int32_t>(boxes.size()));
    boxes.push_back(box);
    removed.push_back(false);
    if (round % 3 == 0) {
      const std::size_t gone = random() % boxes.size();
      index.remove(static_cast<std::int32_t>(gone));
      removed[gone] = true;
    }
  }
}

// ---- sums of pieces ----

// Adds the pieces element by element, in order; the first piece is written.
class PlainSum {
 public:
  explicit PlainSum(const Shape& shape) : shape_(shape), sum_(static_cast<std::size_t>(shape.numel())), seen_(sum_.size()) {}
  void add(const Box& box, const std::vector<float>& piece) {
    std::size_t k = 0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      if (!inside(box, coordinates(static_cast<std::int64_t>(i), shape_))) continue;
      sum_[i] = seen_[i] ? sum_[i] + piece[k] : piece[k];
      seen_[i] = true;
      ++k;
    }
  }
  const std::vector<float>& sum() const { return sum_; }

 private:
  Shape shape_;
  std::vector<float> sum_;
  std::vector<bool> seen_;
};

std::vector<float> random_piece(const Box& box, std::mt19937_64& random) {
  std::vector<float> piece(static_cast<std::size_t>(box.numel()));
  for (float& v : piece) v = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  return piece;
}

TEST(WindowSum, EqualsAPlainLoopBitForBit) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const Shape shape = round % 3 == 0 ? Shape{37} : round % 3 == 1 ? Shape{7, 9} : Shape{4, 3, 5};
    WindowSum sum({DType::f32, shape}, {});
    PlainSum plain(shape);
    const int n = static_cast<int>(random() % 12);
    for (int k = 0; k < n; ++k) {
      const Box box = random_box(shape, random);
      const std::vector<float> piece = random_piece(box, random);
      if (sum.add(from_vector(piece, box.shape()), window_of(box))) plain.add(box, piece);
    }
    const Tensor whole = sum.assemble();
    EXPECT_EQ(whole.type(), (Type{DType::f32, shape}));
    EXPECT_EQ(whole.to_vector<float>(), plain.sum()) << "round " << round;
  }
}

// Four boxes around one in the middle. No straight cut separates them.
TEST(WindowSum, APinwheelNeedsNoZeros) {
  const Graph g = parse(R"(graph g(%x: f32[3,3]) {
    %a: f32[1,2] = slice(%x) {starts=[0,0], stops=[1,2]}
    %b: f32[2,1] = slice(%x) {starts=[0,2], stops=[2,3]}
    %c: f32[1,2] = slice(%x) {starts=[2,1], stops=[3,3]}
    %d: f32[2,1] = slice(%x) {starts=[1,0], stops=[3,1]}
    %e: f32[1,1] = slice(%x) {starts=[1,1], stops=[2,2]}
    return
  })");
  GraphGradientOptions options;
  options.heads_as_inputs = true;
  const GraphGradient made = gradient_by_name(g, {"a", "b", "c", "d", "e"}, {"x"}, options);
  const auto counts = op_counts(made.graph, Phase::backward);
  EXPECT_FALSE(counts.count("full") || counts.count("pad") || counts.count("add")) << print(made.graph);
  const std::vector<Tensor> grads =
      run_gradients(made, {zeros({3, 3}), from_vector(std::vector<float>{1, 2}, {1, 2}),
                           from_vector(std::vector<float>{3, 4}, {2, 1}), from_vector(std::vector<float>{5, 6}, {1, 2}),
                           from_vector(std::vector<float>{7, 8}, {2, 1}), from_vector(std::vector<float>{9}, {1, 1})});
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{1, 2, 3, 7, 9, 4, 8, 5, 6}));
}

// Rows of a matrix arrive in mixed order and cover it. The sum must be a single concatenation.
TEST(WindowSum, W13_RunsThatTileAreOneConcatHoweverMany) {
  for (std::int64_t n : {600, 10000}) {
    Graph g;
    g.add_input("x", {DType::f32, {n}});
    std::vector<ValueId> targets;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = i * 7919 % n;  // 7919 is prime, so every row comes once
      SliceAttrs attrs{{at}, {at + 1}, {}};
      const ValueId x = 0;
      const Type one{DType::f32, {1}};
      targets.push_back(g.value_count());
      g.add_node(ops::slice, {&x, 1}, &attrs, {&one, 1});
    }
    const ValueId wrt[] = {0};
    GraphGradientOptions options;
    options.heads_as_inputs = true;
    const GraphGradient made = gradient(g, targets, wrt, options);
    EXPECT_EQ(op_counts(made.graph, Phase::backward), (std::map<std::string, int>{{"concat", 1}}));
  }
}

TEST(WindowSum, GapsAloneAreZeros) {
  const Graph g = parse(R"(graph g(%x: f32[6]) {
    %a: f32[2] = slice(%x) {starts=[1], stops=[3]}
    %b: f32[1] = slice(%x) {starts=[4], stops=[5]}
    return
  })");
  const GraphGradient made = gradient_by_name(g, {"a", "b"}, {"x"});
  auto counts = op_counts(made.graph, Phase::backward);
  EXPECT_EQ(counts["concat"], 1);
  EXPECT_EQ(counts["pad"], 0);
  EXPECT_EQ(run_gradients(made, {zeros({6})})[0].to_vector<float>(), (std::vector<float>{0, 1, 1, 0, 1, 0}));
}

// Eager backward runs the same code. For many windows of one vector, neither memory nor time may grow like the square of
// their number.
TEST(WindowSum, TenThousandRunsEagerly) {
  Tensor x = zeros({10000});
  x.requires_grad(true);
  Tensor total;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const Tensor one = slice(x, 0, i, i + 1) * static_cast<double>(i);
    total = total.defined() ? total + one : one;
  }
  backward(sum(total));
  const std::vector<float> grad = x.grad().to_vector<float>();
  for (std::size_t i = 0; i < grad.size(); ++i) ASSERT_EQ(grad[i], static_cast<float>(i));
}

// Sliding windows: each piece covers many cells. So the whole sum is written once, and pieces are added in place.
TEST(WindowSum, SlidingWindowsAddUp) {
  for (std::int64_t width : {2, 3, 16}) {
    Tensor x = zeros({64});
    x.requires_grad(true);
    std::vector<Tensor> windows;
    std::vector<float> expected(64);
    for (std::int64_t i = 0; i + width <= 64; ++i) {
      windows.push_back(slice(x, 0, i, i + width) * static_cast<double>(i + 1));
      for (std::int64_t k = i; k < i + width; ++k) expected[k] += static_cast<float>(i + 1);
    }
    backward(sum(concat(windows, 0)));
    EXPECT_EQ(x.grad().to_vector<float>(), expected) << "width " << width;
  }
}

TEST(WindowSum, SteppedWindowsAddUp) {
  Tensor x = zeros({7});
  x.requires_grad(true);
  backward(sum(slice(x, 0, 0, 7, 2) * 2) + sum(slice(x, 0, 1, 7, 2) * 3) + sum(slice(x, 0, 2, 4)));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 3, 3, 4, 2, 3, 2}));
}

// Windows of windows with every kind of overlap, and full reads between them. Eager backward and generated backward must
// give the same bits.
TEST(WindowSum, IsTheSameEagerlyAndOnGraphs) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Shape shape = seed % 2 ? Shape{11, 6} : Shape{40};
    Graph g;
    g.add_input("x", {DType::f32, shape});
    std::vector<std::string> targets;
    std::vector<ValueId> readable = {0};
    std::vector<Tensor> heads, given = {from_vector(random_piece(Box::whole(shape), random), shape)};
    for (int k = 0; k < 12; ++k) {
      const ValueId from = readable[random() % readable.size()];
      const Type type = g.values[from].type;
      Box box = random_box(type.shape, random);
      if (box.numel() == 0) box = Box::whole(type.shape);
      SliceAttrs attrs = window_of(box);
      if (random() % 8 == 0)
        for (int d = 0; d < box.rank; ++d) attrs.steps.push_back(2);
      std::vector<Type> out;
      const bool whole = random() % 5 == 0;
      const Op& op = whole ? ops::sin : ops::slice;
      infer_types(op, {&type, 1}, whole ? nullptr : &attrs, out);
      g.add_node(op, {&from, 1}, whole ? nullptr : &attrs, out);
      const ValueId v = g.value_count() - 1;
      g.values[v].name = "v" + std::to_string(v);
      targets.push_back("v" + std::to_string(v));
      readable.push_back(v);
      heads.push_back(from_vector(random_piece(Box::whole(out[0].shape), random), out[0].shape));
    }
    GraphGradientOptions options;
    options.heads_as_inputs = true;
    const GraphGradient made = gradient_by_name(g, targets, {"x"}, options);
    const std::vector<Tensor> eager = eager_gradients(g, targets, {"x"}, given, heads);
    given.insert(given.end(), heads.begin(), heads.end());
    EXPECT_TRUE(bit_equal(run_gradients(made, given)[0], eager[0])) << "seed " << seed << "\n" << print(g);
  }
}

// The gradient through windows can be differentiated again.
TEST(WindowSum, OfHigherOrder) {
  Tensor x = tensor({1, 2, 3, 4});
  x.requires_grad(true);
  const Tensor a = slice(x, 0, 0, 3), b = slice(x, 0, 1, 4);
  GradientOptions options;
  options.create_graph = true;
  const Tensor g = gradients({sum(a * a * b)}, {x}, options)[0];
  EXPECT_EQ(g.detach().to_vector<float>(), (std::vector<float>{4, 1 + 12, 4 + 24, 9}));  // 2 x0 x1; x0^2 + 2 x1 x2; ...
  EXPECT_EQ(gradients({sum(g)}, {x})[0].to_vector<float>(), (std::vector<float>{6, 12, 18, 6}));
}

}  // namespace
}  // namespace tapedeck::testing
