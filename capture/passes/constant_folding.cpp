// Constant folding: values that do not depend on a run are computed now, by the kernels of the ops, so the bits are those of a
// run.
//     %a = constant() {value=[1.0,2.0]}; %b = neg(%a); %y = add(%x, %b)
// becomes
//     %b = constant() {value=[-1.0,-2.0]}; %y = add(%x, %b)
// A result whose elements are all equal becomes a `full`, which holds no bytes between runs. Only results of at most
// `fold_bytes` are folded (a constant is held all the time), from operands of at most `fold_operand_bytes`. Leaves alone:
// effects, random ops, `opaque`, control flow, clones, nodes with order edges, views that only make a result larger, and nodes
// whose kernel reports a fault, because the run reports it. Needs dead_code after it. Cost: each folded node is computed once.
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

namespace tapedeck {

namespace {

constexpr double kMostMicroseconds = 1000;  // of one folded node, by the cost model

std::int64_t bytes_of(std::span<const Value> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0},
                         [](std::int64_t n, const Value& v) { return n + v.type.bytes(); });
}

// A quick look that fails for all nodes of most graphs: the first node to be folded reads only values of nodes without
// operands.
bool may_compute(const Graph& graph, const Node& node) {
  const auto operands = graph.inputs(node);
  return node.n_inputs > 0 && std::all_of(operands.begin(), operands.end(), [&](ValueId v) {
           return graph.values[v].node != kNone && graph.nodes[graph.values[v].node].n_inputs == 0;
         });
}

class Folder {
 public:
  Folder(const Graph& graph, const PassOptions& options) : from_(graph), options_(options), rewriter_(graph) {}

  Graph run() {
    for (NodeId n = 0; n < from_.node_count(); ++n)
      if (!fold(n)) rewriter_.copy(n);
    return rewriter_.finish();
  }

 private:
  Graph& to() { return rewriter_.graph(); }

  // Ops whose results depend on their operands and attributes alone.
  static bool pure(const Node& node) {
    return !node.op->is(kEffect) && !node.op->is(kPlanOnly) && !node.op->is(kRandom) && !node.op->is(kDeclaredTypes) &&
           node.n_regions == 0 && !node.origin.clone && node.n_after == 0 && node.n_outputs > 0;
  }

  bool reads_no_unknown(const Node& node) {
    for (ValueId v : from_.inputs(node)) {
      const NodeId maker = to().values[rewriter_.at(v)].node;
      if (maker == kNone || to().nodes[maker].n_inputs > 0) return false;
    }
    return true;
  }

  // Whether the node is worth computing now.
  bool small(const Node& node) const {
    const std::int64_t made = bytes_of(from_.output_values(node));
    std::int64_t read = 0;
    for (ValueId v : from_.inputs(node)) read += from_.values[v].type.bytes();
    if (made > options_.fold_bytes || read > options_.fold_operand_bytes) return false;
    if (node.op->is(kView) && made > read) return false;
    return cost_us(*node.op, from_.input_types(node), from_.output_types(node), from_.attributes(node)) <= kMostMicroseconds;
  }

  // The tensor that value v of the new graph always is; an undefined tensor if v is not known.
  Tensor known(ValueId v) {
    known_.resize(to().values.size());
    if (known_[v].defined() || to().values[v].node == kNone) return known_[v];
    const Node& node = to().nodes[to().values[v].node];
    const Type& type = to().values[v].type;
    if (type.bytes() > options_.fold_operand_bytes) return {};
    if (const Literal* literal = to().literal(node)) {
      if (literal->data || type.bytes() == 0)
        known_[v] = type.bytes() > 0 ? from_bytes(type, literal->data.get()) : empty(type);
    } else if (node.n_inputs == 0 && pure(node)) {
      const std::vector<Tensor> made = compute(to(), node, {});
      if (!made.empty()) known_[v] = made[v - node.first_output];
    }
    return known_[v];
  }

  // The results of the node, dense; none if the kernel reports a fault.
  static std::vector<Tensor> compute(const Graph& graph, const Node& node, const std::vector<Tensor>& operands) {
    const AbstractMode concrete(false);
    const NoGrad no_grad;
    const std::vector<Type> types = graph.output_types(node);
    try {
      std::vector<Tensor> results;
      for (const Tensor& t : execute(*node.op, operands, graph.attributes(node), types, {})) {
        std::vector<std::max_align_t> bytes((static_cast<std::size_t>(t.bytes()) + sizeof(std::max_align_t) - 1) /
                                            sizeof(std::max_align_t));
        t.copy_to(bytes.data(), static_cast<std::size_t>(t.bytes()), dtype_size(t.dtype()));
        results.push_back(t.bytes() > 0 ? from_bytes(t.type(), bytes.data()) : empty(t.type()));
      }
      return results;
    } catch (const Error&) {
      return {};
    }
  }

