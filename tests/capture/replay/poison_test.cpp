// Tests TAPEDECK_POISON. It must catch and name kernels that touch bytes which are not theirs, and plans that reuse bytes
// too early. Correct runs must stay as they are.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/memory/poison.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/test_op.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/value_named.h>

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <limits>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

struct Poisoned {
  explicit Poisoned(int level = 1) : scope(with(level)) {}
  static Settings with(int level) {
    Settings s = settings();
    s.poison = level;
    return s;
  }
  ScopedSettings scope;
};

// ---- a kernel that touches bytes which are not its own ----

enum Mischief : int { none, behind, before, far_away, reads_behind, unwritten };
std::atomic<int> mischief{none};
std::atomic<std::int64_t> distance{0};  // for far_away: in floats

void rogue_kernel(const KernelCall& call) {
  const float* in = call.inputs[0].as<float>();
  float* out = call.outputs[0].as<float>();
  const std::int64_t n = call.outputs[0].numel();
  const int what = mischief;
  for (std::int64_t i = 0; i < n - (what == unwritten); ++i) out[i] = in[i] + 1;
  if (what == behind) out[n] = 7;
  if (what == before) out[-1] = 7;
  if (what == far_away) out[distance] = 7;
  if (what == reads_behind) out[0] += in[n];
}

struct Misbehaving {
  explicit Misbehaving(Mischief what) { mischief = what; }
  ~Misbehaving() { mischief = none; }
};

// %k is alive while the rogue node runs. If `n` is no multiple of 16, each value has a gap behind it.
Graph with_rogue(int n) {
  test::unary_op("test.rogue", rogue_kernel);
  const std::string type = "f32[" + std::to_string(n) + "]";
  return parse("graph g(%x: " + type + ") {\n  %k: " + type + " = exp(%x)\n  %a: " + type + " = tanh(%x)\n  %r: " + type +
               " = test.rogue(%a) [site=\"model.cpp:7\"]\n  %s: " + type + " = add(%r, %k)\n  %b: " + type +
               " = mul(%s, %k)\n  %t: " + type + " = sub(%b, %a)\n  return %t\n}");
}

std::string run_once(const Graph& g, int threads = 1, const PlanOptions& options = {}) {
  Executor e(make_plan(g, options), {.threads = threads});
  for (std::int32_t i = 0; i < g.n_inputs; ++i) e.set_input(i, default_value(g.values[i].type, 3, "x"));
  try {
    e.run();
  } catch (const ExecutionError& error) {
    return error.what();
  }
  return "";
}

void expect_named(const std::string& message, const std::string& what) {
  for (const std::string& words : {std::string("[test.rogue]"), std::string("%r: f32["), std::string("model.cpp:7"), what})
    EXPECT_TRUE(mentions(message, words)) << "wanted: " << words << "\ngot: " << message;
}

TEST(Poison, AWellBehavedKernelIsLeftAlone) {
  for (const int level : {0, 1, 2}) {
    const Poisoned on(level);
    for (const int n : {10, 16, 1000}) EXPECT_EQ(run_once(with_rogue(n)), "");
  }
}

TEST(Poison, WritesIntoAGapBehindOrBeforeTheResult) {
  const Poisoned on;
  for (const Mischief what : {behind, before}) {
    const Misbehaving does(what);
    expect_named(run_once(with_rogue(10)), "writes outside its results: byte");
  }
}

// The rogue runs beside other branches. Several nodes may notice the damage, but the rogue is the lowest of them, so the
// error names the rogue.
Graph with_rogue_and_branches() {
  test::unary_op("test.rogue", rogue_kernel);
  std::string text = "graph g(%x: f32[10]) {\n  %r: f32[10] = test.rogue(%x) [site=\"model.cpp:7\"]\n", sum = "%r";
  constexpr const char* ops[] = {"exp", "tanh", "relu", "neg", "sigmoid", "copy"};
  for (int i = 0; i < 6; ++i) {
    const std::string k = std::to_string(i);
    text += "  %a" + k + ": f32[10] = " + ops[i] + "(%x)\n  %b" + k + ": f32[10] = tanh(%a" + k + ")\n  %s" + k +
            ": f32[10] = add(" + sum + ", %b" + k + ")\n";
    sum = "%s" + k;
  }
  return parse(text + "  %t: f32[10] = neg(" + sum + ")\n  return %t\n}");
}

