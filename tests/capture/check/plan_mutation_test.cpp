// Tests the checker of plans by mutation: each mutation breaks good plans in one way. If a run on simulated memory
// (byte_simulation.h) finds a reader whose bytes are gone, the checker must have complained too. One test does this in a
// plan of 100,000 values.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/large_plan.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/check/byte_successions.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

namespace tapedeck {
namespace {

using Random = std::mt19937;

int pick(Random& random, std::size_t n) { return static_cast<int>(random() % n); }

// ---- mutations; each returns false if the plan offers no place for it ----

void shift(Plan* p, std::int32_t buffer, std::int64_t by) {
  std::vector<char> moved(p->values.size(), 0);
  for (const MemoryBox& box : map_memory(*p).arena)
    if (box.buffer == buffer && box.value != kNone)
      moved[box.value] = 1;
    else if (box.buffer == buffer)
      p->workspace[box.node].offset += by;
  for (ValueId v = p->graph.value_count(); v-- > 0;)  // parts move with their whole, windows with their base
    if (p->values[v].reason == Reason::part) moved[v] = moved[p->values[v].other];
  for (ValueId v = 0; v < p->graph.value_count(); ++v) {
    Placement& q = p->values[v];
    if (q.reason == Reason::alias) moved[v] = moved[q.other];
    if (moved[v]) q.offset += by;
  }
}

std::vector<ValueId> parts_of(const Plan& p, ValueId whole) {
  std::vector<ValueId> parts;
  for (ValueId v = 0; v < p.graph.value_count(); ++v)
    if (p.values[v].reason == Reason::part && p.values[v].other == whole && p.graph.values[v].type.bytes() > 0)
      parts.push_back(v);
  return parts;
}

// Moves a whole buffer, with all windows on it, to another place in the arena.
bool move_buffer(Plan* p, Random& random) {
  const MemoryMap map = map_memory(*p);
  if (map.arena.empty()) return false;
  const MemoryBox& box = map.arena[pick(random, map.arena.size())];
  const std::int64_t room = (p->arena_bytes - box.bytes) / p->alignment;
  const std::int64_t to = room > 0 ? static_cast<std::int64_t>(random() % static_cast<unsigned>(room + 1)) * p->alignment : 0;
  shift(p, box.buffer, to - box.offset);
  return to != box.offset;
}

// Swaps the places of two buffers.
bool swap_buffers(Plan* p, Random& random) {
  const MemoryMap map = map_memory(*p);
  if (map.arena.size() < 2) return false;
  const MemoryBox &a = map.arena[pick(random, map.arena.size())], &b = map.arena[pick(random, map.arena.size())];
  if (a.buffer == b.buffer || a.offset + b.bytes > p->arena_bytes || b.offset + a.bytes > p->arena_bytes) return false;
  shift(p, a.buffer, b.offset - a.offset);
  shift(p, b.buffer, a.offset - b.offset);
  return true;
}

// Moves a whole with its parts to a place where another buffer is still alive when the first part is made. The arena grows
// if necessary.
bool move_whole(Plan* p, Random& random) {
  const MemoryMap map = map_memory(*p);
  std::vector<std::pair<const MemoryBox*, const MemoryBox*>> clashes;
  for (const MemoryBox& whole : map.arena) {
    if (whole.value == kNone || parts_of(*p, whole.value).empty()) continue;
    for (const MemoryBox& tenant : map.arena)
      if (tenant.buffer != whole.buffer && tenant.first < whole.first && tenant.last >= whole.first)
        clashes.push_back({&whole, &tenant});
  }
  if (clashes.empty()) return false;
  const auto [whole, tenant] = clashes[pick(random, clashes.size())];
  const std::int64_t more = std::max<std::int64_t>(0, tenant->offset + whole->bytes - p->arena_bytes);
  p->arena_bytes += more;
  p->peak_bytes += more;
  shift(p, whole->buffer, tenant->offset - whole->offset);
  return true;
}

// Moves one part of a whole onto another part of the same whole.
bool overlap_parts(Plan* p, Random& random) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (ValueId whole = 0; whole < p->graph.value_count(); ++whole) {
    const std::vector<ValueId> parts = parts_of(*p, whole);
    for (std::size_t k = 1; k < parts.size(); ++k) pairs.push_back({parts[k - 1], parts[k]});
  }
  if (pairs.empty()) return false;
  auto [on, moved] = pairs[pick(random, pairs.size())];
  if (random() % 2) std::swap(on, moved);
  const std::int64_t by = p->values[on].offset - p->values[moved].offset;
  std::vector<char> along(p->values.size(), 0);
  along[moved] = 1;
  for (ValueId v = 0; v < p->graph.value_count(); ++v) {
    if (p->values[v].reason == Reason::alias) along[v] = along[p->values[v].other];
    if (along[v]) p->values[v].offset += by;
  }
  return by != 0;
}

void drop_successor(Plan* p, std::size_t segment, std::int32_t next) {
  std::erase(p->segments[segment].successors, next);
  --p->segments[next].n_predecessors;
}

// Removes an edge, so that a segment no longer waits for another.
bool drop_edge(Plan* p, Random& random) {
  std::vector<std::pair<std::size_t, std::int32_t>> edges;
  for (std::size_t s = 0; s < p->segments.size(); ++s)
    for (const std::int32_t next : p->segments[s].successors) edges.push_back({s, next});
  if (edges.empty()) return false;
  const auto [from, to] = edges[pick(random, edges.size())];
  drop_successor(p, from, to);
  p->reuse_edges.clear();  // a recorded reuse edge would reveal the missing edge
  return true;
}

// Removes an edge that exists only because bytes are used again.
bool drop_reuse_edge(Plan* p, Random& random) {
  if (p->reuse_edges.empty()) return false;
  const Edge edge = p->reuse_edges[pick(random, p->reuse_edges.size())];
  for (std::size_t s = 0; s < p->segments.size(); ++s)
    for (std::size_t t = s + 1; t < p->segments.size(); ++t) {
      const auto holds = [&](const Segment& segment, NodeId n) {
        return std::find(segment.nodes.begin(), segment.nodes.end(), n) != segment.nodes.end();
      };
      const std::vector<std::int32_t>& next = p->segments[s].successors;
      if (!holds(p->segments[s], edge.before) || !holds(p->segments[t], edge.after) ||
          std::find(next.begin(), next.end(), static_cast<std::int32_t>(t)) == next.end())
        continue;
      drop_successor(p, s, static_cast<std::int32_t>(t));
      p->reuse_edges.clear();
      return true;
    }
  return false;
}

// Swaps two nodes between segments: each then runs where the other ran.
bool swap_nodes(Plan* p, Random& random) {
  if (p->segments.size() < 2) return false;
  Segment &a = p->segments[pick(random, p->segments.size())], &b = p->segments[pick(random, p->segments.size())];
  if (&a == &b) return false;
  std::swap(a.nodes[pick(random, a.nodes.size())], b.nodes[pick(random, b.nodes.size())]);
  std::sort(a.nodes.begin(), a.nodes.end());
  std::sort(b.nodes.begin(), b.nodes.end());
  return true;
}

// Computes a result in the bytes of an operand that it must not overwrite.
bool take_over(Plan* p, Random& random) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (NodeId n = 0; n < p->graph.node_count(); ++n) {
    const Node& node = p->graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      for (const ValueId from : p->graph.inputs(node)) {
        const Placement &a = p->values[v], &b = p->values[from];
        const bool whole =
            a.where == Where::arena && b.where == Where::arena && a.reason != Reason::alias && b.reason != Reason::alias;
        if (whole && a.reason != Reason::in_place && p->graph.values[v].type.bytes() == p->graph.values[from].type.bytes() &&
            a.offset != b.offset)
          pairs.push_back({v, from});
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

// Moves a window away from the elements that it should show.
bool shift_window(Plan* p, Random& random) {
  std::vector<ValueId> windows;
  for (ValueId v = 0; v < p->graph.value_count(); ++v)
    if (p->values[v].reason == Reason::alias && p->graph.values[v].type.bytes() > 0) windows.push_back(v);
  if (windows.empty()) return false;
  p->values[windows[pick(random, windows.size())]].offset += 4;
  return true;
}

// Writes a result into a state that is still read, or into an input.
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
constexpr Mutation kMutations[] = {{"move_buffer", move_buffer},   {"swap_buffers", swap_buffers},
                                   {"drop_edge", drop_edge},       {"drop_reuse_edge", drop_reuse_edge},
                                   {"swap_nodes", swap_nodes},     {"take_over", take_over},
                                   {"shift_window", shift_window}, {"write_elsewhere", write_elsewhere},
                                   {"move_whole", move_whole},     {"overlap_parts", overlap_parts}};

bool breaks(const Plan& plan, int runs) {
  for (int seed = 0; seed < runs; ++seed)
    if (!test::ByteSimulation(plan).run(static_cast<unsigned>(seed)).empty()) return true;
  return false;
}

constexpr int kConfirmedEnough = 5;

// Applies every mutation to `good`. Counts, for each mutation, the broken plans that the simulation confirmed. The simulation
// takes much longer than the checker, and is asked about every plan in which the checker finds nothing; about the others until
// it has confirmed enough of them.
void mutate(const Plan& good, int rounds, int runs, Random& random, std::map<std::string, int>* confirmed) {
  ASSERT_TRUE(check_plan(good).empty()) << check_plan(good)[0];
  for (const Mutation& m : kMutations)
    for (int round = 0; round < rounds; ++round) {
      Plan plan = good;
      if (!m.apply(&plan, random)) continue;
      const bool noticed = !check_plan(plan).empty();
      if ((noticed && (*confirmed)[m.name] >= kConfirmedEnough) || !breaks(plan, runs)) continue;
      ++(*confirmed)[m.name];
      EXPECT_TRUE(noticed) << m.name << " went unnoticed in\n" << print(good.graph);
    }
}

// A random program with joins. Other nodes read the parts before and after the join, and other values stay alive for a long
// time.
Graph with_joins(Random& random) {
  std::string text = "graph joins(%x: f32[4,6]) {\n";
  std::vector<std::string> known = {"%x"};
  const auto make = [&](const std::string& name, int rows, const std::string& how) {
    text += fmt::format("  {}: f32[{},6] = {}\n", name, rows, how);
    known.push_back(name);
  };
  const auto any = [&] { return known[pick(random, known.size())]; };
  for (int i = 0; i < 5; ++i) {
    make(fmt::format("%t{}", i), 1 + pick(random, 5), fmt::format("opaque({}) {{us=1.0}}", any()));
    std::string joined;
    int rows = 0;
    for (int k = 0, n = 2 + pick(random, 2); k < n; ++k) {
      const std::string part = fmt::format("%p{}_{}", i, k);
      const int own = 1 + pick(random, 4);
      make(part, own, fmt::format("opaque({}, {}) {{us=1.0}}", any(), any()));
      if (random() % 2) make(fmt::format("%r{}_{}", i, k), 2, fmt::format("opaque({}) {{us=1.0}}", part));
      joined += (k ? ", " : "") + part;
      rows += own;
    }
    make(fmt::format("%w{}", i), rows, fmt::format("concat({}) {{axis=0}}", joined));
  }
  make("%end", 1, fmt::format("opaque(%w4, {}, {}) {{us=1.0}}", any(), any()));
  return parse(text + "  return %end\n}\n", "joins");
}

TEST(PlanMutation, WhateverReallyBreaksIsNoticed) {
  Random random(7);
  std::map<std::string, int> confirmed;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    PlanOptions options;
    options.find_floor = false;
    options.segment_us = seed % 3 ? 0 : 20;
    options.threads = 1 + static_cast<int>(seed % 2);
    if (seed % 4 == 0) options.budget_percent = 75;
    const Graph graph = seed % 2 ? test::RandomProgram(seed, 24).graph() : test::RandomGraph(seed).make(20);
    mutate(make_plan(graph, options), 4, 12, random, &confirmed);
    mutate(make_plan(with_joins(random), options), 1, 12, random, &confirmed);
  }
  for (const Mutation& m : kMutations)
    EXPECT_GE(confirmed[m.name], kConfirmedEnough) << m.name << " broke next to nothing: it tests nothing";
}

TEST(PlanMutation, InModelsToo) {
  Random random(8);
  std::map<std::string, int> confirmed;
  const std::pair<const char*, ModelOptions> models[] = {
      {"rnn_cell", {.batch = 1, .width = 8, .abstract = true}},
      {"unet", {.batch = 1, .image = 16, .width = 2, .abstract = true}},
      {"mlp_attention", {.batch = 1, .seq = 4, .layers = 1, .width = 8, .abstract = true}}};
  for (const auto& [model, request] : models)
    mutate(make_plan(record_model(*find_model(model), request).graph, {.find_floor = false, .segment_us = 0}), 2, 1, random,
           &confirmed);
  EXPECT_GE(confirmed.size(), 3u);
}

// An update computed in place may read an element of the state only while it overwrites the same element. Here row 0 is read
// to make rows 1 to 3, so the update must be refused.
TEST(PlanMutation, AnUpdateMadeInPlaceOfAPieceOfItsStateIsFound) {
  Plan plan = make_plan(parse(R"(graph g(%y: f32[1024]) state(%w: f32[4,256]) {
    %r: f32[1,256] = slice(%w) {starts=[0,0], stops=[1,256]}
    %z: f32[4,256] = reshape(%y) {shape=[4,256]}
    %d: f32[4,256] = add(%r, %z)
    return %y
    update %w = %d
  })",
                              "piece"));
  ASSERT_TRUE(check_plan(plan).empty());
  const ValueId copied = plan.graph.updates[0].value;
  const ValueId made = plan.graph.inputs(plan.graph.nodes[plan.graph.values[copied].node])[0];
  ASSERT_EQ(plan.graph.value_name(made), "d");
  plan.graph.updates[0].value = made;
  Placement &in_state = plan.values[copied], &in_arena = plan.values[made];
  std::swap(in_state.where, in_arena.where);
  std::swap(in_state.slot, in_arena.slot);
  std::swap(in_state.offset, in_arena.offset);
  std::swap(in_state.reason, in_arena.reason);
  in_state.reason = Reason::unread;
  in_state.death = in_state.birth;
  in_state.reader = kNone;
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("overwrites the state that its own op reads"), std::string::npos) << found[0];
}

