// Tests plans whose arena is allocated in chunks: no chunk is larger than the cap, no value lies across the joint of two
// chunks, and replays give the eager bits in the planned bytes.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/explain/memory_snapshot.h>
#include <tapedeck/capture/explain/memory_svg.h>
#include <tapedeck/capture/explain/plan_csv.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/plan_json.h>
#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>
#include <tapedeck/capture/planner/place/buffers_csv.h>
#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/plan_equal.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/seeds.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

PlanOptions in_chunks(std::int64_t bytes, PlanOptions options = {}) {
  options.chunk_bytes = bytes;
  return options;
}

struct Span {
  std::int64_t offset, bytes;
};

// Every value and workspace that has its own bytes in the arena.
std::vector<Span> spans_of(const Plan& plan) {
  std::vector<Span> spans;
  for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
    const Placement& p = plan.values[v];
    const std::int64_t bytes = plan.graph.values[v].type.bytes();
    if (p.where == Where::arena && p.reason != Reason::alias && p.reason != Reason::part && bytes > 0)
      spans.push_back({p.offset, bytes});
  }
  for (const Scratch& s : plan.workspace)
    if (s.bytes > 0) spans.push_back({s.offset, s.bytes});
  return spans;
}

// Looks at every value in every chunk. Each chunk must be exactly as large as its content needs.
void expect_chunks(const Plan& plan, std::int64_t cap) {
  EXPECT_EQ(plan.chunk_bytes, cap);
  EXPECT_EQ(std::accumulate(plan.chunks.begin(), plan.chunks.end(), std::int64_t{0}), plan.arena_bytes);
  EXPECT_TRUE(std::is_sorted(plan.chunks.rbegin(), plan.chunks.rend()));
  std::vector<Span> left = spans_of(plan);
  std::int64_t start = 0;
  for (const std::int64_t bytes : plan.chunks) {
    std::int64_t held = 0, largest = 0;
    std::erase_if(left, [&](const Span& s) {
      if (s.offset < start || s.offset >= start + bytes) return false;
      held = std::max(held, s.offset + s.bytes - start);
      largest = std::max(largest, s.bytes);
      EXPECT_LE(s.offset + s.bytes, start + bytes) << "across a joint";
      EXPECT_EQ((s.offset - start) % plan.alignment, 0);
      return true;
    });
    EXPECT_EQ(held, bytes);
    EXPECT_LE(bytes, std::max(cap, largest));
    start += bytes;
  }
  EXPECT_TRUE(left.empty());
}

void expect_sound_chunks(const Plan& plan, std::int64_t cap, unsigned seed) {
  const std::vector<std::string> violations = check_plan(plan);
  ASSERT_TRUE(violations.empty()) << violations.front() << "\n" << print(plan.graph);
  ASSERT_NO_FATAL_FAILURE(expect_chunks(plan, cap)) << print(plan.graph);
  for (unsigned order = 0; order < 3; ++order) ASSERT_EQ(test::ByteSimulation(plan).run(seed + order), "") << print(plan.graph);
}

// ---- properties of random plans in chunks ----

class PlanChunks : public ::testing::TestWithParam<int> {
 protected:
  std::int64_t random_cap(const Plan& whole) {
    const std::int64_t most = std::max<std::int64_t>(whole.arena_bytes, 1);
    const auto any = 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
    const std::int64_t caps[] = {1, any, (most + 3) / 4, most, most + 1, std::int64_t{1} << 60};
    return caps[random_() % std::size(caps)];
  }
  std::mt19937_64 random_{static_cast<std::uint64_t>(GetParam()) + 17};
};

