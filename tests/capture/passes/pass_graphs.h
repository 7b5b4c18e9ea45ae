// Random programs for tests of passes, with views of views, casts, copies, constants, broadcasts, identities, loops,
// branches, clones, order edges, dropout, dead nodes and state. Also functions that run two graphs and compare the results.
#pragma once

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/attrs/control.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::test {

inline std::vector<Tensor> operands_of(const Graph& g, ValueId first, std::int32_t count, std::uint64_t seed) {
  std::vector<Tensor> values;
  for (ValueId v = first; v < first + count; ++v) values.push_back(default_value(g.values[v].type, seed, g.value_name(v)));
  return values;
}

inline void expect_equal_results(const EagerResult& a, const EagerResult& b) {
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (std::size_t i = 0; i < a.outputs.size(); ++i) EXPECT_TRUE(bit_equal(a.outputs[i], b.outputs[i])) << "output " << i;
  ASSERT_EQ(a.state.size(), b.state.size());
  for (std::size_t i = 0; i < a.state.size(); ++i) EXPECT_TRUE(bit_equal(a.state[i], b.state[i])) << "state " << i;
}

inline void expect_same_run(const Graph& before, const Graph& after, std::uint64_t seed) {
  ASSERT_EQ(before.n_inputs, after.n_inputs);
  ASSERT_EQ(before.n_state, after.n_state);
  const auto inputs = operands_of(before, 0, before.n_inputs, seed),
             state = operands_of(before, before.n_inputs, before.n_state, seed + 1);
  expect_equal_results(run_eagerly(before, inputs, state), run_eagerly(after, inputs, state));
}

inline void expect_near_run(const Graph& before, const Graph& after, std::uint64_t seed, double tolerance) {
  const auto inputs = operands_of(before, 0, before.n_inputs, seed),
             state = operands_of(before, before.n_inputs, before.n_state, seed + 1);
  const EagerResult a = run_eagerly(before, inputs, state), b = run_eagerly(after, inputs, state);
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    ASSERT_EQ(a.outputs[i].type(), b.outputs[i].type());
    const auto left = cast(a.outputs[i], DType::f64).to_vector<double>(),
               right = cast(b.outputs[i], DType::f64).to_vector<double>();
    for (std::size_t k = 0; k < left.size(); ++k)
      if (std::isfinite(left[k])) {
        EXPECT_NEAR(left[k], right[k], tolerance * (1 + std::fabs(left[k]))) << "output " << i << ", element " << k;
      }
  }
}

class PassProgram {
 public:
  enum class Kind { any, tame /* floats that stay small and positive operands of what needs them */ };

  explicit PassProgram(std::uint64_t seed, Kind kind = Kind::any) : random_(seed * 2654435761u + 1), kind_(kind) {}

  Graph make(int nodes) {
    const Type types[] = {
        {DType::f32, {4, 6}}, {DType::f32, {6, 4}}, {DType::f32, {6}}, {DType::f32, {}}, {DType::f32, {1, 6}}};
    for (int i = 0; i < 3; ++i) g_.add_input("x" + std::to_string(i), types[pick(5)]);
    g_.add_input("half", {DType::f16, {4, 6}});
    g_.add_input("whole", {DType::i32, {4, 6}});
    for (int s = 0; s < 3; ++s) g_.add_state("s" + std::to_string(s), types[pick(3)], Role::parameter);
    rng_ = g_.add_state("rng", {DType::i64, {2}}, Role::rng);
    for (int n = 0; n < nodes; ++n) add_any();
    finish();
    return std::move(g_);
  }

 private:
  int pick(std::size_t n) { return static_cast<int>(random_() % n); }
  bool chance(int percent) { return pick(100) < percent; }
  const Type& type(ValueId v) const { return g_.values[v].type; }

  // Picks one of the op names at random.
  const char* one_of(std::initializer_list<const char*> names) { return *(names.begin() + pick(names.size())); }

  ValueId add(const char* name, std::vector<ValueId> inputs, const void* attrs = nullptr,
              const std::vector<Region>& regions = {}) {
    const Op& op = *find_op(name);
    std::vector<Type> in, out;
    for (ValueId v : inputs) in.push_back(type(v));
    infer_types(op, in, attrs, out, regions);
    Origin origin;
    if (chance(20)) origin.phase = Phase::backward;
    if (chance(20)) origin.path = "block" + std::to_string(pick(3));
    std::vector<ValueId> after;
    if (chance(8)) origin.clone = true, origin.of = "gone";
    if (chance(5) && g_.node_count() > 0) after.push_back(g_.nodes[pick(g_.nodes.size())].first_output);
    const NodeId n = g_.add_node(op, inputs, attrs, out, origin, after, regions);
    const ValueId first = g_.nodes[n].first_output;
    for (std::size_t i = 0; i < out.size(); ++i)
      g_.values[static_cast<std::size_t>(first) + i].name = "v" + std::to_string(first + static_cast<ValueId>(i));
    return first;
  }

