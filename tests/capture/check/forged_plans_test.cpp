// Forges plans: each forgery gives one value of a good plan other bytes, and then corrects all sums, so that only the checker
// stands between the plan and the memory. If the checker accepts a forged plan, a replay of it must give the bits of an eager
// run.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/value_named.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/check/checks.h>

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace tapedeck {
namespace {

using Random = std::mt19937_64;

#ifdef TAPEDECK_SANITIZED
constexpr unsigned kSeeds = 200;  // this build is twenty times as slow
#else
constexpr unsigned kSeeds = 1500;
#endif

std::size_t pick(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

// Corrects all figures of a plan whose placements were forged.
void correct_sums(Plan* p) {
  p->arena_bytes = 0;
  for (ValueId v = 0; v < p->graph.value_count(); ++v)
    if (p->values[v].where == Where::arena && p->values[v].reason != Reason::alias)
      p->arena_bytes = std::max(p->arena_bytes, p->values[v].offset + p->graph.values[v].type.bytes());
  for (const Scratch& s : p->workspace) p->arena_bytes = std::max(p->arena_bytes, s.offset + s.bytes);
  p->arena_bytes = (p->arena_bytes + p->alignment - 1) / p->alignment * p->alignment;
  p->peak_bytes = p->external_bytes + p->arena_bytes;
  const std::vector<std::int64_t> live = live_bytes(*p);
  p->lower_bound_bytes = live.empty() ? p->external_bytes : *std::max_element(live.begin(), live.end());
  p->floor_bytes = std::min(p->floor_bytes, p->peak_bytes);
}

// Moves v to another offset, with the windows on it.
void move_to(Plan* p, ValueId v, std::int64_t offset) {
  const std::int64_t by = offset - p->values[v].offset;
  std::vector<char> along(p->values.size(), 0);
  along[static_cast<std::size_t>(v)] = 1;
  for (ValueId w = 0; w < p->graph.value_count(); ++w) {
    Placement& q = p->values[w];
    if (q.reason == Reason::alias) along[w] = along[q.other];
    if (along[w]) q.offset += by;
  }
}

std::vector<ValueId> owners_in_arena(const Plan& p) {
  std::vector<ValueId> all;
  for (ValueId v = p.graph.n_inputs + p.graph.n_state; v < p.graph.value_count(); ++v)
    if (p.values[v].where == Where::arena && p.values[v].reason != Reason::alias && p.values[v].reason != Reason::part)
      all.push_back(v);
  return all;
}

// Computes a value in place of one of its operands, which may be a window on some of the bytes that it takes over.
bool take_over(Plan* p, Random& random) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  for (const ValueId v : owners_in_arena(*p))
    for (const ValueId from : p->graph.inputs(p->graph.nodes[p->graph.values[v].node]))
      if (p->values[from].where == Where::arena && p->values[v].other != from) pairs.emplace_back(v, from);
  if (pairs.empty()) return false;
  const auto [v, from] = pairs[pick(random, pairs.size())];
  move_to(p, v, p->values[from].offset);
  p->values[v].reason = Reason::in_place;
  p->values[v].other = from;
  return true;
}

// Gives a value the place of another.
bool move(Plan* p, Random& random) {
  const std::vector<ValueId> owners = owners_in_arena(*p);
  if (owners.size() < 2) return false;
  const ValueId v = owners[pick(random, owners.size())], onto = owners[pick(random, owners.size())];
  move_to(p, v, p->values[onto].offset);
  return v != onto;
}

// Says of a value that takes bytes over that it has bytes of its own, in the same place.
bool deny_takeover(Plan* p, Random& random) {
  std::vector<ValueId> heirs;
  for (const ValueId v : owners_in_arena(*p))
    if (p->values[v].reason == Reason::in_place) heirs.push_back(v);
  if (heirs.empty()) return false;
  Placement& q = p->values[heirs[pick(random, heirs.size())]];
  q.reason = Reason::temporary;
  q.other = kNone;
  return true;
}

// Changes one number of a window.
bool bend_window(Plan* p, Random& random) {
  std::vector<ValueId> windows;
  for (ValueId v = 0; v < p->graph.value_count(); ++v)
    if (p->values[v].reason == Reason::alias) windows.push_back(v);
  if (windows.empty()) return false;
  const ValueId v = windows[pick(random, windows.size())];
  Placement& q = p->values[v];
  const int rank = p->graph.values[v].type.shape.rank;
  switch (random() % 3) {
    case 0:
      q.offset += 4 * (static_cast<std::int64_t>(random() % 5) - 2);
      return true;
    case 1:
      q.dense = !q.dense;
      return true;
    default:
      if (rank == 0) return false;
      q.dense = false;
      q.strides[pick(random, static_cast<std::size_t>(rank))] = static_cast<std::int64_t>(random() % 7);
      return true;
  }
}

// Makes an updated state value in the bytes of the state, whoever still reads them.
bool update_early(Plan* p, Random& random) {
  if (p->graph.updates.empty()) return false;
  const Update& u = p->graph.updates[pick(random, p->graph.updates.size())];
  const NodeId copier = p->graph.values[u.value].node;
  if (copier == kNone || p->graph.nodes[copier].n_inputs != 1) return false;
  const ValueId made = p->graph.inputs(p->graph.nodes[copier])[0];
  if (p->values[made].where != Where::arena || p->graph.values[made].node == kNone) return false;
  Placement& q = p->values[made];
  q.where = Where::state;
  q.slot = u.state - p->graph.n_inputs;
  q.offset = 0;
  return true;
}

struct Forgery {
  const char* name;
  bool (*apply)(Plan*, Random&);
};
constexpr Forgery kForgeries[] = {{"take_over", take_over},
                                  {"move", move},
                                  {"deny_takeover", deny_takeover},
                                  {"bend_window", bend_window},
                                  {"update_early", update_early}};

struct Counts {
  int forged = 0, accepted = 0;
};

// Replays the plan of `g` and compares with an eager run.
void expect_right(const Graph& g, const Plan& plan, const std::string& what) {
  const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 3), state = stand_ins(g, g.n_inputs, g.n_state, 7);
  const EagerResult eager = run_eagerly(g, inputs, state);
  Executor executor(plan, {.threads = 1});
  set_all(executor, inputs, state);
  executor.run();
  expect_equal(executor, eager, what + "\n" + print(plan.graph));
}

void forge(const Graph& g, const Plan& good, Random& random, Counts* counts) {
  for (const Forgery& f : kForgeries)
    for (int round = 0; round < 6; ++round) {
      Plan plan = good;
      if (!f.apply(&plan, random)) continue;
      Violations broken;
      check_structure(plan, &broken);
      if (std::any_of(broken.begin(), broken.end(), [](const std::string& s) { return s.find('%') != s.npos; })) continue;
      correct_sums(&plan);
      ++counts->forged;
      if (!check_plan(plan).empty()) continue;
      ++counts->accepted;
      expect_right(g, plan, f.name);
    }
}

TEST(ForgedPlans, WhatTheCheckerAcceptsIsRight) {
  Counts counts;
  for (unsigned seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const Graph g = test::RandomGraph(seed, /*rows=*/true).make(24);
    PlanOptions options;
    options.threads = 1 + static_cast<int>(seed % 2);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    forge(g, make_plan(g, options), random, &counts);
  }
  fmt::print("{} forged plans, {} of them accepted\n", counts.forged, counts.accepted);
  EXPECT_GE(counts.forged, 6 * static_cast<int>(kSeeds));
  EXPECT_GE(counts.accepted, static_cast<int>(kSeeds)) << "the checker refuses so many that the test shows nothing";
}

// %v takes over the bytes of %a through its first row. add() would read the row again after it has overwritten it.
TEST(ForgedPlans, ATakeoverThroughAWindowOnSomeOfTheBytesIsRefused) {
  const Graph g = parse(R"(graph g(%in: f32[4,4], %y: f32[4,4]) {
    %a: f32[4,4] = exp(%in)
    %t: f32[4] = sum(%a) {axes=[0]}
    %s: f32[1,4] = slice(%a) {starts=[0,0], stops=[1,4]}
    %v: f32[4,4] = add(%s, %y)
    %r: f32[4,4] = exp(%v)
    return %t, %r
  })",
                        "g");
  Plan plan = make_plan(g);
  const ValueId v = testing::value_named(plan.graph, "v"), s = testing::value_named(plan.graph, "s");
  move_to(&plan, v, plan.values[s].offset);
  plan.values[v].reason = Reason::in_place;
  plan.values[v].other = s;
  correct_sums(&plan);
  const std::vector<std::string> found = check_plan(plan);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "%v takes over the 64 bytes of %a, but shows only 16 bytes, %s, to its op, which reads them again");
}

}  // namespace
}  // namespace tapedeck