TEST_P(PlanChunks, AreSoundWhateverTheCap) {
  const auto seed = static_cast<unsigned>(GetParam());
  const Graph graph = test::RandomProgram(seed).graph();
  for (const Strategy strategy : {Strategy::none, Strategy::automatic}) {
    PlanOptions options;
    options.strategy = strategy;
    options.alignment = std::int64_t{1} << (seed % 8);
    options.segment_us = seed % 3 == 0 ? 0 : 5.0 * (seed % 7);
    options.find_floor = seed % 4 == 0;
    const Plan whole = make_plan(graph, options);
    EXPECT_TRUE(whole.chunks.empty());
    for (int i = 0; i < 3; ++i) {
      const std::int64_t cap = random_cap(whole);
      SCOPED_TRACE(cap);
      const Plan plan = make_plan(graph, in_chunks(cap, options));
      ASSERT_NO_FATAL_FAILURE(expect_sound_chunks(plan, cap, seed));
      EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
      expect_same_plan(plan, parse_plan(plan_to_json(plan), plan.graph));
      expect_same_plan(plan, make_plan(graph, in_chunks(cap, options)));
    }
    const std::int64_t cap = random_cap(whole);
    options.budget_percent = 80;
    ASSERT_NO_FATAL_FAILURE(expect_sound_chunks(make_plan(graph, in_chunks(cap, options)), cap, seed));
    options.budget_percent = -1;
    options.threads = 3;
    options.parallel_peak = 5;
    ASSERT_NO_FATAL_FAILURE(expect_sound_chunks(make_plan(graph, in_chunks(cap, options)), cap, seed));
  }
}

TEST_P(PlanChunks, ReplayEqualsEagerAndHoldsWhatIsPlanned) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const Graph g = test::RandomGraph(seed).make(5 + static_cast<int>(seed % 40));
  const PlanOptions options{.find_floor = false, .segment_us = 0.2};
  const Plan whole = make_plan(g, options);
  check_replay(g, in_chunks(random_cap(whole), options), 2);
  check_replay(
      g,
      in_chunks(random_cap(whole),
                {.strategy = Strategy::none, .find_floor = false, .threads = 2, .segment_us = 0.2, .parallel_peak = 3}),
      2);
  for (const int level : {1, 2}) {
    Settings poisoned = settings();
    poisoned.poison = level;
    const ScopedSettings scope(poisoned);
    check_replay(g, in_chunks(random_cap(whole), options), 2);
  }
}

TEST_P(PlanChunks, TheTableSaysWhichChunk) {
  const Graph g = test::RandomProgram(static_cast<unsigned>(GetParam())).graph();
  const Plan plan = make_plan(g, in_chunks(random_cap(make_plan(g, {.find_floor = false})), {.find_floor = false}));
  const BufferList list = parse_buffers(plan_csv(plan), "plan.csv");
  Offsets placed;
  std::vector<Tenant> free;
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(list.columns.begin(), list.columns.end(), name) - list.columns.begin());
  };
  for (std::size_t i = 0; i < list.buffers.size(); ++i) {
    placed.offsets.push_back(list.buffers[i].fixed);
    placed.arena.push_back(plan.chunks.empty() ? 0 : std::stoi(list.rows[i].at(column("arena"))));
    free.push_back(list.buffers[i]);
    free.back().fixed = -1;
  }
  placed.end = plan.arena_bytes;
  EXPECT_EQ(find_fault(free, placed, plan.chunk_bytes), "") << plan_csv(plan);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanChunks, ::testing::Range(0, test::seeds(60)));

// ---- bytes that chunks cost ----

TEST(PlanChunksZoo, AQuarterOfThePeakCostsATwentiethAtMost) {
  for (const char* name : {"mlp", "cnn", "lenet", "unet", "mlp_attention", "resnet18", "squeezenet", "transformer_encoder"})
    for (const std::int64_t batch : {1, 32}) {
      SCOPED_TRACE(fmt::format("{}, batch {}", name, batch));
      const Model* const model = find_model(name);
      ASSERT_NE(model, nullptr);
      const Graph graph = record_model(*model, {.batch = batch, .abstract = true}).graph;
      PlanOptions options;
      options.find_floor = false;
      const Plan whole = make_plan(graph, options);
      const Plan plan = make_plan(graph, in_chunks(whole.peak_bytes / 4, options));
      expect_chunks(plan, whole.peak_bytes / 4);
      EXPECT_LE(static_cast<double>(plan.peak_bytes), 1.05 * static_cast<double>(whole.peak_bytes));
    }
}

