// The judge of plans is judged: good plans are broken in many ways, and whenever a run on pretend memory (byte_simulation.h) finds a reader
// whose bytes are gone, the checker must have said so. And it is quick: 100,000 values.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/engine/best_time.h>

#include <tapedeck/capture/memory_map.h>
#include <tapedeck/capture/models.h>
#include <tapedeck/capture/plan_check.h>
#include <tapedeck/capture/plan_check_sweep.h>
#include <tapedeck/capture/planner.h>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

namespace tapedeck {
namespace {

using Random = std::mt19937;

int pick(Random& random, std::size_t n) { return static_cast<int>(random() % n); }

// ---- ways to break a plan; each returns false if this plan offers no place for it ----

void shift(Plan* p, std::int32_t buffer, std::int64_t by) {
  std::vector<char> moved(p->values.size(), 0);
  for (const MemoryBox& box : map_memory(*p).arena)
    if (box.buffer == buffer && box.value != kNone) moved[box.value] = 1;
    else if (box.buffer == buffer) p->workspace[box.node].offset += by;
  for (ValueId v = 0; v < p->graph.value_count(); ++v) {
    Placement& q = p->values[v];
    if (q.reason == Reason::alias) moved[v] = moved[q.other];
    if (moved[v]) q.offset += by;
  }
}

// A whole buffer, with all windows on it, to another place in the arena.
bool move_buffer(Plan* p, Random& random) {
  const MemoryMap map = map_memory(*p);
  if (map.arena.empty()) return false;
  const MemoryBox& box = map.arena[pick(random, map.arena.size())];
  const std::int64_t room = (p->arena_bytes - box.bytes) / p->alignment;
  const std::int64_t to = room > 0 ? static_cast<std::int64_t>(random() % static_cast<unsigned>(room + 1)) * p->alignment : 0;
  shift(p, box.buffer, to - box.offset);
  return to != box.offset;
}

// Two buffers change places.
bool swap_buffers(Plan* p, Random& random) {
  const MemoryMap map = map_memory(*p);
  if (map.arena.size() < 2) return false;
  const MemoryBox &a = map.arena[pick(random, map.arena.size())], &b = map.arena[pick(random, map.arena.size())];
  if (a.buffer == b.buffer || a.offset + b.bytes > p->arena_bytes || b.offset + a.bytes > p->arena_bytes) return false;
  shift(p, a.buffer, b.offset - a.offset);
  shift(p, b.buffer, a.offset - b.offset);
  return true;
}

void drop_successor(Plan* p, std::size_t segment, std::int32_t next) {
  std::erase(p->segments[segment].successors, next);
  --p->segments[next].n_predecessors;
}

// A segment no longer waits for another.
bool drop_edge(Plan* p, Random& random) {
  std::vector<std::pair<std::size_t, std::int32_t>> edges;
  for (std::size_t s = 0; s < p->segments.size(); ++s)
    for (const std::int32_t next : p->segments[s].successors) edges.push_back({s, next});
  if (edges.empty()) return false;
  const auto [from, to] = edges[pick(random, edges.size())];
  drop_successor(p, from, to);
  p->reuse_edges.clear();   // a record of them would give it away
  return true;
}

// One that is there only because bytes are used again.
bool drop_reuse_edge(Plan* p, Random& random) {
  if (p->reuse_edges.empty()) return false;
  const Edge edge = p->reuse_edges[pick(random, p->reuse_edges.size())];
  for (std::size_t s = 0; s < p->segments.size(); ++s)
    for (std::size_t t = s + 1; t < p->segments.size(); ++t) {
      const auto holds = [&](const Segment& segment, NodeId n) { return std::find(segment.nodes.begin(), segment.nodes.end(), n) != segment.nodes.end(); };
      const std::vector<std::int32_t>& next = p->segments[s].successors;
      if (!holds(p->segments[s], edge.before) || !holds(p->segments[t], edge.after) || std::find(next.begin(), next.end(), static_cast<std::int32_t>(t)) == next.end()) continue;
      drop_successor(p, s, static_cast<std::int32_t>(t));
      p->reuse_edges.clear();
      return true;
    }
  return false;
}

// Two nodes change segments: each runs where the other did.
bool swap_nodes(Plan* p, Random& random) {
  if (p->segments.size() < 2) return false;
  Segment &a = p->segments[pick(random, p->segments.size())], &b = p->segments[pick(random, p->segments.size())];
  if (&a == &b) return false;
  std::swap(a.nodes[pick(random, a.nodes.size())], b.nodes[pick(random, b.nodes.size())]);
  std::sort(a.nodes.begin(), a.nodes.end());
  std::sort(b.nodes.begin(), b.nodes.end());
  return true;
}

// A result is computed in the place of an operand that it may not have.
bool take_over(Plan* p, Random& random) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (NodeId n = 0; n < p->graph.node_count(); ++n) {
    const Node& node = p->graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      for (const ValueId from : p->graph.inputs(node)) {
        const Placement &a = p->values[v], &b = p->values[from];
        const bool whole = a.where == Where::arena && b.where == Where::arena && a.reason != Reason::alias && b.reason != Reason::alias;
        if (whole && a.reason != Reason::in_place && p->graph.values[v].type.bytes() == p->graph.values[from].type.bytes() && a.offset != b.offset) pairs.push_back({v, from});
      }
  }
  if (pairs.empty()) return false;
  const auto [v, from] = pairs[pick(random, pairs.size())];
  std::int32_t buffer = kNone;
  for (const MemoryBox& box : map_memory(*p).arena)
    if (box.value == v) buffer = box.buffer;
  if (buffer == kNone) return false;
  shift(p, buffer, p->values[from].offset - p->values[v].offset);
  p->values[v].reason = Reason::in_place;
  p->values[v].other = from;
  return true;
}

// A window looks a little beside.
bool shift_window(Plan* p, Random& random) {
  std::vector<ValueId> windows;
  for (ValueId v = 0; v < p->graph.value_count(); ++v)
    if (p->values[v].reason == Reason::alias && p->graph.values[v].type.bytes() > 0) windows.push_back(v);
  if (windows.empty()) return false;
  p->values[windows[pick(random, windows.size())]].offset += 4;
  return true;
}

// A result goes into a state that is still read, or into an input.
bool write_elsewhere(Plan* p, Random& random) {
  std::vector<ValueId> makers;
  for (ValueId v = p->graph.n_inputs + p->graph.n_state; v < p->graph.value_count(); ++v)
    if (p->values[v].where == Where::arena && p->values[v].reason != Reason::alias) makers.push_back(v);
  const int buffers = p->graph.n_inputs + p->graph.n_state;
  if (makers.empty() || buffers == 0) return false;
  Placement& q = p->values[makers[pick(random, makers.size())]];
  const int slot = pick(random, static_cast<std::size_t>(buffers));
  q.where = slot < p->graph.n_inputs ? Where::input : Where::state;
  q.slot = slot < p->graph.n_inputs ? slot : slot - p->graph.n_inputs;
  q.offset = 0;
  return true;
}

struct Mutation {
  const char* name;
  bool (*apply)(Plan*, Random&);
};
constexpr Mutation kMutations[] = {{"move_buffer", move_buffer}, {"swap_buffers", swap_buffers}, {"drop_edge", drop_edge},         {"drop_reuse_edge", drop_reuse_edge},
                                   {"swap_nodes", swap_nodes},   {"take_over", take_over},       {"shift_window", shift_window}, {"write_elsewhere", write_elsewhere}};

bool breaks(const Plan& plan, int runs) {
  for (int seed = 0; seed < runs; ++seed)
    if (!test::ByteSimulation(plan).run(static_cast<unsigned>(seed)).empty()) return true;
  return false;
}

// Breaks `good` in every way; counts by mutation how many breaks the simulation confirmed.
void mutate(const Plan& good, int rounds, int runs, Random& random, std::map<std::string, int>* confirmed) {
  ASSERT_TRUE(check_plan(good).empty()) << check_plan(good)[0];
  for (const Mutation& m : kMutations)
    for (int round = 0; round < rounds; ++round) {
      Plan plan = good;
      if (!m.apply(&plan, random) || !breaks(plan, runs)) continue;
      ++(*confirmed)[m.name];
      EXPECT_FALSE(check_plan(plan).empty()) << m.name << " went unnoticed in\n" << print(good.graph);
    }
}

TEST(PlanMutation, WhateverReallyBreaksIsNoticed) {
  Random random(7);
  std::map<std::string, int> confirmed;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    PlanOptions options;
    options.segment_us = seed % 3 ? 0 : 20;
    options.threads = 1 + static_cast<int>(seed % 2);
    if (seed % 4 == 0) options.budget_percent = 75;
    const Graph graph = seed % 2 ? test::RandomProgram(seed, 24).graph() : test::RandomGraph(seed).make(20);
    mutate(make_plan(graph, options), 4, 12, random, &confirmed);
  }
  for (const Mutation& m : kMutations) EXPECT_GE(confirmed[m.name], 5) << m.name << " broke next to nothing: it tests nothing";
}