TEST(Poison, WritesWhileOthersRun) {
  const Graph g = with_rogue_and_branches();
  const auto run = [&](int threads) {
    return run_once(g, threads, {.ordering = Ordering::recorded, .threads = threads, .segment_us = 0});
  };
  ASSERT_GT(make_plan(g, {.ordering = Ordering::recorded, .threads = 2, .segment_us = 0}).segments.size(), 10u);
  for (const int level : {1, 2}) {
    const Poisoned on(level);
    for (const int threads : {1, 2, 4}) EXPECT_EQ(run(threads), "") << threads;
#ifndef __SANITIZE_THREAD__  // under the thread sanitizer, this write beside readers is a race
    for (const Mischief what : {behind, before})
      for (const int threads : {1, 2, 4}) {
        const Misbehaving does(what);
        expect_named(run(threads), "writes outside its results: byte");
      }
#endif
  }
}

// These sizes leave no gaps, so the write hits a canary or the bytes of a neighbour, dead or alive. The error names the
// neighbour.
TEST(Poison, WritesIntoNeighbours) {
  const Poisoned on;
  for (const Mischief what : {behind, before}) {
    const Misbehaving does(what);
    const Graph g = with_rogue(16);
    const std::string message = run_once(g);
    expect_named(message, "writes outside its results: byte");
    const Plan plan = make_plan(g);
    const ValueId r = testing::value_named(plan.graph, "r");
    const std::int64_t hit = what == behind ? plan.values[r].offset + 64 : plan.values[r].offset - 4;
    std::string name = "beyond the arena";
    for (const MemoryBox& box : map_memory(plan).arena)  // the value that has these bytes, or had them last
      if (hit >= box.offset && hit < box.offset + box.bytes && box.first <= plan.values[r].birth) name = box_name(plan, box);
    EXPECT_TRUE(mentions(message, name)) << name << "\n" << message;
  }
}

// The kernel writes far away from its result. The damage is found when the bytes are used or the run ends; level 2 finds the
// node.
TEST(Poison, WritesFarAway) {
  const Misbehaving does(far_away);
  const Graph g = with_rogue(4096);
  const Plan plan = make_plan(g);
  const ValueId r = testing::value_named(plan.graph, "r");
  distance = (plan.arena_bytes - plan.values[r].offset) / 4 + 500;  // in the canary, 2000 bytes behind the arena
  {
    const Poisoned on(1);
    const std::string message = run_once(g);
    EXPECT_TRUE(mentions(message, "TAPEDECK_POISON=2 finds which")) << message;
    EXPECT_TRUE(message.starts_with("[poison] byte")) << "no node is blamed: " << message;
  }
  const Poisoned on(2);
  expect_named(run_once(g), "which is beyond the arena");
}

// Each chunk of an arena has its own canaries. The error counts bytes from the start of the chunk.
TEST(Poison, WritesOutsideAChunk) {
  const Graph g = with_rogue(16);
  const PlanOptions options{.strategy = Strategy::none, .chunk_bytes = 64};
  ASSERT_GT(make_plan(g, options).chunks.size(), 1u);
  for (const int level : {1, 2}) {
    const Poisoned on(level);
    EXPECT_EQ(run_once(g, 1, options), "");
    for (const auto& [what, byte] : {std::pair(behind, 64), std::pair(before, -4)}) {
      const Misbehaving does(what);
      const std::string message = run_once(g, 1, options);
      expect_named(message, fmt::format("writes outside its results: byte {} of chunk ", byte));
      EXPECT_TRUE(mentions(message, " of the arena, which is beyond the chunk")) << message;
    }
    const Misbehaving does(far_away);
    distance = 516;  // 2064 bytes on: 2000 bytes behind the chunk
    EXPECT_TRUE(mentions(run_once(g, 1, options), level == 2 ? "which is beyond the chunk" : "TAPEDECK_POISON=2 finds which"));
  }
}

