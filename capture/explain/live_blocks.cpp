// Turns the planned lifetimes of a run into times: for every block of the arena, from the start of the node that writes it to
// the end of the last node that touched it.
//
//     plan: %a from node 0 to node 3        timeline: node 0 from 10 to 25 ns, node 3 from 60 to 90 ns        block: 10 to 90
//     ns
#include <tapedeck/capture/explain/live_blocks.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace tapedeck {

namespace {

std::vector<const Slice*> slices_by_node(const Plan& plan, const Timeline& timeline) {
  std::vector<const Slice*> ran(plan.graph.nodes.size(), nullptr);
  for (const Slice& s : timeline.slices)
    if (s.node >= 0 && s.node < plan.graph.node_count()) ran[s.node] = &s;
  return ran;
}

// For each holder of bytes: the last slice of the run that touched these bytes.
std::vector<const Slice*> last_touches(const Plan& plan, const std::vector<const Slice*>& ran,
                                       const std::vector<ValueId>& holder) {
  std::vector<const Slice*> last(plan.values.size(), nullptr);
  const auto touch = [&](ValueId v, const Slice* s) {
    const Slice*& known = last[holder[v]];
    if (!known || std::tie(known->end_ns, known->node) < std::tie(s->end_ns, s->node)) known = s;
  };
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    if (!ran[n]) continue;
    const Node& node = plan.graph.nodes[n];
    for (ValueId v : plan.graph.inputs(node)) touch(v, ran[n]);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) touch(v, ran[n]);
  }
  return last;
}

// A node's start comes before its end, both in the node's place in the plan's order.
std::int64_t order_of(const LiveBlock& block, bool begins) {
  if (begins) return block.first == kNone ? -1 : 2 * static_cast<std::int64_t>(block.first);
  return block.last == kNone ? std::numeric_limits<std::int64_t>::max() : 2 * static_cast<std::int64_t>(block.last) + 1;
}

void add_events(LiveBlocks* live) {
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(live->blocks.size()); ++b) {
    live->events.push_back({live->blocks[b].start_ns, b, true});
    live->events.push_back({live->blocks[b].end_ns, b, false});
  }
  std::stable_sort(live->events.begin(), live->events.end(), [&](const LiveEvent& a, const LiveEvent& b) {
    if (a.at_ns != b.at_ns) return a.at_ns < b.at_ns;
    return order_of(live->blocks[a.block], a.begins) < order_of(live->blocks[b.block], b.begins);
  });
}

}  // namespace

LiveBlocks live_blocks(const Plan& plan, const Timeline& timeline) {
  const Graph& g = plan.graph;
  const std::vector<const Slice*> ran = slices_by_node(plan, timeline);
  const std::vector<ValueId> holder = byte_holders(plan);
  const std::vector<const Slice*> last = last_touches(plan, ran, holder);
  std::vector<char> to_the_end(plan.values.size(), 0);
  for (ValueId v = 0; v < g.value_count(); ++v) to_the_end[holder[v]] |= plan.values[v].death >= g.node_count();

  LiveBlocks live;
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const Placement& p = plan.values[v];
    const std::int64_t bytes = g.values[v].type.bytes();
    if (p.where != Where::arena || holder[v] != v || bytes == 0 || !last[v]) continue;
    LiveBlock block{.value = v, .offset = p.offset, .bytes = bytes, .end_ns = timeline.run_ns};
    if (const Slice* birth = p.birth >= 0 ? ran[p.birth] : nullptr) {
      block.first = p.birth;
      block.start_ns = birth->start_ns;
    }
    if (!to_the_end[v]) {
      block.last = last[v]->node;
      block.end_ns = last[v]->end_ns;
    }
    live.blocks.push_back(block);
  }
  for (NodeId n = 0; n < g.node_count() && n < static_cast<NodeId>(plan.workspace.size()); ++n) {
    const Scratch& scratch = plan.workspace[n];
    if (scratch.bytes > 0 && ran[n])
      live.blocks.push_back({kNone, n, n, scratch.offset, scratch.bytes, ran[n]->start_ns, ran[n]->end_ns});
  }
  std::stable_sort(live.blocks.begin(), live.blocks.end(),
                   [](const LiveBlock& a, const LiveBlock& b) { return a.first < b.first; });
  add_events(&live);
  return live;
}

std::int64_t live_peak(const Plan& plan, const LiveBlocks& live) {
  std::int64_t sum = plan.external_bytes, peak = sum;
  for (const LiveEvent& e : live.events) {
    sum += e.begins ? live.blocks[e.block].bytes : -live.blocks[e.block].bytes;
    peak = std::max(peak, sum);
  }
  return peak;
}

}  // namespace tapedeck
