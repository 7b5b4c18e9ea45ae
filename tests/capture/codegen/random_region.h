// Random regions of elementwise nodes over all types, with operands that are broadcast, transposed or padded.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/tests/capture/codegen/fused_case.h>

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::test {

inline ValueId append(Graph* g, const Op& op, const std::vector<ValueId>& inputs, const void* attrs = nullptr) {
  std::vector<Type> in, out;
  for (ValueId v : inputs) in.push_back(g->values[v].type);
  infer_types(op, in, attrs, out);
  return g->nodes[g->add_node(op, inputs, attrs, out)].first_output;
}

inline void give(Graph* g, ValueId v) {
  g->outputs.push_back(v);
  g->output_names.emplace_back();
}

class RandomRegion {
 public:
  // `exact`: only ops whose results have the same bits on every device, so no f64 functions of a math library.
  explicit RandomRegion(std::uint64_t seed, bool exact = false) : random_(seed), exact_(exact) {}

  FusedCase make(const std::string& name) {
    const Shape shapes[] = {{257}, {6, 8}, {3, 5, 16}, {4, 3, 7}, {2, 3, 2, 8}, {1, 40}, {}, {5, 1, 12}};
    shape_ = shapes[pick(8)];
    for (const DType dtype : kTypes) add_input(dtype, shape_);
    for (int i = 0; i < 4; ++i) add_input(kTypes[pick(std::size(kTypes))], smaller());
    const int nodes = 1 + pick(14);
    for (int i = 0; i < nodes; ++i) add_any();
    std::vector<ValueId> made;
    for (const Node& node : g_.nodes) made.push_back(node.first_output);
    give(&g_, made.back());
    for (std::size_t k = 0; k + 1 < made.size(); ++k)
      if (pick(5) == 0) give(&g_, made[k]);
    std::vector<Tensor> operands;
    std::vector<Placement> places;
    for (ValueId v = 0; v < g_.n_inputs; ++v) operands.push_back(test::random_tensor(g_.values[v].type, random_));
    for (std::size_t k = 0; k < operands.size() + g_.outputs.size(); ++k)
      places.push_back(pick(3) > 0 ? Placement::dense : pick(2) == 0 ? Placement::columns : Placement::padded);
    FusedCase fused(std::move(g_), name, operands, places);
    fused.layout.long_index = pick(4) == 0;
    return fused;
  }

 private:
  static constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                     DType::i32, DType::i64, DType::u8,  DType::boolean};

  int pick(std::size_t n) { return static_cast<int>(random_() % n); }
  const char* one_of(std::initializer_list<const char*> names) { return *(names.begin() + pick(names.size())); }
  const Type& type(ValueId v) const { return g_.values[v].type; }

  void add_input(DType dtype, const Shape& shape) { g_.add_input(fmt::format("x{}", g_.n_inputs), {dtype, shape}); }

  // A shape that broadcasts to that of the region.
  Shape smaller() {
    const int kept = pick(static_cast<std::size_t>(shape_.rank) + 1);
    Shape s;
    s.rank = kept;
    for (int d = 0; d < kept; ++d) s[d] = pick(2) == 0 ? 1 : shape_[shape_.rank - kept + d];
    return s;
  }

  // A value of the type; `full`: of the shape of the region. Each type has an input of the full shape.
  ValueId any_of(DType dtype, bool full) {
    for (;;) {
      const ValueId v =
          pick(2) == 0 ? g_.value_count() - 1 - pick(std::min<std::size_t>(g_.values.size(), 5)) : pick(g_.values.size());
      if (type(v).dtype == dtype && (!full || type(v).shape == shape_)) return v;
    }
  }

  void add(const char* name, const std::vector<ValueId>& inputs, const void* attrs = nullptr) {
    append(&g_, *find_op(name), inputs, attrs);
  }

  void add_any() {
    const DType dtype = kTypes[pick(std::size(kTypes))];
    const ValueId x = any_of(dtype, true), y = any_of(dtype, false);
    switch (pick(6)) {
      case 0: {
        const CastAttrs attrs{kTypes[pick(std::size(kTypes))]};
        return add("cast", {x}, &attrs);
      }
      case 1:
        return add("where", {any_of(DType::boolean, false), x, y});
      case 2:
        if (dtype == DType::boolean) return add(one_of({"logical_and", "logical_or", "logical_xor"}), {x, y});
        return add(one_of({"less", "equal", "greater_equal"}), {x, y});
      default:
        if (dtype == DType::boolean) return add("logical_not", {x});
        if (is_floating(dtype) && pick(2) == 0) return add_function(x, y);
        return add(one_of({"add", "sub", "mul", "maximum", "minimum"}), {x, y});
    }
  }

  void add_function(ValueId x, ValueId y) {
    if (pick(4) == 0) {
      const ClampAttrs attrs{-1.25, 2.5};
      return add("clamp", {x}, &attrs);
    }
    if (pick(3) == 0) return add("add_n", {x, x, x});
    if (pick(3) == 0) return add("div", {x, y});
    if (exact_ && type(x).dtype == DType::f64) return add(one_of({"neg", "sqrt", "square"}), {x});
    add(one_of({"exp", "tanh", "sigmoid", "silu", "neg", "sqrt", "erf", exact_ ? "log" : "sin"}), {x});
  }

  std::mt19937_64 random_;
  bool exact_;
  Graph g_;
  Shape shape_;
};

}  // namespace tapedeck::test