  bool fold(NodeId n) {
    const Node& node = from_.nodes[n];
    if (node.n_inputs == 0 || !reads_no_unknown(node) || !pure(node) || !small(node)) return false;
    std::vector<Tensor> operands;
    for (ValueId v : from_.inputs(node)) {
      operands.push_back(known(rewriter_.at(v)));
      if (!operands.back().defined()) return false;
    }
    const std::vector<Tensor> results = compute(from_, node, operands);
    if (results.empty()) return false;
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      const ValueId old_value = node.first_output + i;
      const ValueId v = add_known(results[i], node.origin);
      to().values[v].name = from_.values[old_value].name;
      rewriter_.replace(old_value, v);
    }
    return true;
  }

  ValueId add_known(const Tensor& t, const Origin& origin) {
    const Type types[] = {t.type()};
    const std::optional<FullAttrs> attrs = as_full(t);
    const ValueId v =
        attrs ? to().nodes[to().add_node(ops::full, {}, &*attrs, types, origin)].first_output : add_constant(t, origin);
    known_.resize(to().values.size());
    known_[v] = t;
    return v;
  }

  ValueId add_constant(const Tensor& t, const Origin& origin) {
    const std::shared_ptr<void> bytes(::operator new(static_cast<std::size_t>(t.bytes()) + 1),
                                      [](void* p) { ::operator delete(p); });
    if (t.bytes() > 0) std::memcpy(bytes.get(), t.data(), static_cast<std::size_t>(t.bytes()));
    const Type types[] = {t.type()};
    const ConstantAttrs attrs{{to().add_constant({t.type(), bytes, Name()})}};
    return to().nodes[to().add_node(ops::constant, {}, &attrs, types, origin)].first_output;
  }

  // The attributes of the `full` that makes exactly the bits of t, if there is one.
  static std::optional<FullAttrs> as_full(const Tensor& t) {
    if (t.numel() == 0) return std::nullopt;
    const std::size_t step = dtype_size(t.dtype());
    const auto* bytes = static_cast<const unsigned char*>(t.data());
    for (std::int64_t i = 1; i < t.numel(); ++i)
      if (std::memcmp(bytes, bytes + static_cast<std::size_t>(i) * step, step) != 0) return std::nullopt;
    const Type scalar{t.dtype(), {}};
    const NoGrad no_grad;
    double value = 0;
    const CastAttrs to_f64{DType::f64};
    const Type f64[] = {{DType::f64, {}}};
    const Tensor one[] = {from_bytes(scalar, bytes)};
    execute(ops::cast, one, &to_f64, f64, {})[0].copy_to(&value, sizeof value, sizeof value);
    FullAttrs attrs{{}, t.dtype(), value};
    const Tensor again = execute(ops::full, {}, &attrs, std::span<const Type>(&scalar, 1), {})[0];
    if (std::isnan(value) || std::memcmp(again.data(), bytes, step) != 0) return std::nullopt;
    for (std::int64_t s : t.shape()) attrs.shape.push_back(s);
    return attrs;
  }

  const Graph& from_;
  const PassOptions& options_;
  Rewriter rewriter_;
  std::vector<Tensor> known_;  // by value of the new graph
};

}  // namespace

Graph constant_folding(Graph graph, const PassOptions& options) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return may_compute(graph, node); }))
    return graph;
  // A capture around this code must not record the ops, and must not take the reading of results for a host read.
  const Scoped<Recorder*> tape(thread_state().tape, thread_state().own.get());
  return Folder(graph, options).run();
}

namespace {
const bool constant_folding_pass = register_pass({
    .name = "constant_folding",
    .aliases = {"fold", "fold_constants"},
    .doc = "computes now what does not depend on any input or state",
    .before = "graph g(%x: f32[2]) {\n  %b: f32[2] = constant() {value=[-1.0,-2.0]}\n  %c: f32[2] = neg(%b)\n  %y: f32[2] = "
              "add(%x, %c)\n"
              "  return %y\n}\n",
    .after =
        "graph g(%x: f32[2]) {\n  _: f32[2] = constant() {value=[-1.0,-2.0]}\n  %c: f32[2] = constant() {value=[1.0,2.0]}\n"
        "  %y: f32[2] = add(%x, %c)\n  return %y\n}\n",
    .run = constant_folding,
});
}  // namespace

}  // namespace tapedeck