// A wrong birth, death or last reader must be found, because pictures and live bytes would be wrong.
TEST(PlanMutation, LifetimesAreTheGraphs) {
  Random random(9);
  int tried = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Plan good = make_plan(test::RandomProgram(seed).graph(), {.find_floor = false});
    for (ValueId v = 0; v < good.graph.value_count(); ++v) {
      NodeId last = kNone;
      for (NodeId n = 0; n < good.graph.node_count(); ++n)
        for (const ValueId w : good.graph.inputs(good.graph.nodes[n]))
          if (w == v) last = n;
      if (last == kNone) continue;
      Plan plan = good;
      plan.values[v].death = last - 1 - pick(random, static_cast<std::size_t>(last) + 1);
      EXPECT_FALSE(check_plan(plan).empty())
          << "%" << good.graph.value_name(v) << " dies at " << plan.values[v].death << ", read by " << last;
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

// ---- find successions of buffers by a sweep over the arena ----

// All successions of buffers by brute force, over every pair: two buffers share bytes that no third buffer has had in
// between.
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

// ---- plans of 100,000 values ----

// tests/bench/check_bench measures the time of this check.
TEST(PlanMutation, OneWrongOffsetAmongAHundredThousandValuesIsFound) {
  for (const auto& [lanes, run] : {std::pair(1, 8), std::pair(4, 8), std::pair(1, 1)}) {
    const Plan plan = test::large_plan(100000, lanes, run);
    const std::vector<std::string> found = check_plan(plan);
    EXPECT_TRUE(found.empty()) << found[0];
    Plan broken = plan;
    broken.values[50000].offset = broken.values[50000 - lanes].offset;
    ASSERT_NE(broken.values[50000].offset, plan.values[50000].offset);
    EXPECT_FALSE(check_plan(broken).empty());
  }
}

// The number of pairs that the checker looks at grows like the number of values, not like its square.
TEST(PlanCheckSweep, FindsAsManyPairsAsThereAreValues) {
  for (const NodeId nodes : {1000, 10000, 100000}) {
    const Plan plan = test::large_plan(nodes, 4, 8);
    std::vector<Stretch> stretches;
    for (ValueId v = 2; v < plan.graph.value_count(); ++v)
      stretches.push_back({plan.values[v].offset, plan.values[v].offset + 192, plan.values[v].birth});
    EXPECT_LE(successions(stretches).size(), stretches.size());
  }
}

}  // namespace
}  // namespace tapedeck