// A buffer that is larger than the cap gets a chunk of its own size. Another buffer may use this chunk while the first is
// not alive.
TEST(PlanInChunks, WhatIsLargerThanAChunkSharesOne) {
  const Graph g = test::chain(3, 1000);
  const Plan plan = make_plan(g, in_chunks(300, {.strategy = Strategy::none, .alignment = 1}));
  EXPECT_EQ(plan.arena_bytes, make_plan(g, {.strategy = Strategy::none, .alignment = 1}).arena_bytes);
  for (const std::int64_t bytes : plan.chunks) EXPECT_EQ(bytes, 1000);
}

TEST(PlanInChunks, NothingInTheArenaIsNoChunk) {
  const Plan plan = make_plan(parse("graph g(%x: f32[4]) { %y: f32[4] = exp(%x) return %y }"), in_chunks(16));
  EXPECT_TRUE(plan.chunks.empty());
  EXPECT_TRUE(check_plan(plan).empty());
  check_replay(plan.graph, in_chunks(16));
}

// ---- alignment of offsets ----

TEST(PlanAlignment, IsTheDevicesUnlessSaid) {
  const Graph g = test::chain(4, 100);
  EXPECT_EQ(make_plan(g).alignment, 64);
  EXPECT_EQ(make_plan(g, {.device = DeviceType::cuda}).alignment, 256);
  EXPECT_EQ(make_plan(g, {.alignment = 8, .device = DeviceType::cuda}).alignment, 8);
  const Plan plan = make_plan(g, in_chunks(300, {.device = DeviceType::cuda}));
  EXPECT_EQ(plan.alignment, 256);
  expect_chunks(plan, 300);
  EXPECT_GT(plan.chunks.size(), 1u) << "two of 100 bytes take 356";
  EXPECT_THROW(make_plan(g, {.alignment = -2}), UsageError);
  EXPECT_THROW(make_plan(g, in_chunks(-1)), UsageError);
}

// ---- how the checker judges chunks ----

Plan chunked_chain() { return make_plan(test::chain(6, 64), in_chunks(128, {.strategy = Strategy::none, .segment_us = 0})); }

void expect_rejected(const std::string& words, const std::function<void(Plan&)>& spoil) {
  Plan plan = chunked_chain();
  ASSERT_GE(plan.chunks.size(), 2u);
  ASSERT_TRUE(check_plan(plan).empty()) << check_plan(plan)[0];
  spoil(plan);
  const std::vector<std::string> violations = check_plan(plan);
  ASSERT_FALSE(violations.empty()) << "not noticed: " << words;
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(),
                          [&](const std::string& v) { return v.find(words) != std::string::npos; }))
      << "wanted: " << words << "\ngot: " << violations[0];
  EXPECT_THROW(parse_plan(plan_to_json(plan), plan.graph), InvalidGraphError) << "in a file";
  Plan of_file = plan;
  EXPECT_THROW(Executor{of_file}, InvalidGraphError);
}

TEST(PlanCheckChunks, RefusesWhatIsNotAsSaid) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kLeast = std::numeric_limits<std::int64_t>::min();
  expect_rejected("across a joint", [](Plan& p) {  // move the joint into a value
    p.chunks[0] -= 32;
    p.chunks[1] += 32;
  });
  expect_rejected("more than 128 and than anything in it", [](Plan& p) {
    p.chunks[0] += p.chunks.back();
    p.chunks.pop_back();
  });
  expect_rejected("more than arena_bytes", [](Plan& p) { p.chunks.push_back(64); });
  expect_rejected("less than arena_bytes", [](Plan& p) { p.chunks.pop_back(); });
  expect_rejected("the arena is to be in chunks", [](Plan& p) { p.chunks.clear(); });
  expect_rejected("the arena is to be one block", [](Plan& p) { p.chunk_bytes = 0; });
  expect_rejected("chunk_bytes is -1", [](Plan& p) { p.chunk_bytes = -1; });
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-64}, kMost, kLeast}) {
    expect_rejected("chunk", [bad](Plan& p) { p.chunks[0] = bad; });
    expect_rejected("chunk", [bad](Plan& p) { p.chunks.insert(p.chunks.begin(), 2, bad); });
  }
}