TEST(PlanMutation, InModelsToo) {
  Random random(8);
  std::map<std::string, int> confirmed;
  const std::pair<const char*, ModelOptions> models[] = {{"rnn_cell", {.batch = 1, .width = 8, .abstract = true}},
                                                         {"unet", {.batch = 1, .image = 16, .width = 2, .abstract = true}},
                                                         {"mlp_attention", {.batch = 1, .seq = 4, .layers = 1, .width = 8, .abstract = true}}};
  for (const auto& [model, request] : models) mutate(make_plan(record_model(*find_model(model), request).graph, {.segment_us = 0}), 2, 1, random, &confirmed);
  EXPECT_GE(confirmed.size(), 3u);
}

// A death before the last reader, a birth elsewhere, a reader that does not read: pictures and live bytes would lie.
TEST(PlanMutation, LifetimesAreTheGraphs) {
  Random random(9);
  int tried = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Plan good = make_plan(test::RandomProgram(seed).graph());
    for (ValueId v = 0; v < good.graph.value_count(); ++v) {
      NodeId last = kNone;
      for (NodeId n = 0; n < good.graph.node_count(); ++n)
        for (const ValueId w : good.graph.inputs(good.graph.nodes[n]))
          if (w == v) last = n;
      if (last == kNone) continue;
      Plan plan = good;
      plan.values[v].death = last - 1 - pick(random, static_cast<std::size_t>(last) + 1);
      EXPECT_FALSE(check_plan(plan).empty()) << "%" << good.graph.value_name(v) << " dies at " << plan.values[v].death << ", read by " << last;
      plan = good;
      plan.values[v].reader = kNone;
      EXPECT_FALSE(check_plan(plan).empty());
      plan = good;
      ++plan.values[v].birth;
      EXPECT_FALSE(check_plan(plan).empty());
      ++tried;
    }
  }
  EXPECT_GT(tried, 500);
}

