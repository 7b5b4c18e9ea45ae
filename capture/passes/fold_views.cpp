// View folding: a view of a view becomes one view if one op can express it, and no view if it shows the operand as it is.
//     %a = transpose(%x) {axes=[1,0]}; %b = transpose(%a) {axes=[1,0]}; %c = reshape(%b) {shape=[24]}; %d = reshape(%c)
//     {shape=[2,12]}
// becomes, apart from nodes that are dead then,
//     %d = reshape(%x) {shape=[2,12]}
// Asks the view rules of the ops: the window (offset and strides) of a chain of views on dense bytes says where each element
// is. A reshape, transpose, slice or broadcast_to with the same window is the same value. Leaves alone: views through which no
// gradient passes, clones, nodes with order edges, chains whose window no single op has. Leaves dead views behind for
// dead_code. Cost: O(nodes), because at most kMostLinks views of a chain are looked at.
#include <tapedeck/capture/passes/marks.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/movement.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace tapedeck {

namespace {

constexpr int kMostLinks = 8;

struct Strided {
  std::int64_t offset = 0;
  std::int64_t strides[kMaxRank] = {};
};

Strided dense_window(const Shape& shape) {
  Strided w;
  dense_strides(shape, w.strides);
  return w;
}

// Strides of dimensions of size 1 mean nothing.
bool same_window(const Shape& shape, const Strided& a, const Strided& b) {
  if (a.offset != b.offset) return false;
  for (int i = 0; i < shape.rank; ++i)
    if (shape[i] != 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

std::optional<Strided> window_through(const Op& op, const void* attrs, const Type& from, const Strided& window,
                                      const Type& to) {
  Strided result;
  if (!op.view(from, window.strides, attrs, to, &result.offset, result.strides)) return std::nullopt;
  result.offset += window.offset;
  return result;
}

// ---- one op that has a given window on dense bytes ----

struct OneView {
  const Op* op = nullptr;
  ShapeAttrs shape;      // reshape, broadcast_to
  PermuteAttrs permute;  // transpose
  SliceAttrs slice;

  const void* attrs() const {
    if (op->attrs == &attr_schema<PermuteAttrs>()) return &permute;
    if (op->attrs == &attr_schema<SliceAttrs>()) return &slice;
    return &shape;
  }
};

Ints sizes_of(const Shape& shape) {
  Ints sizes;
  for (std::int64_t s : shape) sizes.push_back(s);
  return sizes;
}

// The axes in the order of their strides.
std::optional<PermuteAttrs> as_permutation(const Shape& from, const Shape& to, const Strided& window) {
  if (from.rank != to.rank || window.offset != 0) return std::nullopt;
  const Strided dense = dense_window(from);
  PermuteAttrs attrs;
  bool used[kMaxRank] = {};
  for (int i = 0; i < to.rank; ++i) {
    int axis = 0;
    while (axis < from.rank && (used[axis] || from[axis] != to[i] || (to[i] != 1 && dense.strides[axis] != window.strides[i])))
      ++axis;
    if (axis == from.rank) return std::nullopt;
    used[axis] = true;
    attrs.axes.push_back(axis);
  }
  return attrs;
}

std::optional<SliceAttrs> as_slice(const Shape& from, const Shape& to, const Strided& window) {
  if (from.rank != to.rank) return std::nullopt;
  const Strided dense = dense_window(from);
  std::int64_t rest = window.offset;
  SliceAttrs attrs;
  bool stepped = false;
  Ints steps;
  for (int i = 0; i < from.rank; ++i) {
    const std::int64_t stride = dense.strides[i], start = from[i] > 1 ? rest / stride : 0;
    const std::int64_t step = to[i] > 1 ? window.strides[i] / stride : 1;
    rest -= start * stride;
    if (step < 1 || start >= from[i]) return std::nullopt;
    attrs.starts.push_back(start);
    attrs.stops.push_back(start + (to[i] - 1) * step + 1);
    steps.push_back(step);
    stepped = stepped || step != 1;
  }
  if (rest != 0) return std::nullopt;
  if (stepped) attrs.steps = steps;
  return attrs;
}

// The op itself must give this result and this window.
bool is_right(const OneView& view, const Type& from, const Type& to, const Strided& wanted) {
  std::vector<Type> outputs;
  try {
    infer_types(*view.op, std::span<const Type>(&from, 1), view.attrs(), outputs);
  } catch (const TypeError&) {
    return false;
  }
  if (outputs.front() != to) return false;
  const std::optional<Strided> window = window_through(*view.op, view.attrs(), from, dense_window(from.shape), to);
  return window && same_window(to.shape, *window, wanted);
}

std::optional<OneView> one_view(const Type& from, const Type& to, const Strided& window) {
  OneView view;
  view.shape.shape = sizes_of(to.shape);
  view.op = &ops::reshape;
  if (from.numel() == to.numel() && is_right(view, from, to, window)) return view;
  Shape both;
  view.op = &ops::broadcast_to;
  if (broadcast_shapes(from.shape, to.shape, &both) && both == to.shape && is_right(view, from, to, window)) return view;
  if (const auto permutation = as_permutation(from.shape, to.shape, window)) {
    view.op = &ops::transpose;
    view.permute = *permutation;
    if (is_right(view, from, to, window)) return view;
  }
  if (const auto slice = as_slice(from.shape, to.shape, window)) {
    view.op = &ops::slice;
    view.slice = *slice;
    if (is_right(view, from, to, window)) return view;
  }
  return std::nullopt;
}

// ---- the pass ----

bool foldable(const Node& node) {
  return node.op->is(kView) && node.op->view && node.op->vjp && node.n_inputs == 1 && node.n_outputs == 1 &&
         !node.origin.clone && node.n_after == 0;
}

// A quick look that fails for all nodes of most graphs: views of views, and views with the type of their operand.
bool may_fold(const Graph& graph, const Node& node) {
  if (!foldable(node)) return false;
  const Value& operand = graph.values[graph.inputs(node)[0]];
  return operand.type == graph.values[node.first_output].type || (operand.node != kNone && foldable(graph.nodes[operand.node]));
}

class ViewFolder {
 public:
  explicit ViewFolder(const Graph& graph) : from_(graph), rewriter_(graph), to_(rewriter_.graph()) {}

  Graph run() {
    for (NodeId n = 0; n < from_.node_count(); ++n)
      if (!fold(n)) rewriter_.copy(n);
    return rewriter_.finish();
  }

 private:
  bool fold(NodeId n) {
    const Node& node = from_.nodes[n];
    if (!foldable(node)) return false;
    const ValueId result = node.first_output;
    const Type& type = from_.values[result].type;
    // Values of the new graph, from the operand back to the far end of its chain of views. The loop tries the far end first,
    // then nearer ends.
    std::vector<ValueId> chain = {rewriter_.at(from_.inputs(node)[0])};
    for (NodeId k;
         static_cast<int>(chain.size()) < kMostLinks && (k = to_.values[chain.back()].node) != kNone && foldable(to_.nodes[k]);)
      chain.push_back(to_.inputs(to_.nodes[k])[0]);
    for (std::size_t links = chain.size(); links >= 1; --links) {
      const ValueId base = chain[links - 1];
      const Type base_type = to_.values[base].type;
      if (base_type.dtype != type.dtype) continue;
      const std::optional<Strided> window = type.numel() > 0 ? window_on(chain, links, node, type) : std::nullopt;
      if (!window) continue;
      if (base_type == type && same_window(type.shape, *window, dense_window(type.shape))) {
        rewriter_.replace(result, base);
        hand_on_mark(node.origin.wish, base, &to_);
        return true;
      }
      if (links < 2) continue;  // a single view is one view already
      if (const std::optional<OneView> view = one_view(base_type, type, *window)) {
        const Type types[] = {type};
        const ValueId operand[] = {base};
        const NodeId made = to_.add_node(*view->op, operand, view->attrs(), types, node.origin);
        to_.values[to_.nodes[made].first_output].name = from_.values[result].name;
        rewriter_.replace(result, to_.nodes[made].first_output);
        return true;
      }
    }
    return false;
  }

  // The window of `node` (of the old graph) on chain[links - 1], if that value were dense, through the views between.
  std::optional<Strided> window_on(const std::vector<ValueId>& chain, std::size_t links, const Node& node,
                                   const Type& type) const {
    std::optional<Strided> window = dense_window(to_.values[chain[links - 1]].type.shape);
    for (std::size_t i = links - 1; i-- > 0 && window;) {
      const Node& link = to_.nodes[to_.values[chain[i]].node];
      window =
          window_through(*link.op, to_.attributes(link), to_.values[chain[i + 1]].type, *window, to_.values[chain[i]].type);
    }
    if (!window) return std::nullopt;
    return window_through(*node.op, from_.attributes(node), to_.values[chain[0]].type, *window, type);
  }

  const Graph& from_;
  Rewriter rewriter_;
  Graph& to_;
};

}  // namespace

Graph fold_views(Graph graph) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return may_fold(graph, node); });
  if (!any) return graph;
  return ViewFolder(graph).run();
}

namespace {
const bool fold_views_pass = register_pass({
    .name = "fold_views",
    .aliases = {"views"},
    .doc = "makes one view out of a view of a view, and none out of one that shows its operand as it is",
    .before =
        "graph g(%x: f32[4,6]) {\n  %a: f32[24] = reshape(%x) {shape=[24]}\n  %b: f32[2,12] = reshape(%a) {shape=[2,12]}\n"
        "  return %a, %b\n}\n",
    .after = "graph g(%x: f32[4,6]) {\n  %a: f32[24] = reshape(%x) {shape=[24]}\n  %b: f32[2,12] = reshape(%x) {shape=[2,12]}\n"
             "  return %a, %b\n}\n",
    .run = [](Graph g, const PassOptions&) { return fold_views(std::move(g)); },
    .level = OptimizationLevel::cleanups,
});
}  // namespace

}  // namespace tapedeck