// Moves all bytes up, as if a chunk of 32 bytes lay below all others, with `padding` at the start of the next chunk.
void push_up(Plan& p, std::int64_t padding) {
  p.chunks.insert(p.chunks.begin(), 32);
  p.chunks[1] += padding;
  p.arena_bytes += 32 + padding;
  p.peak_bytes += 32 + padding;
  for (Placement& v : p.values)
    if (v.where == Where::arena) v.offset += 32 + padding;
}

TEST(PlanCheckChunks, AlignmentCountsFromTheChunk) {
  Plan plan = chunked_chain();
  push_up(plan, 0);
  EXPECT_TRUE(check_plan(plan).empty()) << check_plan(plan)[0];
  expect_rejected("lies at 32 of its chunk, which is no multiple of 64", [](Plan& p) { push_up(p, 32); });
}

TEST(PlanCheckChunks, HostileNumbersDoNoHarm) {
  std::mt19937_64 random(5);
  const Plan good = chunked_chain();
  for (int i = 0; i < 3000; ++i) {
    Plan p = good;
    const auto wide = [&] { return static_cast<std::int64_t>(random()) >> (random() % 64); };
    if (i % 2) p.chunks.assign(random() % 5, wide());
    for (std::int64_t& bytes : p.chunks)
      if (random() % 2) bytes = wide();
    if (random() % 2) p.chunk_bytes = wide();
    if (random() % 2) p.values[random() % p.values.size()].offset = wide();
    if (random() % 2) p.workspace[random() % p.workspace.size()] = {wide(), wide()};
    check_plan(p);
  }
}

// ---- chunks in files ----

TEST(PlanChunksFile, ATapeCarriesThem) {
  const TemporaryFolder folder;
  TapeFile file;
  file.captured = sample_graph();
  file.plan = make_plan(file.captured, in_chunks(256));
  ASSERT_GT(file.plan->chunks.size(), 1u);
  save_tape(folder.file("c.tape"), file);
  const TapeFile back = load_tape(folder.file("c.tape"));
  expect_same_plan(*file.plan, *back.plan);
  EXPECT_EQ(back.plan->chunks, file.plan->chunks);
}

TEST(PlanChunksFile, ReadsNumbersThatLieAsErrors) {
  const auto with = [](const std::string& members) { return R"({"schema":"tapedeck.plan_data/1",)" + members + "}"; };
  EXPECT_EQ(read_plan_json(with(R"("chunk_bytes":5,"chunks":[3,2])")).chunks, (std::vector<std::int64_t>{3, 2}));
  for (const char* bad : {R"("chunks":3)", R"("chunks":[1.5])", R"("chunks":["1"])", R"("chunks":[9223372036854775808])",
                          R"("chunk_bytes":"64")"})
    EXPECT_TRUE(mentions(message_of<InvalidGraphError>([&] { read_plan_json(with(bad)); }), "chunk")) << bad;
  EXPECT_FALSE(mentions(plan_to_json(make_plan(sample_graph())), "chunk")) << "plans without chunks are the bytes they were";
}

// ---- chunks in pictures and texts ----