  ValueId any_of(DType dtype) {
    for (;;) {
      const auto v =
          static_cast<ValueId>(chance(60) && g_.value_count() > 6 ? g_.value_count() - 1 - pick(6) : pick(g_.values.size()));
      if (type(v).dtype == dtype) return v;
    }
  }
  ValueId any() { return any_of(DType::f32); }
  const Shape& shape(ValueId v) const { return type(v).shape; }

  void add_any() {
    switch (pick(16)) {
      case 0:
        add(one_of({"tanh", "relu", "neg", "sigmoid", "abs", "neg", kind_ == Kind::tame ? "tanh" : "floor"}), {any()});
        return;
      case 1:
      case 2:
        return add_binary();
      case 3:
      case 4:
        return add_view();
      case 5:
        return add_number();
      case 6:
        return add_identity();
      case 7:
        return add_casts();
      case 8:
        return add_broadcast();
      case 9:
        return add_sum();
      case 10:
        return add_product();
      case 11:
        return add_dropout();
      case 12:
        return add_scan();
      case 13:
        return add_branch();
      case 14:
        return add_twice();
      default:
        add(one_of({"copy", "alias", "stop_gradient"}), {chance(80) ? any() : any_of(chance(50) ? DType::f16 : DType::i32)});
        return;
    }
  }

  void add_binary() {
    const ValueId a = any(), b = any();
    Shape both;
    if (broadcast_shapes(shape(a), shape(b), &both)) add(one_of({"add", "mul", "sub", "maximum", "minimum"}), {a, b});
  }

  ValueId view_of(ValueId v) {
    const Shape& s = shape(v);
    switch (pick(4)) {
      case 0: {
        PermuteAttrs attrs;
        for (int i = 0; i < s.rank; ++i) attrs.axes.push_back(i);
        std::shuffle(attrs.axes.items, attrs.axes.items + s.rank, random_);
        return add("transpose", {v}, &attrs);
      }
      case 1: {
        SliceAttrs attrs;
        for (int i = 0; i < s.rank; ++i) {
          attrs.starts.push_back(s[i] > 1 ? pick(2) : 0);
          attrs.stops.push_back(s[i]);
          attrs.steps.push_back(1 + pick(2));
        }
        return add("slice", {v}, &attrs);
      }
      case 2: {
        ShapeAttrs attrs;
        const std::int64_t n = s.numel();
        if (n % 2 == 0 && chance(70))
          attrs.shape = chance(50) ? Ints{2, n / 2} : Ints{n / 2, 2};
        else
          attrs.shape = {n};
        return add("reshape", {v}, &attrs);
      }
      default: {
        ShapeAttrs attrs;
        if (s.rank < 3 && chance(50)) attrs.shape.push_back(2);
        for (int i = 0; i < s.rank; ++i) attrs.shape.push_back(s[i] == 1 ? 3 : s[i]);
        return add("broadcast_to", {v}, &attrs);
      }
    }
  }
  void add_view() {
    ValueId v = any();
    for (int k = 0, links = 1 + pick(3); k < links; ++k) v = view_of(v);
  }

  ValueId number(double value, const Shape& s, DType dtype) {
    FullAttrs attrs;
    for (std::int64_t size : s) attrs.shape.push_back(size);
    attrs.dtype = dtype;
    attrs.value = value;
    return add("full", {}, &attrs);
  }
  double some_number() {
    constexpr double numbers[] = {0, 1, -0.0, 2, -1, 0.5};
    return numbers[pick(6)];
  }
  void add_number() {
    const ValueId n = number(some_number(), chance(50) ? Shape{} : Shape{6}, DType::f32);
    if (chance(50)) add(one_of({"neg", "exp", "abs"}), {n});
  }

  void add_identity() {
    const ValueId a = any(), w = any_of(DType::i32);
    switch (pick(8)) {
      case 0:
        add("neg", {add("neg", {a})});
        return;
      case 1:
        add(one_of({"mul", "div", "sub", "add"}), {a, number(some_number() == 0 ? 1 : 1, {}, DType::f32)});
        return;
      case 2:
        add(one_of({"mul", "sub", "add"}), {a, number(some_number(), {}, DType::f32)});
        return;
      case 3:
        add(one_of({"maximum", "minimum", "sub"}), {a, a});
        return;
      case 4:
        add("relu", {add("relu", {a})});
        return;
      case 5:
        add(one_of({"mul", "add", "sub"}), {w, number(some_number() == 0 ? 0 : 1, {}, DType::i32)});
        return;
      case 6:
        add("abs", {add("neg", {a})});
        return;
      default:
        if (kind_ == Kind::tame)
          add("log", {add("exp", {add("tanh", {a})})});
        else
          add("where", {add("greater", {a, a}), a, a});
    }
  }

