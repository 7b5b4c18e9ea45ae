// Layout: the dimensions of a result lie in memory in the order that the user's function gives, outermost first.
//     %a: f32[2,3,4] = exp(%x)                       with a function that says {0,2,1}
// becomes
//     %1: f32[2,3,4] = exp(%x); %2: f32[2,4,3] = transpose(%1) {axes=[0,2,1]}; %3 = copy(%2); %a: f32[2,3,4] = transpose(%3)
//     {axes=[0,2,1]}
// The function is asked about every node with one result of at least two dimensions. Only the place of elements changes, so no
// bit of a result changes. Leaves alone: clones, nodes with order edges. Throws UsageError for an order that is no permutation.
// Passes that drop copies would undo the result, so this pass comes after them. Does nothing without a function. Cost:
// O(nodes).
#include <tapedeck/capture/analysis/liveness.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/movement.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

// The order that undoes `axes`. Throws UsageError if `axes` is no permutation of the dimensions.
PermuteAttrs undone(const Graph& graph, NodeId n, const Ints& axes) {
  const int rank = graph.values[graph.nodes[n].first_output].type.shape.rank;
  PermuteAttrs back;
  back.axes.size = rank;
  bool seen[kMaxRank] = {};
  bool right = axes.size == rank;
  for (int i = 0; right && i < rank; ++i) {
    right = axes[i] >= 0 && axes[i] < rank && !seen[axes[i]];
    if (!right) break;
    seen[axes[i]] = true;
    back.axes.items[axes[i]] = i;
  }
  if (!right)
    throw UsageError(
        fmt::format("the layout chosen for a result of {} dimensions is no permutation of them: {}", rank, graph.node_text(n)));
  return back;
}

bool is_identity(const Ints& axes) {
  for (int i = 0; i < axes.size; ++i)
    if (axes[i] != i) return false;
  return true;
}

class LayoutPass {
 public:
  LayoutPass(const Graph& graph, const LayoutChoice& choice)
      : from_(graph), choice_(choice), readers_(graph), rewriter_(graph), to_(rewriter_.graph()) {}

  Graph run() {
    for (NodeId n = 0; n < from_.node_count(); ++n) {
      rewriter_.copy(n);
      const Node& node = from_.nodes[n];
      if (node.origin.clone || node.n_after > 0) continue;
      if (node.n_outputs != 1 || from_.values[node.first_output].type.shape.rank < 2 || node.op == transpose_) continue;
      const std::optional<Ints> axes = choice_(from_, n);
      if (axes && !is_identity(*axes)) lay(n, *axes);
    }
    return rewriter_.finish();
  }

 private:
  // Whether an earlier run of the pass has done it: then one transpose reads the result, and one copy reads the transpose.
  bool is_laid(NodeId n, const Ints& axes) const {
    const auto readers = readers_.of(from_.nodes[n].first_output);
    if (readers.size() != 1 || from_.nodes[readers[0]].op != transpose_) return false;
    const Node& turned = from_.nodes[readers[0]];
    const auto copies = readers_.of(turned.first_output);
    return static_cast<const PermuteAttrs*>(from_.attributes(turned))->axes == axes && copies.size() == 1 &&
           from_.nodes[copies[0]].op == copy_;
  }

  void lay(NodeId n, const Ints& axes) {
    const PermuteAttrs there{axes}, back = undone(from_, n, axes);
    if (is_laid(n, axes) || from_.nodes[n].op == copy_) return;
    const ValueId v = from_.nodes[n].first_output;
    const Type type = from_.values[v].type;
    Type laid = type;
    for (int i = 0; i < axes.size; ++i) laid.shape.sizes[i] = type.shape[static_cast<int>(axes[i])];
    Origin origin = from_.nodes[n].origin;
    const ValueId made = rewriter_.at(v);
    const ValueId turned = add(*transpose_, made, &there, laid, origin);
    const ValueId result = add(*transpose_, add(*copy_, turned, nullptr, laid, origin), &back, type, origin);
    std::swap(to_.values[made].name, to_.values[result].name);  // readers see the result under its name
    rewriter_.replace(v, result);
  }

  ValueId add(const Op& op, ValueId operand, const void* attrs, const Type& type, const Origin& origin) {
    const ValueId operands[] = {operand};
    const Type types[] = {type};
    return to_.nodes[to_.add_node(op, operands, attrs, types, origin)].first_output;
  }

  const Graph& from_;
  const LayoutChoice& choice_;
  Readers readers_;
  Rewriter rewriter_;
  Graph& to_;
  const Op *transpose_ = &ops::transpose, *copy_ = &ops::copy;
};

}  // namespace

Graph choose_layout(Graph graph, const PassOptions& options) {
  if (!options.layout) return graph;
  return LayoutPass(graph, options.layout).run();
}

namespace {
const bool registered = register_pass({
    .name = "choose_layout",
    .aliases = {"layout"},
    .doc = "lays results in memory in the order of dimensions that the user's function chooses",
    .before = "graph g(%x: f32[2,3]) {\n  %a: f32[2,3] = exp(%x)\n  %b: f32[2,3] = neg(%a)\n  return %b\n}\n",
    .after = "graph g(%x: f32[2,3]) {\n  %1: f32[2,3] = exp(%x)\n  %2: f32[3,2] = transpose(%1) {axes=[1,0]}\n  %3: f32[3,2] = "
             "copy(%2)\n"
             "  %a: f32[2,3] = transpose(%3) {axes=[1,0]}\n  %b: f32[2,3] = neg(%a)\n  return %b\n}\n",
    .run = choose_layout,
    .asked_for = true,
    .sample = {.layout = [](const Graph& g, NodeId n) -> std::optional<Ints> {
      if (g.nodes[n].op->name == std::string_view("exp")) return Ints{1, 0};
      return std::nullopt;
    }},
});
}  // namespace

}  // namespace tapedeck