TEST(PlanChunksShown, JointsAreDrawnAndChunksListed) {
  const Plan plan = chunked_chain();
  const std::string svg = memory_svg(plan), plain = memory_svg(make_plan(plan.graph, {.strategy = Strategy::none}));
  std::size_t joints = 0;
  for (std::size_t at = svg.find("class=\"joint\""); at != std::string::npos; at = svg.find("class=\"joint\"", at + 1))
    ++joints;
  EXPECT_EQ(joints, plan.chunks.size() - 1);
  EXPECT_TRUE(mentions(svg, "joint of two chunks"));
  EXPECT_FALSE(mentions(plain, "joint"));

  const MemoryExplanation e = explain_memory(plan);
  ASSERT_EQ(e.chunks.size(), plan.chunks.size());
  std::int64_t bytes = 0, buffers = 0;
  for (std::size_t c = 0; c < e.chunks.size(); ++c) {
    EXPECT_EQ(e.chunks[c].bytes, plan.chunks[c]);
    EXPECT_LE(e.chunks[c].peak_bytes, plan.chunks[c]);
    bytes += e.chunks[c].bytes;
    buffers += e.chunks[c].count;
  }
  EXPECT_EQ(bytes, plan.arena_bytes);
  EXPECT_EQ(buffers, e.arena_buffers);
  EXPECT_TRUE(mentions(to_text(e), fmt::format("the arena is {} chunks of no more than 128 bytes", plan.chunks.size())));
  EXPECT_FALSE(mentions(to_text(explain_memory(make_plan(plan.graph))), "chunk"));
}

TEST(PlanChunksShown, AMemoryTraceHasASegmentForEach) {
  const Plan plan = make_plan(sample_graph(), in_chunks(256));
  ASSERT_GT(plan.chunks.size(), 1u);
  Executor executor(plan);
  set_all(executor, stand_ins(plan.graph, 0, plan.graph.n_inputs, 1),
          stand_ins(plan.graph, plan.graph.n_inputs, plan.graph.n_state, 2));
  Timeline timeline;
  executor.run({.timeline = &timeline});
  const std::string json = memory_trace_json(plan, timeline);
  for (std::size_t c = 0; c < plan.chunks.size(); ++c)
    EXPECT_TRUE(mentions(json, fmt::format("\"holds\":\"arena, chunk {}\"", c))) << json;
}

// ---- executors and pools with chunks ----

// The i-th block of the pool is as large as the largest i-th chunk of its members. The observed bytes must equal the planned
// bytes.
TEST(PlanChunksPool, HoldsBlockByBlockWhatTheLargestMemberNeeds) {
  const Graph a = test::RandomGraph(3).make(30), b = test::RandomGraph(8).make(40);
  const std::int64_t half = make_plan(a).arena_bytes / 2, third = make_plan(b).arena_bytes / 3;
  const std::vector<std::pair<const Graph*, Plan>> plans = {{&a, make_plan(a, in_chunks(std::max<std::int64_t>(half, 1)))},
                                                            {&b, make_plan(b, in_chunks(std::max<std::int64_t>(third, 1)))},
                                                            {&a, make_plan(a)}};
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    const auto pool = std::make_shared<ReplayPool>();
    std::vector<std::int64_t> blocks;
    std::vector<std::unique_ptr<Executor>> members;
    for (const std::size_t i : order) {
      const auto& [graph, plan] = plans[i];
      const ExecutorOptions options{.pool = pool, .name = "m" + std::to_string(i), .state = StateSharing::by_tensor};
      members.push_back(std::make_unique<Executor>(plan, options));
      const std::vector<std::int64_t> needed = plan.chunks.empty() ? std::vector<std::int64_t>{plan.arena_bytes} : plan.chunks;
      blocks.resize(std::max(blocks.size(), needed.size()), 0);
      for (std::size_t c = 0; c < needed.size(); ++c) blocks[c] = std::max(blocks[c], needed[c]);
    }
    EXPECT_EQ(pool->report().blocks, blocks);
    EXPECT_EQ(pool->report().arena_bytes, std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}));
    for (int round = 0; round < 2; ++round)
      for (std::size_t k = 0; k < order.size(); ++k) {
        const Graph& g = *plans[order[k]].first;
        const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 5), state = stand_ins(g, g.n_inputs, g.n_state, 6);
        set_all(*members[k], inputs, state);
        members[k]->run();
        expect_equal(*members[k], run_eagerly(g, inputs, state), "member " + std::to_string(order[k]));
      }
    EXPECT_EQ(pool->observed_peak_bytes(), pool->planned_peak_bytes());
    members.clear();
    EXPECT_EQ(pool->report().blocks, std::vector<std::int64_t>{});
  } while (std::next_permutation(order.begin(), order.end()));
}