// ---- the sweep ----

// All pairs, the slow way: the bytes they share less those that somebody in between has had.
std::vector<std::pair<std::int32_t, std::int32_t>> all_successions(const std::vector<Stretch>& s, std::int64_t bytes) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  std::vector<std::int32_t> order;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(s.size()); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return s[a].since < s[b].since; });
  for (std::int64_t b = 0; b < bytes; ++b) {
    std::int32_t before = -1;
    for (const std::int32_t i : order) {
      if (s[i].first > b || s[i].end <= b) continue;
      if (before >= 0) pairs.push_back({before, i});
      before = i;
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

TEST(PlanCheckSweep, FindsWhoGetsBytesFromWhom) {
  Random random(3);
  for (int round = 0; round < 400; ++round) {
    std::vector<Stretch> stretches;
    for (int i = 0, n = pick(random, 14); i < n; ++i) {
      const std::int64_t first = pick(random, 30), bytes = pick(random, 12);
      stretches.push_back({first, first + bytes, pick(random, 8)});
    }
    EXPECT_EQ(successions(stretches), all_successions(stretches, 48)) << "round " << round;
  }
}

// ---- scale ----

// So many values that read two recent ones each, placed by a free list; `lanes` chains of segments that do not wait for one another.
Plan large_plan(NodeId nodes, int lanes, int nodes_per_segment) {
  Plan p;
  Graph& g = p.graph;
  const Type type{DType::u8, {192}};
  g.add_input("x", type);
  OpaqueAttrs attrs;
  Random random(5);
  for (NodeId n = 0; n < nodes; ++n) {   // node n belongs to lane n % lanes and reads from there
    std::vector<ValueId> in = {0};
    if (n >= lanes) in = {1 + n - lanes, 1 + n - lanes * (1 + pick(random, static_cast<std::size_t>(std::min<NodeId>(n / lanes, 40))))};
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
      auto& list = free[static_cast<std::size_t>(n % lanes)];
      q.where = Where::arena;
      q.offset = list.empty() ? p.arena_bytes : list.back();
      if (list.empty()) p.arena_bytes += 192;
      else list.pop_back();
      dying[q.death].push_back(v);
    }
    for (const ValueId d : dying[n]) free[static_cast<std::size_t>(n % lanes)].push_back(p.values[d].offset);
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
        p.segments[p.segments.size() - static_cast<std::size_t>(lanes)].successors.push_back(static_cast<std::int32_t>(p.segments.size()));
        s.n_predecessors = 1;
      }
      p.segments.push_back(std::move(s));
    }
  return p;
}

double seconds_to_check(const Plan& plan) {
  std::vector<std::string> found;
  const double seconds = testing::best_time([&] { found = check_plan(plan); });
  EXPECT_TRUE(found.empty()) << found[0];
  return seconds;
}

// A tenth of a second on an idle machine. What is judged is growth: ten times the values, 12 to 13 times the time, since caches are outgrown;
// a square would be a hundred, and a bit for every pair of segments, forty.
TEST(PlanMutation, HundredThousandValuesAreCheckedInASecond) {
  for (const auto& [lanes, run] : {std::pair(1, 8), std::pair(4, 8), std::pair(1, 1)}) {
    const Plan plan = large_plan(100000, lanes, run);
    const double seconds = seconds_to_check(plan), tenth = seconds_to_check(large_plan(10000, lanes, run));
    RecordProperty(fmt::format("seconds_{}_lanes_{}_nodes_a_segment", lanes, run), fmt::format("{:.3f}", seconds));
    fmt::print("{} values, {} segments: {:.3f} s, of a tenth of these {:.3f} s\n", plan.values.size(), plan.segments.size(), seconds, tenth);
    if (testing::kTimesCount) { EXPECT_LT(seconds, 20 * tenth + 0.1); }
    Plan broken = plan;
    broken.values[50000].offset = broken.values[50000 - lanes].offset;
    ASSERT_NE(broken.values[50000].offset, plan.values[50000].offset);
    EXPECT_FALSE(check_plan(broken).empty());
  }
}

}  // namespace
}  // namespace tapedeck
