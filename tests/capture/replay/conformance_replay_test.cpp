// Cases of ../shared/SEEDS.md about executors and about the allocator, which other systems test too. The name of each test
// begins with the number of its case. Expected values are worked out by hand, except in T124, where a serial loop over doubles
// computes them.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::floats_of;
using Floats = std::vector<float>;

// Two independent lanes. ccv gives each lane its own stream; here each lane is a segment.
TEST(ConformanceReplay, T42_TwoIndependentLanes) {
  const Plan plan = make_plan(parse(R"(graph lanes(%a: f32[1], %b: f32[1]) {
    %k: f32[1] = constant() {value=[0.4]}
    %x: f32[1] = mul(%a, %k)
    %y: f32[1] = mul(%b, %k)
    return %x, %y
  })"),
                              {.segment_us = 0.0001});
  for (int threads : {1, 2}) {
    Executor e(plan, {.threads = threads});
    e.set_input("a", tensor({10}));
    e.set_input("b", tensor({9}));
    for (int i = 0; i < 20; ++i) {
      e.run();
      EXPECT_EQ(floats_of(e.outputs()[0]), Floats{0.4f * 10});
      EXPECT_EQ(floats_of(e.outputs()[1]), Floats{0.4f * 9});
    }
  }
}

// One value forks into two lanes that join again: ln and exp of (2 * .21) / (2.2 + 3.2) both wait for this value, and their
// sum waits for both.
TEST(ConformanceReplay, T58_StaticSchedule) {
  const Graph g = parse(R"(graph fork(%a: f32[1], %b: f32[1], %c: f32[1], %d: f32[1]) {
    %ab: f32[1] = mul(%a, %b)
    %cd: f32[1] = add(%c, %d)
    %q: f32[1] = div(%ab, %cd)
    %ln: f32[1] = log(%q)
    %ex: f32[1] = exp(%q)
    %y: f32[1] = add(%ln, %ex)
    return %y
  })");
  const Plan plan = make_plan(g, {.segment_us = 0.0001});
  for (int threads : {1, 2, 4}) {
    Executor e(plan, {.threads = threads});
    set_all(e, {tensor({2}), tensor({0.21f}), tensor({2.2f}), tensor({3.2f})}, {});
    for (int i = 0; i < 20; ++i) {
      e.run();
      EXPECT_NEAR(e.outputs()[0].item(), std::log(0.0777778) + std::exp(0.0777778), 1e-5);
    }
  }
}

// MXNet runs 10,000 random sums of 100 shared variables on each of its engines. Here an operation is a node, and a variable
// is a state value: 10,000 nodes and 100 state values. The oracle is a loop over doubles.
class RandSumExpr : public ::testing::TestWithParam<int> {};