// Blocks that no member needs any more are released, and the counted bytes fall.
TEST(PlanChunksPool, ShrinksWhenTheLargestHasLeft) {
  const Graph g = sample_graph();
  const auto pool = std::make_shared<ReplayPool>();
  const Plan plan = make_plan(g, in_chunks(256));
  auto small = std::make_unique<Executor>(plan, ExecutorOptions{.pool = pool});
  const auto run = [&](Executor& e) {
    set_all(e, stand_ins(g, 0, g.n_inputs, 1), stand_ins(g, g.n_inputs, g.n_state, 2));
    e.run();
  };
  run(*small);
  {
    Executor large(make_plan(g), {.pool = pool});
    run(large);
  }
  run(*small);
  EXPECT_EQ(pool->planned_peak_bytes(), plan.peak_bytes);
  EXPECT_EQ(pool->report().blocks, plan.chunks);
}

TEST(PlanChunksRun, WantOfMemoryNamesTheChunk) {
  const std::int64_t huge = std::int64_t{1} << 46;  // two of these exceed the address space
  const std::string type = fmt::format("f32[{}]", huge / 4);
  const Graph g = parse("graph g(%x: f32[1]) {\n %v: " + type + " = broadcast_to(%x) {shape=[" + std::to_string(huge / 4) +
                        "]}\n %a: " + type + " = exp(%v)\n %b: " + type + " = tanh(%v)\n %c: " + type +
                        " = add(%a, %b)\n %y: f32[] = sum(%c) {axes=[0]}\n return %y\n}");
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { Executor{make_plan(g)}; }), "the arena, "));
  const std::string message = message_of<ExecutionError>([&] { Executor{make_plan(g, in_chunks(huge))}; });
  EXPECT_TRUE(mentions(message, fmt::format("of 2 of the arena, {} bytes, cannot be had: out of memory: no block", huge)))
      << message;
}

// A smaller size of the graph uses the same chunks. A newly planned size does too, if its chunks fit.
TEST(PlanChunksRun, ReshapedMembersShareTheBlocks) {
  const Graph g = parse(R"(graph g(%x: f32[32,16]) state(%w: f32[16,16]) {
    %a: f32[32,16] = matmul(%x, %w)
    %b: f32[32,16] = tanh(%a)
    %c: f32[32,16] = matmul(%b, %w)
    %d: f32[32,16] = mul(%c, %b)
    %e: f32[32,16] = add(%d, %a)
    %y: f32[16] = sum(%e) {axes=[0]}
    return %y
  })");
  const Plan plan = make_plan(g, in_chunks(2048));
  Executor large(plan);
  set_all(large, stand_ins(g, 0, 1, 3), stand_ins(g, 1, 1, 4));
  Executor small = large.reshape({{"x", {DType::f32, {8, 16}}}}, {.allow_up_sizing = true});
  EXPECT_TRUE(check_plan(small.plan()).empty());
  const Graph& at = small.plan().graph;
  const std::vector<Tensor> inputs = stand_ins(at, 0, 1, 3), state = stand_ins(g, 1, 1, 4);
  small.set_input(0, inputs[0]);
  small.run();
  expect_equal(small, run_eagerly(at, inputs, state), "smaller");
  large.set_input(0, stand_ins(g, 0, 1, 3)[0]);
  large.run();
  expect_equal(large, run_eagerly(g, stand_ins(g, 0, 1, 3), state), "larger");
  EXPECT_EQ(large.observed_peak_bytes(), plan.peak_bytes);
}

}  // namespace
}  // namespace tapedeck
