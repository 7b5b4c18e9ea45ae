// Loop-invariant code: a value that a loop computes anew in every pass from captured operands alone is computed once before the
// loop, and captured.
//     %r: i64[], %c: f32[4] = while(%x, %w) {carried=1, ...} (..) { .. } (%i: i64[], %c: f32[4], %w: f32[4]) { %a: f32[4] =
//     exp(%w) .. }
// becomes
//     %a: f32[4] = exp(%w)
//     %r: i64[], %c: f32[4] = while(%x, %w, %a) {carried=1, ...} (..) { .. } (%i: i64[], %c: f32[4], %w: f32[4], %a: f32[4]) {
//     .. }
// Hoists nodes that are worth it. Views and nodes without operands are not; they stay, and a copy goes along if a hoisted node
// reads them. The results of one loop have at most `hoist_bytes`, because they are held until the loop ends. A loop without any
// pass must not fail because of them: unless at least one pass is certain, only pointwise ops, views, and products of floating
// and bool operands are hoisted, because they report no faults. Leaves alone: effects, random ops, `opaque`, nested loops,
// clones, nodes with order edges. The wrapper takes inner loops first, so a hoisted node may be hoisted further. Cost:
// O(nodes), nodes in loops included.
#include <tapedeck/capture/analysis/traits.h>
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/passes/splice.h>
#include <tapedeck/engine/control/control.h>

#include <algorithm>

namespace tapedeck {

namespace {

// `while` and `scan`: the ops with the attributes of a loop.
const LoopAttrs* loop_attributes(const Graph& graph, const Node& node) {
  return node.n_regions > 0 && node.op->attrs == &attr_schema<LoopAttrs>()
             ? static_cast<const LoopAttrs*>(graph.attributes(node))
             : nullptr;
}

bool has_no_faults(const Graph& g, const Node& node) {
  for (ValueId v : g.inputs(node))
    if (const DType d = g.values[v].type.dtype; !is_floating(d) && d != DType::boolean) return false;
  return node.op->is(kElementwise) || node.op->is(kView) || node.op->is(kLowPrecision);
}

// The nodes of one region that can go before the loop.
struct Invariants {
  std::vector<char> hoisted;       // by node: it goes
  std::vector<char> along;         // by node: it stays, and is copied before the loop for a hoisted node
  std::vector<ValueId> handed_in;  // results of hoisted nodes that the region still reads or returns
  bool any = false;
};

Invariants find_invariants(const Graph& region, std::int32_t first_captured, bool runs_surely, std::int64_t& bytes) {
  Invariants found;
  found.hoisted.assign(region.nodes.size(), 0);
  found.along.assign(region.nodes.size(), 0);
  std::vector<char> invariant(region.values.size(), 0);
  for (ValueId v = first_captured; v < region.n_inputs; ++v) invariant[v] = 1;
  for (NodeId n = 0; n < region.node_count(); ++n) {
    const Node& node = region.nodes[n];
    const auto operands = region.inputs(node);
    const bool pure = (traits_within(region, node) & (kEffect | kRandom | kPlanOnly)) == 0 && node.n_regions == 0 &&
                      !node.origin.clone && node.n_after == 0;
    if (!pure || !std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return invariant[v]; })) continue;
    const bool cheap = node.n_inputs == 0 || node.op->is(kView);
    if (!cheap) {
      std::int64_t made = 0;
      for (const Value& v : region.output_values(node)) made += v.type.bytes();
      if (made > bytes || !(runs_surely || has_no_faults(region, node))) continue;
      bytes -= made;
      found.hoisted[n] = found.any = 1;
    }
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) invariant[v] = 1;
  }
  return found;
}

// Finds the nodes that go along and the values that are handed in.
void find_borders(const Graph& region, Invariants& found) {
  std::vector<char> read_inside(region.values.size(), 0);
  for (NodeId n = region.node_count() - 1; n >= 0; --n) {
    for (ValueId v : region.inputs(region.nodes[n])) {
      const NodeId maker = region.values[v].node;
      if (!found.hoisted[n]) read_inside[v] = 1;
      if ((found.hoisted[n] || found.along[n]) && maker != kNone && !found.hoisted[maker]) found.along[maker] = 1;
    }
  }
  for (ValueId v : region.outputs) read_inside[v] = 1;
  for (ValueId v = region.n_inputs; v < region.value_count(); ++v)
    if (read_inside[v] && found.hoisted[region.values[v].node]) found.handed_in.push_back(v);
}

class Hoister {
 public:
  Hoister(const Graph& graph, const PassOptions& options) : options_(options), whole_(graph), hoisted_names_(graph) {}

  Graph run() {
    const Graph& g = whole_.from;
    whole_.all_inputs();
    whole_.all_state();
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (!hoist(n)) whole_.splice.copy(n);
    return whole_.finish();
  }