TEST(Poison, ReadsBehindItsOperandAndElementsNeverWritten) {
  const Poisoned on;
  {
    const Misbehaving does(reads_behind);
    expect_named(run_once(with_rogue(10)), "leaves the pattern of dead bytes in element 0 of %r");
  }
  const Misbehaving does(unwritten);
  for (const int n : {10, 16}) {
    PlanOptions options;
    options.segment_us = 0;
    expect_named(run_once(with_rogue(n), 1, options),
                 fmt::format("leaves the pattern of dead bytes in element {} of %r", n - 1));
  }
}

// An output has no neighbours, but its kernel must still write every element.
TEST(Poison, ResultsThatAreReturned) {
  test::unary_op("test.rogue", rogue_kernel);
  const Poisoned on;
  const Misbehaving does(unwritten);
  const std::string message =
      run_once(parse("graph g(%x: f32[6]) {\n %r: f32[6] = test.rogue(%x) [site=\"model.cpp:7\"]\n return %r\n}"));
  expect_named(message, "in element 5 of %r");
}

// NaNs from the user pass unchanged, even those that look like the poison pattern.
TEST(Poison, NaNsOfTheUsersAreNoMatter) {
  const Poisoned on(2);
  const Graph g = parse(
      "graph g(%x: f32[4]) {\n %a: f32[4] = neg(%x)\n %b: f32[4] = add(%a, %x)\n %c: f32[4] = relu(%b)\n %d: f32[4] = mul(%c, "
      "%a)\n return %d, %b\n}");
  for (const std::uint32_t bits : {0xFFFFFFFFu, 0x7FFFFFFFu, 0x7FC00000u, 0xFFC00000u}) {
    std::vector<std::uint32_t> words(4, bits);
    Executor e(make_plan(g));
    e.set_input("x", from_bytes(g.values[0].type, words.data()));
    EXPECT_NO_THROW(e.run()) << bits;
  }
}

// ---- plans that reuse bytes too early ----

// Walks the nodes of a plan in order, as one thread does, with kernels that write exactly their results.
std::string walk(const Plan& plan) {
  std::vector<bool> called;
  for (const Node& node : plan.graph.nodes)
    called.push_back(!plan.graph.literal(node) && plan.values[node.first_output].reason != Reason::alias);
  replay::Poison poison(plan, called, 1);
  std::vector<char> bytes(static_cast<std::size_t>(plan.arena_bytes + 2 * replay::Poison::kCanary));
  poison.begin({bytes.data() + replay::Poison::kCanary});
  const View nothing[8] = {};
  KernelCall call;
  call.inputs = call.outputs = nothing;
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    if (!called[n]) continue;
    try {
      poison.before(n, call);
      const Node& node = plan.graph.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
        if (plan.values[v].where == Where::arena)
          std::memset(bytes.data() + replay::Poison::kCanary + plan.values[v].offset, 1,
                      static_cast<std::size_t>(plan.graph.values[v].type.bytes()));
      poison.after(n, call);
    } catch (const ExecutionError& e) {
      return e.what();
    }
  }
  return poison.all_dead_untouched();
}

