// Redundant copies and conversions. A copy is its operand, because nothing in a graph is written in place. A cast to the dtype
// of the operand is its operand, and so is a cast there and back through a dtype that holds every value. An op that broadcasts
// its operands needs no broadcast_to before it. Ops say what they are: kCopy, kConversion, kBroadcast.
//     %a = copy(%x); %b = cast(%a) {dtype=f64}; %c = cast(%b) {dtype=f32}; %d = broadcast_to(%s) {shape=[4]}; %e = add(%c, %d)
// becomes, apart from nodes that are dead then,
//     %e = add(%x, %s)
// insert_copies makes the copies that updates and outputs need later, and only where bytes cannot be shared. Leaves alone:
// clones, nodes with order edges. Leaves dead nodes behind for dead_code. Cost: O(nodes).
#include <tapedeck/capture/passes/marks.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>

namespace tapedeck {

namespace {

// Whether every value of `from` survives in `through`, including NaN and -0.
bool holds(DType through, DType from) {
  if (through == from) return true;
  switch (from) {
    case DType::boolean:
      return true;
    case DType::u8:
      return through != DType::boolean;
    case DType::f16:
    case DType::bf16:
      return through == DType::f32 || through == DType::f64;
    case DType::f32:
      return through == DType::f64;
    case DType::i32:
      return through == DType::i64 || through == DType::f64;
    case DType::f64:
    case DType::i64:
      return false;
  }
  return false;
}

// A look at the graph that saves writing it anew if nothing is to be done, as in most graphs.
class CopyFinder {
 public:
  explicit CopyFinder(const Graph& graph) : graph_(graph) {}

  bool may_drop(const Node& node) const {
    if (node.op->is(kCopy)) return true;
    if (node.op->is(kConversion))
      return is_made_by(graph_.inputs(node)[0], kConversion) ||
             graph_.values[graph_.inputs(node)[0]].type == graph_.values[node.first_output].type;
    if (!node.op->is(kElementwise) || node.n_inputs < 2) return false;
    const auto operands = graph_.inputs(node);
    return std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return is_made_by(v, kBroadcast); });
  }

 private:
  bool is_made_by(ValueId v, Trait trait) const {
    return graph_.values[v].node != kNone && graph_.nodes[graph_.values[v].node].op->is(trait);
  }

  const Graph& graph_;
};

class CopyDropper {
 public:
  explicit CopyDropper(const Graph& graph) : from_(graph), rewriter_(graph), to_(rewriter_.graph()) {}

  Graph run() {
    for (NodeId n = 0; n < from_.node_count(); ++n)
      if (!drop(n)) rewriter_.copy(n);
    return rewriter_.finish();
  }

 private:
  // The node that makes v in the new graph, if it has the trait and is no clone.
  const Node* maker(ValueId v, Trait trait) const {
    const NodeId n = to_.values[v].node;
    return n != kNone && to_.nodes[n].op->is(trait) && !to_.nodes[n].origin.clone ? &to_.nodes[n] : nullptr;
  }

  bool drop(NodeId n) {
    const Node& node = from_.nodes[n];
    if (node.origin.clone || node.n_after > 0) return false;
    if (node.op->is(kCopy)) return replace(node, rewriter_.at(from_.inputs(node)[0]));
    if (node.op->is(kConversion)) return drop_cast(node);
    if (node.op->is(kElementwise) && node.n_inputs > 1) return drop_broadcasts(node);
    return false;
  }

  // The readers of the node read an existing value instead.
  bool replace(const Node& node, ValueId by) {
    rewriter_.replace(node.first_output, by);
    hand_on_mark(node.origin.wish, by, &to_);
    return true;
  }

  bool drop_cast(const Node& node) {
    ValueId operand = rewriter_.at(from_.inputs(node)[0]);
    const Type& type = from_.values[node.first_output].type;
    bool shorter = false;
    for (const Node* inner; (inner = maker(operand, kConversion)) != nullptr; shorter = true) {
      const ValueId before = to_.inputs(*inner)[0];
      if (!holds(to_.values[operand].type.dtype, to_.values[before].type.dtype)) break;
      operand = before;
    }
    if (to_.values[operand].type == type) return replace(node, operand);
    if (!shorter) return false;
    const ValueId operands[] = {operand};
    append(node, operands);
    return true;
  }

  bool drop_broadcasts(const Node& node) {
    std::vector<ValueId> operands;
    std::vector<Type> types, outputs;
    bool any = false;
    for (ValueId v : from_.inputs(node)) {
      operands.push_back(rewriter_.at(v));
      for (const Node* broadcast; (broadcast = maker(operands.back(), kBroadcast)) != nullptr; any = true)
        operands.back() = to_.inputs(*broadcast)[0];
      types.push_back(to_.values[operands.back()].type);
    }
    if (!any) return false;
    // If all operands were broadcast, one of them has to stay large; the first that makes the result right stays.
    for (std::size_t kept = 0; kept <= operands.size(); ++kept) {
      try {
        outputs.clear();
        infer_types(*node.op, types, from_.attributes(node), outputs);
        if (outputs == from_.output_types(node)) {
          if (kept == operands.size() && !changes(node, operands)) return false;
          append(node, operands);
          return true;
        }
      } catch (const TypeError&) {  // the op takes no broadcast
      }
      if (kept == operands.size()) break;
      operands[kept] = rewriter_.at(from_.inputs(node)[kept]);
      types[kept] = to_.values[operands[kept]].type;
    }
    return false;
  }

  bool changes(const Node& node, const std::vector<ValueId>& operands) const {
    for (std::int32_t i = 0; i < node.n_inputs; ++i)
      if (rewriter_.at(from_.inputs(node)[i]) != operands[i]) return true;
    return false;
  }

  // The node with other operands.
  void append(const Node& node, std::span<const ValueId> operands) {
    const NodeId n = to_.add_node(*node.op, operands, from_.attributes(node), from_.output_types(node), node.origin);
    for (std::int32_t i = 0; i < node.n_outputs; ++i) {
      to_.values[to_.nodes[n].first_output + i].name = from_.values[node.first_output + i].name;
      rewriter_.replace(node.first_output + i, to_.nodes[n].first_output + i);
    }
  }

  const Graph& from_;
  Rewriter rewriter_;
  Graph& to_;
};

}  // namespace

Graph drop_copies(Graph graph) {
  const CopyFinder finder(graph);
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return finder.may_drop(node); });
  if (!any) return graph;
  return CopyDropper(graph).run();
}

namespace {
const bool drop_copies_pass = register_pass({
    .name = "drop_copies",
    .aliases = {"redundant"},
    .doc = "leaves out copies, conversions and broadcasts that change nothing",
    .before = "graph g(%x: f32[4], %s: f32[]) {\n  %a: f32[4] = copy(%x)\n  %d: f32[4] = broadcast_to(%s) {shape=[4]}\n"
              "  %e: f32[4] = add(%a, %d)\n  return %e, %d\n}\n",
    .after = "graph g(%x: f32[4], %s: f32[]) {\n  %d: f32[4] = broadcast_to(%s) {shape=[4]}\n  %e: f32[4] = add(%x, %s)\n  "
             "return %e, %d\n}\n",
    .run = [](Graph g, const PassOptions&) { return drop_copies(std::move(g)); },
    .level = OptimizationLevel::cleanups,
});
}  // namespace

}  // namespace tapedeck
