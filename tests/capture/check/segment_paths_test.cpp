// Tests how the checker finds paths between segments, against a table of all pairs. The checker first takes a short look,
// which may miss a path; then it must look closely, and must not assume that a path exists.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/check/segment_paths.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/value_named.h>

#include <algorithm>
#include <random>

namespace tapedeck {
namespace {

std::vector<Segment> unconnected(std::int32_t n) { return std::vector<Segment>(static_cast<std::size_t>(n)); }

void connect(std::vector<Segment>* segments, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t>& after = (*segments)[from].successors;
  const auto at = std::lower_bound(after.begin(), after.end(), to);
  if (at == after.end() || *at != to) after.insert(at, to);
}

using PathMatrix = std::vector<std::vector<bool>>;  // whether a path leads from the first index to the second

PathMatrix all_paths(const std::vector<Segment>& segments) {
  PathMatrix paths(segments.size(), std::vector<bool>(segments.size(), false));
  for (std::size_t s = segments.size(); s-- > 0;) {
    paths[s][s] = true;
    for (const std::int32_t t : segments[s].successors)
      for (std::size_t to = s; to < segments.size(); ++to) paths[s][to] = paths[s][to] || paths[t][to];
  }
  return paths;
}

struct Found {
  int paths = 0, by_short_look = 0;
};

// A short look never reports a path that does not exist. A close look is right for every pair whose source it covers, for
// any choice of covered sources.
Found expect_paths(const std::vector<Segment>& segments) {
  Found found;
  const PathMatrix paths = all_paths(segments);
  const auto n = static_cast<std::int32_t>(segments.size());
  Reach reach(segments);
  for (std::int32_t a = 0; a < n; ++a)
    for (std::int32_t b = 0; b < n; ++b) {
      const bool is_path = paths[a][b], is_found = reach.finds_path(a, b);
      EXPECT_TRUE(is_path || !is_found) << a << " to " << b;
      found.paths += is_path;
      found.by_short_look += is_found;
    }
  for (const std::int32_t step : {1, 3}) {
    std::vector<std::int32_t> sources;
    for (std::int32_t s = step - 1; s < n; s += step) sources.push_back(s);
    reach.cover(sources);
    for (std::int32_t a = 0; a < n; ++a) {
      EXPECT_EQ(reach.covers(a), a % step == step - 1);
      for (std::int32_t b = 0; b < n && reach.covers(a); ++b) EXPECT_EQ(reach.has_path(a, b), paths[a][b]) << a << " to " << b;
    }
  }
  return found;
}

TEST(PlanCheckReach, EveryPairOfRandomSegments) {
  std::mt19937 random(3);
  Found all;
  for (const std::int32_t n : {1, 2, 5, 40, 70, 400})
    for (int edges_a_segment = 0; edges_a_segment < 4; ++edges_a_segment) {
      std::vector<Segment> segments = unconnected(n);
      for (std::int32_t to = 1; to < n; ++to)
        for (int k = 0; k < edges_a_segment; ++k)
          connect(&segments, static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(to)), to);
      const Found found = expect_paths(segments);
      all.paths += found.paths;
      all.by_short_look += found.by_short_look;
    }
  EXPECT_LT(all.by_short_look, all.paths) << "some are meant to be missed";
}

// Segments as in real plans: each waits for the segment before it or for one of the last few, and lanes fork and join. Here
// the short look finds every path.
TEST(PlanCheckReach, AShortLookFindsThePathsOfChainsAndLanes) {
  for (const std::int32_t lanes : {1, 4, 20}) {
    std::vector<Segment> segments = unconnected(lanes * 12 + 3);
    const auto n = static_cast<std::int32_t>(segments.size());
    for (std::int32_t s = 0; s + 1 < n; ++s) {
      const bool is_fork = s % (lanes * 4) == 0;
      for (std::int32_t t = s + 1; is_fork && t <= std::min(n - 1, s + lanes); ++t) connect(&segments, s, t);
      if (s + lanes < n) connect(&segments, s, s + lanes);
      const std::int32_t join = (s / (lanes * 4) + 1) * lanes * 4;
      if (join < n && join - s <= lanes) connect(&segments, s, join);
    }
    const Found found = expect_paths(segments);
    EXPECT_EQ(found.by_short_look, found.paths) << lanes;
  }
}

TEST(PlanCheckReach, AnEdgeIsFoundAmongManyThatLeaveASegment) {
  std::vector<Segment> hub = unconnected(1000);
  for (std::int32_t t = 1; t < 1000; ++t) connect(&hub, 0, t);
  for (std::int32_t t = 1; t < 999; t += 2)
    connect(&hub, t, t + 1);  // so that the hub is the latest predecessor of only half of them
  const Reach reach(hub);
  for (std::int32_t t = 1; t < 1000; ++t) EXPECT_TRUE(reach.finds_path(0, t)) << t;
}

// ---- how the checker uses paths in a plan ----

// A plan in which every value has its own bytes and every node its own segment, which waits for the makers of its operands.
Plan spread_out(const std::string& text) {
  Plan p;
  p.graph = parse(text);
  const Graph& g = p.graph;
  p.values.resize(g.values.size());
  p.workspace.resize(g.nodes.size());
  p.segments = unconnected(g.node_count());
  p.nodes = g.node_count();
  for (ValueId v = 0; v < g.value_count(); ++v) {
    Placement& q = p.values[v];
    const NodeId maker = g.values[v].node;
    q.birth = q.death = maker;
    const bool is_returned = v == g.outputs[0];
    if (maker == kNone)
      q.where = Where::input, q.reason = Reason::input, q.slot = v, q.death = g.node_count();
    else if (is_returned)
      q.where = Where::output, q.reason = Reason::output, q.slot = 0, q.death = g.node_count();
    else
      q.where = Where::arena, q.reason = Reason::temporary, q.offset = p.arena_bytes, p.arena_bytes += 64;
  }
  p.output_slots = {g.values[g.outputs[0]].type};
  for (NodeId n = 0; n < g.node_count(); ++n) {
    Segment& own = p.segments[n];
    own.nodes = {n};
    for (const ValueId v : g.inputs(g.nodes[n])) {
      Placement& q = p.values[v];
      q.reader = n;
      q.death = std::max(q.death, n);
      const NodeId maker = g.values[v].node;
      if (maker == kNone) continue;
      connect(&p.segments, maker, n);
      ++own.n_predecessors;
    }
  }
  p.external_bytes = 2 * 64;
  p.peak_bytes = p.external_bytes + p.arena_bytes;
  const std::vector<std::int64_t> live = live_bytes(p);
  p.lower_bound_bytes = *std::max_element(live.begin(), live.end());
  return p;
}

// %b gets the bytes of %s, which only %a reads. The only path from %a to %b leads through %p. A hundred other nodes before
// %p also wait for %a, and the last node that %b waits for does not depend on %a. So a short look misses the path.
Plan handed_on(bool by_way_of_p) {
  std::string text = "graph g(%x: u8[64]) {\n  %s: u8[64] = opaque(%x)\n  %a: u8[64] = opaque(%s)\n";
  for (int i = 0; i < 100; ++i) text += "  %d" + std::to_string(i) + ": u8[64] = opaque(%a)\n";
  text += "  %p: u8[64] = opaque(%a)\n  %q: u8[64] = opaque(%x)\n  %b: u8[64] = opaque(%q" +
          std::string(by_way_of_p ? ", %p" : "") + ")\n";
  text += "  %r: u8[64] = opaque(%b)\n  return %r\n}";
  Plan p = spread_out(text);
  const NodeId a = p.graph.values[testing::value_named(p.graph, "a")].node,
               b = p.graph.values[testing::value_named(p.graph, "b")].node;
  EXPECT_FALSE(Reach(p.segments).finds_path(a, b));
  p.values[testing::value_named(p.graph, "b")].offset = p.values[testing::value_named(p.graph, "s")].offset;
  return p;
}

TEST(PlanCheckReach, WhatAShortLookMissesIsLookedAtClosely) {
  EXPECT_EQ(check_plan(handed_on(true)), std::vector<std::string>{});
  const std::vector<std::string> found = check_plan(handed_on(false));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("%s and %b share bytes, and `"), 0u) << found[0];
}

}  // namespace
}  // namespace tapedeck