TEST(Poison, AWrongLifetimeIsFoundWhereItMatters) {
  const Graph g = parse(R"(graph g(%x: u8[64]) {
    %a: u8[64] = opaque(%x) {us=1.0} [site="model.cpp:3"]
    %b: u8[64] = opaque(%x) {us=1.0}
    %c: u8[64] = opaque(%b) {us=1.0}
    %d: u8[64] = opaque(%a, %c) {us=1.0}
    return %d
  })");
  Plan plan = make_plan(g, {.ordering = Ordering::recorded});
  EXPECT_EQ(walk(plan), "");
  const auto at = [&](const char* name) -> Placement& { return plan.values[testing::value_named(plan.graph, name)]; };
  at("c").offset = at("a").offset;  // as if %a were dead already
  ASSERT_FALSE(check_plan(plan).empty());
  const std::string message = walk(plan);
  EXPECT_TRUE(mentions(message, "puts %c on bytes")) << message;
  EXPECT_TRUE(mentions(message, "bytes of %a (made at model.cpp:3), still to be read")) << message;
}

// Puts all nodes into one segment, so that they run in their order.
Plan in_order(Plan plan) {
  plan.segments.assign(1, Segment{});
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) plan.segments[0].nodes.push_back(n);
  return plan;
}

// Moves a single buffer. If the byte simulation finds a reader whose bytes are gone, the walk must stop with an error. If
// the walk stops, the checker must reject the plan too. Unchanged plans are walked to the end.
TEST(Poison, AgreesWithTheCheckerOnMovedBuffers) {
  int caught = 0, broken = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    const Plan good = in_order(make_plan(test::RandomProgram(seed, 24).graph()));
    ASSERT_EQ(walk(good), "") << print(good.graph);
    std::mt19937 random(seed);
    for (ValueId v = 0; v < good.graph.value_count(); ++v) {
      const Placement& p = good.values[v];
      if (p.where != Where::arena || p.reason == Reason::alias || p.reason == Reason::in_place ||
          good.graph.values[v].type.bytes() == 0)
        continue;
      bool alone = true;
      for (ValueId w = 0; w < good.graph.value_count(); ++w) alone = alone && (good.values[w].other != v);
      const std::int64_t room = (good.arena_bytes - good.graph.values[v].type.bytes()) / 64;
      if (!alone || room <= 0) continue;
      Plan plan = good;
      plan.values[v].offset = static_cast<std::int64_t>(random() % static_cast<unsigned>(room + 1)) * 64;
      const bool wrong = !check_plan(plan).empty(), found = !walk(plan).empty();
      EXPECT_TRUE(!found || wrong) << "%" << good.graph.value_name(v) << " at " << plan.values[v].offset << "\n"
                                   << print(good.graph);
      const bool breaks = !test::ByteSimulation(plan).run(1).empty();
      EXPECT_TRUE(!breaks || found) << "%" << good.graph.value_name(v) << " at " << plan.values[v].offset << "\n"
                                    << print(good.graph);
      caught += found;
      broken += breaks;
    }
  }
  EXPECT_GT(caught, 40);
  EXPECT_GT(broken, 40);
}

// ---- results and peaks that poison must not change ----

TEST(Poison, BitsAndPeaksAreTheSame) {
  const Poisoned on(2);
  for (unsigned seed = 1; seed <= 25; ++seed) {
    PlanOptions options;
    options.segment_us = seed % 2 ? 0 : 30;
    options.threads = 1 + static_cast<int>(seed % 3);
    check_replay(test::RandomGraph(seed).make(25), options, 2);
  }
}

TEST(Poison, ValuesThatAreDeadSaySo) {
  const Poisoned on;
  const Graph g = with_rogue(16);
  Executor e(make_plan(g));
  e.set_input("x", default_value(g.values[0].type, 3, "x"));
  e.run_to("r");
  EXPECT_NO_THROW(e.value("r"));
  EXPECT_NO_THROW(e.value("k"));
  e.run_to("b");
  const std::string message = message_of<ExecutionError>([&] { e.value("s"); });
  EXPECT_TRUE(mentions(message, "%s of 'g' is not there any more")) << message;
  e.resume();
  EXPECT_NO_THROW(e.output("t"));
}

}  // namespace
}  // namespace tapedeck
