// Random graphs for replays: state, views, results computed in place, random draws, and values that are read again much
// later.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::test {

struct Dice {
  std::uint64_t state;
  std::int64_t below(std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(n));
  }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[below(static_cast<std::int64_t>(items.size()))];
  }
};

// Builds a program node by node. Any value may be read again, returned or stored as state.
class RandomGraph {
 public:
  // `rows`: slices may also take one row or column, which the next op broadcasts.
  explicit RandomGraph(std::uint64_t seed, bool rows = false) : dice_{seed * 0x9E3779B97F4A7C15u + 1}, rows_(rows) {}

  Graph make(int nodes) {
    const Type types[] = {
        {DType::f32, {4, 6}}, {DType::f32, {6, 4}}, {DType::f32, {4, 4}}, {DType::f32, {6}}, {DType::f32, {}}};
    for (int i = 0; i < 3; ++i) g_.add_input("x" + std::to_string(i), types[dice_.below(5)]);
    for (int s = 0; s < 4; ++s) g_.add_state("s" + std::to_string(s), types[dice_.below(3)], Role::parameter);
    rng_ = g_.add_state("rng", {DType::i64, {2}}, Role::rng);
    for (int n = 0; n < nodes; ++n) add_any();
    finish();
    return std::move(g_);
  }

 private:
  void add(const char* name, std::initializer_list<ValueId> inputs, const void* attrs = nullptr) {
    const Op& op = *find_op(name);
    std::vector<Type> in, out;
    for (ValueId v : inputs) in.push_back(g_.values[v].type);
    infer_types(op, in, attrs, out);
    g_.add_node(op, std::vector<ValueId>(inputs), attrs, out);
  }

  // An f32 value whose elements are not too large.
  ValueId any() {
    for (;;) {
      const auto v = static_cast<ValueId>(dice_.below(g_.value_count()));
      if (g_.values[v].type.dtype == DType::f32) return v;
    }
  }
  const Shape& shape(ValueId v) const { return g_.values[v].type.shape; }

  void add_any() {
    const ValueId a = any(), b = any();
    switch (dice_.below(12)) {
      case 0:
        return add(dice_.pick<const char*>({"tanh", "relu", "neg", "sigmoid", "copy"}), {a});
      case 1:
      case 2:
        return add_binary(a, b);
      case 3:
        return add_transpose(a);
      case 4:
        return add_slice(a);
      case 5:
        return add_reshape(a);
      case 6:
        return add_matmul(a, b);
      case 7:
        return add_sum(a);
      case 8:
        return add_opaque(a, b);
      case 9:
      case 10:
        return add_concat(a, b);
      default:
        return add_dropout(a);
    }
  }

  void add_binary(ValueId a, ValueId b) {
    Shape both;
    if (broadcast_shapes(shape(a), shape(b), &both)) add(dice_.pick<const char*>({"add", "mul", "sub", "maximum"}), {a, b});
  }
  // Combines the last value with a value of the type of `a`.
  void add_binary_like(ValueId a) {
    const ValueId last = g_.value_count() - 1;
    for (int tries = 0; tries < 8; ++tries)
      if (const ValueId b = any(); b != a && b != last && shape(b) == shape(a)) return add_binary(last, b);
  }
  void add_transpose(ValueId a) {
    PermuteAttrs attrs;
    for (int i = shape(a).rank - 1; i >= 0; --i) attrs.axes.push_back(i);
    add("transpose", {a}, &attrs);
  }
  void add_slice(ValueId a) {
    SliceAttrs attrs;
    for (int i = 0; i < shape(a).rank; ++i) {
      const std::int64_t start = shape(a)[i] > 1 ? dice_.below(2) : 0;
      attrs.starts.push_back(start);
      attrs.stops.push_back(rows_ && shape(a)[i] > 1 && dice_.below(2) == 0 ? start + 1 : shape(a)[i]);
    }
    add("slice", {a}, &attrs);
    if (rows_) add_binary_like(a);
  }
  void add_reshape(ValueId a) {
    ShapeAttrs attrs;
    const std::int64_t n = shape(a).numel();
    if (n % 2 == 0 && dice_.below(2))
      attrs.shape = {2, n / 2};
    else
      attrs.shape = {n};
    add("reshape", {a}, &attrs);
  }
  void add_matmul(ValueId a, ValueId b) {
    if (shape(a).rank >= 2 && shape(b).rank >= 2 && shape(a)[shape(a).rank - 1] == shape(b)[shape(b).rank - 2])
      add("matmul", {a, b});
  }
  void add_concat(ValueId a, ValueId b) {
    if (shape(a).rank == 0 || shape(a).numel() > 200) return;
    AxisAttrs attrs;
    attrs.axis = dice_.below(shape(a).rank);
    Shape like = shape(b);
    if (like.rank == shape(a).rank) like.sizes[attrs.axis] = shape(a).sizes[attrs.axis];
    if (like == shape(a))
      add("concat", {a, b}, &attrs);
    else if (dice_.below(3) == 0)
      add("concat", {a, a}, &attrs);
  }
  void add_sum(ValueId a) {
    if (shape(a).rank == 0) return;
    ReduceAttrs attrs;
    attrs.axes = {dice_.below(shape(a).rank)};
    attrs.keepdims = dice_.below(2) == 0;
    add("sum", {a}, &attrs);
  }
  void add_opaque(ValueId a, ValueId b) {
    OpaqueAttrs attrs;
    attrs.us = static_cast<double>(dice_.below(20));
    const ValueId inputs[] = {a, b};
    const Type outputs[] = {{DType::u8, {dice_.below(200)}}, g_.values[a].type};
    g_.add_node(*find_op("opaque"), inputs, &attrs, outputs);
  }
  void add_dropout(ValueId a) {
    DropoutAttrs attrs;
    attrs.path = "drop." + std::to_string(g_.node_count());
    add("dropout", {a, rng_}, &attrs);
  }

  // A state value may be updated to any value of its type: the old value of another state, an input, a view, or a value that
  // updates another state too.
  void finish() {
    add("rng_next", {rng_});
    g_.updates.push_back({rng_, g_.value_count() - 1});
    for (ValueId s = g_.n_inputs; s < rng_; ++s) {
      std::vector<ValueId> fitting;
      for (ValueId v = 0; v < g_.value_count(); ++v)
        if (v != s && g_.values[v].type == g_.values[s].type) fitting.push_back(v);
      if (!fitting.empty() && dice_.below(4) > 0) g_.updates.push_back({s, dice_.pick(fitting)});
    }
    for (int i = 0; i < 4; ++i) g_.outputs.push_back(static_cast<ValueId>(dice_.below(g_.value_count())));
    g_.output_names.resize(g_.outputs.size());
    verify(g_);
  }

  Dice dice_;
  bool rows_;
  Graph g_;
  ValueId rng_ = kNone;
};

}  // namespace tapedeck::test