 private:
  bool hoist(NodeId n) {
    const Graph& g = whole_.from;
    const Node& node = g.nodes[n];
    const LoopAttrs* attrs = loop_attributes(g, node);
    if (!attrs || node.origin.clone) return false;
    const auto regions = g.regions_of(node);
    const LoopLayout layout = layout_of(*attrs, g.input_types(node), *regions.back());
    const auto first_captured = static_cast<std::int32_t>(1 + layout.carried + layout.scanned);
    std::int64_t bytes = options_.hoist_bytes;
    std::vector<Invariants> found;
    bool any = false;
    for (std::size_t r = 0; r < regions.size(); ++r) {
      // The condition of a loop runs at least once; its body only if the number of passes is known.
      const bool surely = regions.size() == 1 ? layout.trips > 0 : r == 0 && attrs->trips != 0;
      found.push_back(find_invariants(*regions[r], first_captured, surely, bytes));
      find_borders(*regions[r], found.back());
      any = any || found.back().any;
    }
    if (!any) return false;
    rebuild(n, found, first_captured);
    return true;
  }

  void rebuild(NodeId n, const std::vector<Invariants>& found, std::int32_t first_captured) {
    const Graph& g = whole_.from;
    const auto regions = g.regions_of(g.nodes[n]);
    std::vector<ValueId> further;  // of the new graph
    std::vector<std::vector<std::pair<ValueId, std::size_t>>> given(
        regions.size());  // by region: value -> place among `further`
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const Splice outside = compute_before(n, *regions[r], found[r], first_captured);
      for (ValueId v : found[r].handed_in) {
        given[r].emplace_back(v, further.size());
        further.push_back(outside.at(v));
      }
    }
    std::vector<Region> smaller;
    for (std::size_t r = 0; r < regions.size(); ++r)
      smaller.push_back(std::make_shared<const Graph>(without_hoisted(*regions[r], found[r], given[r], further)));
    whole_.splice.copy_as(n, nullptr, g.output_types(g.nodes[n]), smaller, further);
  }

  // Copies the nodes that leave a region to the place before the loop.
  Splice compute_before(NodeId loop, const Graph& region, const Invariants& found, std::int32_t first_captured) {
    Splice outside(region, whole_.to, hoisted_names_);
    const auto operands = whole_.from.inputs(whole_.from.nodes[loop]);
    for (ValueId v = first_captured; v < region.n_inputs; ++v) outside.bind(v, whole_.splice.at(operands[v - 1]));
    for (NodeId m = 0; m < region.node_count(); ++m)
      if (found.hoisted[m] || found.along[m]) outside.copy(m);
    return outside;
  }

  // The region with an input for every value that is handed in to any region of the loop, because all regions take the same.
  Graph without_hoisted(const Graph& region, const Invariants& found, const std::vector<std::pair<ValueId, std::size_t>>& given,
                        const std::vector<ValueId>& further) const {
    Rebuild r(region);
    r.all_inputs();
    std::vector<ValueId> old_values(further.size(), kNone);
    for (const auto& [v, place] : given) old_values[place] = v;
    for (std::size_t k = 0; k < further.size(); ++k) {
      const Name own = old_values[k] == kNone ? Name() : region.values[old_values[k]].name;
      const Name name = r.names.take(own) ? own : r.names.fresh("invariant" + std::to_string(k));
      const ValueId v = r.to.add_input(name, whole_.to.values[further[k]].type);
      if (old_values[k] != kNone) r.splice.bind(old_values[k], v);
    }
    for (NodeId m = 0; m < region.node_count(); ++m)
      if (!found.hoisted[m]) r.splice.copy(m);
    return r.finish();
  }

  const PassOptions& options_;
  Rebuild whole_;
  TakenNames hoisted_names_;  // apart from the names of all nodes outside
};

bool has_loops(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return loop_attributes(graph, node) != nullptr; });
}

}  // namespace

Graph hoist_invariants(Graph graph, const PassOptions& options) {
  return has_loops(graph) ? Hoister(graph, options).run() : std::move(graph);
}

namespace {
const bool hoist_invariants_pass = register_pass({
    .name = "hoist_invariants",
    .aliases = {"licm", "hoist"},
    .doc = "computes before a loop what does not change in it",
    .before =
        "graph g(%x: f32[4], %w: f32[4]) {\n"
        "  %y: f32[4] = scan(%x, %w) {carried=1, scanned=0, trips=3, reverse=false, residuals=0, checkpoint=0} (%i: i64[],\n"
        "    %c: f32[4], %v: f32[4]) {\n"
        "    %a: f32[4] = exp(%v)\n    %d: f32[4] = mul(%c, %a)\n    return %d\n  }\n  return %y\n}\n",
    .after = "graph g(%x: f32[4], %w: f32[4]) {\n"
             "  %a: f32[4] = exp(%w)\n"
             "  %y: f32[4] = scan(%x, %w, %a) {carried=1, scanned=0, trips=3, reverse=false, residuals=0, checkpoint=0} (%i: "
             "i64[],\n"
             "    %c: f32[4], %v: f32[4], %a: f32[4]) {\n"
             "    %d: f32[4] = mul(%c, %a)\n    return %d\n  }\n  return %y\n}\n",
    .run = hoist_invariants,
});
}  // namespace

}  // namespace tapedeck
