// Makes a plan of any size by hand, without the planner. Tests use it where time or output must stay small for large plans.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/attrs.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace tapedeck::test {

// A plan of `nodes` values. Each node reads two recent values; a free list gives out the offsets. The segments form `lanes`
// chains that do not wait for each other.
inline Plan large_plan(NodeId nodes, int lanes, int nodes_per_segment) {
  Plan p;
  Graph& g = p.graph;
  const Type type{DType::u8, {192}};
  g.add_input("x", type);
  OpaqueAttrs attrs;
  std::mt19937 random(5);
  for (NodeId n = 0; n < nodes; ++n) {  // node n belongs to lane n % lanes and reads values of this lane
    std::vector<ValueId> in = {0};
    if (n >= lanes)
      in = {1 + n - lanes,
            1 + n - lanes * (1 + static_cast<NodeId>(random() % static_cast<unsigned>(std::min<NodeId>(n / lanes, 40))))};
    g.add_node(*find_op("opaque"), in, &attrs, std::vector<Type>{type});
  }
  g.outputs = {1};
  g.output_names.resize(1);
  std::vector<NodeId> last(g.values.size(), kNone);
  for (NodeId n = 0; n < nodes; ++n)
    for (const ValueId v : g.inputs(g.nodes[n])) last[v] = n;
  p.values.resize(g.values.size());
  p.values[0] = {.where = Where::input, .reason = Reason::input, .slot = 0, .reader = last[0], .death = nodes};
  std::vector<std::vector<std::int64_t>> free(static_cast<std::size_t>(lanes));
  std::vector<std::vector<ValueId>> dying(g.nodes.size());
  for (NodeId n = 0; n < nodes; ++n) {
    const ValueId v = 1 + n;
    Placement& q = p.values[v];
    q.birth = n;
    q.death = std::max(n, last[v]);
    q.reader = last[v];
    q.reason = last[v] == kNone ? Reason::unread : Reason::temporary;
    if (v == 1) {
      q = {.where = Where::output, .reason = Reason::output, .slot = 0, .reader = last[v], .birth = n, .death = nodes};
    } else {
      auto& list = free[n % lanes];
      q.where = Where::arena;
      q.offset = list.empty() ? p.arena_bytes : list.back();
      if (list.empty())
        p.arena_bytes += 192;
      else
        list.pop_back();
      dying[q.death].push_back(v);
    }
    for (const ValueId d : dying[n]) free[n % lanes].push_back(p.values[d].offset);
  }
  p.workspace.resize(g.nodes.size());
  p.output_slots = {type};
  p.external_bytes = 384;
  p.peak_bytes = p.arena_bytes + 384;
  const std::vector<std::int64_t> live = live_bytes(p);
  p.lower_bound_bytes = *std::max_element(live.begin(), live.end());
  p.nodes = nodes;
  const std::int32_t run = nodes_per_segment;
  for (NodeId first = 0; first < nodes; first += lanes * run)
    for (int lane = 0; lane < lanes; ++lane) {
      Segment s;
      for (NodeId n = first + lane; n < std::min(nodes, first + lanes * run); n += lanes) s.nodes.push_back(n);
      if (s.nodes.empty()) continue;
      if (static_cast<std::int32_t>(p.segments.size()) >= lanes) {
        p.segments[p.segments.size() - static_cast<std::size_t>(lanes)].successors.push_back(
            static_cast<std::int32_t>(p.segments.size()));
        s.n_predecessors = 1;
      }
      p.segments.push_back(std::move(s));
    }
  return p;
}

}  // namespace tapedeck::test