  void add_casts() {
    const ValueId v = any_of(chance(50) ? DType::f32 : DType::f16);
    const auto to = [&](ValueId x, DType d) {
      const CastAttrs attrs{d};
      return add("cast", {x}, &attrs);
    };
    const DType through[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
    to(to(v, through[pick(4)]), type(v).dtype);
  }

  void add_broadcast() {
    const ValueId a = any(), b = any();
    Shape both;
    if (!broadcast_shapes(shape(a), shape(b), &both)) return;
    ShapeAttrs attrs;
    for (std::int64_t s : both) attrs.shape.push_back(s);
    const ValueId wide = add("broadcast_to", {b}, &attrs);
    if (chance(30)) {
      add("mul", {wide, add("broadcast_to", {a}, &attrs)});
      return;
    }
    add(one_of({"add", "mul"}), {a, wide});
  }

  void add_sum() {
    const ValueId a = any();
    if (shape(a).rank == 0) return;
    ReduceAttrs attrs;
    attrs.axes = {pick(static_cast<std::size_t>(shape(a).rank))};
    attrs.keepdims = chance(50);
    add("sum", {a}, &attrs);
  }
  void add_product() {
    const ValueId a = any(), b = any();
    if (shape(a).rank == 2 && shape(b).rank == 2 && shape(a)[1] == shape(b)[0] && shape(a)[1] > 0) add("matmul", {a, b});
  }
  void add_dropout() {
    if (kind_ == Kind::tame) return;
    DropoutAttrs attrs;
    attrs.path = "drop." + std::to_string(pick(3));
    add("dropout", {any(), rng_}, &attrs);
  }
  // Adds two nodes that compute the same value.
  void add_twice() {
    const ValueId a = any();
    const char* op = one_of({"tanh", "sigmoid", "neg"});
    add("add", {add(op, {a}), add(op, {a})});
  }

  // A scan of up to three iterations. Some nodes of its body depend on the carried value, others only on captured values.
  void add_scan() {
    const ValueId c = any(), w = any();
    Shape both;
    if (!broadcast_shapes(shape(c), shape(w), &both) || both != shape(c)) return;
    Graph body;
    body.name = "main";
    body.add_input("i", {DType::i64, {}});
    const ValueId carried = body.add_input("c", type(c)), captured = body.add_input("w", type(w));
    const auto node = [&](const char* name, std::vector<ValueId> inputs) {
      std::vector<Type> in, out;
      for (ValueId v : inputs) in.push_back(body.values[v].type);
      infer_types(*find_op(name), in, nullptr, out);
      return body.nodes[body.add_node(*find_op(name), inputs, nullptr, out)].first_output;
    };
    const ValueId still = node(one_of({"tanh", "exp", "neg"}), {captured});
    const ValueId again = chance(50) ? node("sigmoid", {still}) : still;
    const ValueId dead = node("neg", {carried});
    (void)dead;
    body.outputs = {node("tanh", {node("add", {carried, chance(70) ? again : captured})})};
    body.output_names.resize(1);
    LoopAttrs attrs;
    attrs.carried = 1;
    attrs.trips = pick(4);
    add("scan", {c, w}, &attrs, {std::make_shared<const Graph>(std::move(body))});
  }

  void add_branch() {
    if (kind_ == Kind::tame) return;  // rounding could change which branch is taken
    const ValueId a = any(), b = any();
    const ValueId pred = scalar_truth();
    std::vector<Region> regions;
    for (int r = 0; r < 2; ++r) {
      Graph branch;
      branch.name = "main";
      const ValueId x = branch.add_input("x", type(a));
      branch.add_input("y", type(b));
      const auto node = [&](const char* name, ValueId v) {
        const ValueId in[] = {v};
        const Type out[] = {type(a)};
        return branch.nodes[branch.add_node(*find_op(name), in, nullptr, out)].first_output;
      };
      branch.outputs = {r == 0 ? node("neg", node("neg", x)) : node("tanh", node("copy", x))};
      branch.output_names.resize(1);
      regions.push_back(std::make_shared<const Graph>(std::move(branch)));
    }
    add("cond", {pred, a, b}, nullptr, regions);
  }
  ValueId scalar_truth() {
    ValueId v = any();
    if (shape(v).rank > 0) {
      ReduceAttrs attrs;
      for (int i = 0; i < shape(v).rank; ++i) attrs.axes.push_back(i);
      v = add("sum", {v}, &attrs);
    }
    return add("greater", {v, number(0, {}, DType::f32)});
  }

  void finish() {
    g_.updates.push_back({rng_, add("rng_next", {rng_})});
    for (ValueId s = g_.n_inputs; s < rng_; ++s) {
      std::vector<ValueId> fitting;
      for (ValueId v = 0; v < g_.value_count(); ++v)
        if (v != s && type(v) == type(s)) fitting.push_back(v);
      if (!fitting.empty() && chance(75)) g_.updates.push_back({s, fitting[pick(fitting.size())]});
    }
    for (int i = 0; i < 4; ++i) g_.outputs.push_back(g_.value_count() - 1 - pick(g_.values.size() / 2));
    g_.output_names.resize(g_.outputs.size());
    verify(g_);
  }

  std::mt19937_64 random_;
  Kind kind_;
  Graph g_;
  ValueId rng_ = kNone;
};

}  // namespace tapedeck::test