TEST_P(RandSumExpr, T124_EveryThreadCountEqualsTheSerialLoop) {
  constexpr int kVariables = 100, kOps = 10000;
  test::Dice dice{static_cast<std::uint64_t>(GetParam()) * 77 + 1};
  Graph g;
  const Type one{DType::f64, {1}};
  std::vector<ValueId> at;
  std::vector<double> wanted;
  std::vector<Tensor> start;
  for (int v = 0; v < kVariables; ++v) {
    at.push_back(g.add_state(Name("v" + std::to_string(v)), one, Role::parameter));
    wanted.push_back(1.0 / (v + 1));
    start.push_back(from_bytes(one, &wanted.back()));
  }
  const char* const names[] = {"add", "sub", "maximum", "minimum"};
  for (int i = 0; i < kOps; ++i) {
    const auto a = static_cast<std::size_t>(dice.below(kVariables)), b = static_cast<std::size_t>(dice.below(kVariables));
    const auto to = static_cast<std::size_t>(dice.below(kVariables));
    const auto kind = static_cast<std::size_t>(dice.below(4));
    const ValueId pair[] = {at[a], at[b]};
    g.add_node(*find_op(names[kind]), pair, nullptr, std::span(&one, 1));
    at[to] = g.value_count() - 1;
    const double x = wanted[a], y = wanted[b];
    wanted[to] = kind == 0 ? x + y : kind == 1 ? x - y : kind == 2 ? std::max(x, y) : std::min(x, y);
  }
  for (ValueId v = 0; v < kVariables; ++v) g.updates.push_back({v, at[v]});
  const Plan plan = make_plan(g, {.segment_us = 1});
  for (int threads : {1, 2, 3, 4}) {
    Executor e(plan, {.threads = threads});
    set_all(e, {}, start);
    e.run();
    for (int v = 0; v < kVariables; ++v) {
      const double got = e.state("v" + std::to_string(v)).item();
      EXPECT_EQ(got, wanted[v]) << "variable " << v << ", threads " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandSumExpr, ::testing::Range(0, test::seeds(5)));

// MXNet's variable counts its writes. Here the version of a bound tensor does.
TEST(ConformanceReplay, T125_VarVersion) {
  const Graph g = parse(R"(graph f(%x: f32[2]) state(%r: f32[2], %w: f32[2]) {
    %y: f32[2] = add(%r, %x)
    %w2: f32[2] = add(%w, %x)
    return %y
    update %w = %w2
  })");
  for (int threads : {1, 2}) {
    Executor e(make_plan(g), {.threads = threads});
    Tensor r = tensor({1, 2}), w = tensor({0, 0});
    e.set_input("x", tensor({1, 1}));
    e.bind_state("r", r);
    e.bind_state("w", w);
    const std::uint32_t read = r.impl()->storage->version, written = w.impl()->storage->version;
    for (int i = 0; i < 10; ++i) e.run();
    EXPECT_EQ(r.impl()->storage->version - read, 0u) << "ten reads";
    EXPECT_EQ(w.impl()->storage->version - written, 10u) << "ten writes";
    EXPECT_EQ(floats_of(w), (Floats{10, 10}));
  }
}

// Bad numbers of threads or nodes are typed errors here, and leave the executor unchanged.
TEST(ConformanceReplay, T126_BadCountsAreRefused) {
  const Plan plan = make_plan(parse("graph f(%x: f32[2]) state(%s: f32[2]) { %y: f32[2] = add(%x, %s) return %y }"));
  EXPECT_THROW(Executor(plan, {.threads = -1}), UsageError);
  Executor e(plan);
  set_all(e, {tensor({1, 2})}, {tensor({3, 4})});
  EXPECT_THROW(e.set_input(1, tensor({1, 2})), UsageError);
  EXPECT_THROW(e.set_input(-1, tensor({1, 2})), UsageError);
  EXPECT_THROW(e.set_state("x", tensor({1, 2})), UsageError);
  EXPECT_THROW(e.step(-2), UsageError);
  EXPECT_THROW(e.output("s"), UsageError);
  e.run();
  EXPECT_EQ(floats_of(e.outputs()[0]), (Floats{4, 6}));
}

// Executors with threads are made and destroyed many times, with and without a run.
TEST(ConformanceReplay, T126_StartStop) {
  const Plan plan = make_plan(parse("graph f(%x: f32[2]) { %y: f32[2] = neg(%x) %z: f32[2] = exp(%x) return %y, %z }"),
                              {.segment_us = 0.0001});
  for (int i = 0; i < 50; ++i) {
    Executor e(plan, {.threads = 1 + i % 4});
    if (i % 3 == 0) continue;
    e.set_input(0, tensor({1, 2}));
    e.run();
    EXPECT_EQ(floats_of(e.outputs()[0]), (Floats{-1, -2}));
  }
}

TEST(ConformanceReplay, T126_Storage) {
  Allocator allocator;
  EXPECT_EQ(allocator.allocate(0), nullptr);
  void* const block = allocator.allocate(1024);
  ASSERT_NE(block, nullptr);
  allocator.release(block, 1024);
  void* const again = allocator.allocate(1024);
#ifndef TAPEDECK_SANITIZED  // a sanitizer build keeps no block, so that every use after release is seen
  EXPECT_EQ(again, block) << "freed last, used first";
#endif
  allocator.release(again, 1024);
}

}  // namespace
}  // namespace tapedeck
