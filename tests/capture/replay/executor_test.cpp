// Tests the executor. The oracle for results is run_eagerly(), which uses no plan. Its other promises (counted bytes, state
// that is torn or whole, the error of the lowest node) have a test each.
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/test_op.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace tapedeck {
namespace {

using testing::message_of;

// ---- results equal those of run_eagerly ----

TEST(Executor, ReplaysAStepWithStateAndBroadcasting) { check_replay(parse(test::kSgdStep)); }

TEST(Executor, ReplaysViewsAndViewsThatMustBeCopied) {
  check_replay(parse(R"(graph views(%x: f32[4,6]) {
    %t: f32[6,4] = transpose(%x) {axes=[1,0]}
    %r: f32[24] = reshape(%t) {shape=[24]}
    %s: f32[2,3] = slice(%x) {starts=[1,2], stops=[3,5]}
    %u: f32[6] = reshape(%s) {shape=[6]}
    %v: f32[3,2,3] = broadcast_to(%s) {shape=[3,2,3]}
    %e: f32[3,2,3] = exp(%v)
    %n: f32[6,4] = neg(%t)
    %m: f32[] = max(%s) {axes=[0,1]}
    return %r, %u, %e, %n, %m, %t, %s, %v
  })"));
}

TEST(Executor, ReplaysBatchedMatmulWithBroadcastLeadingDimensions) {
  check_replay(parse(R"(graph batched(%a: f32[2,1,3,4], %b: f32[5,4,2], %c: f32[2,4]) {
    %p: f32[2,5,3,2] = matmul(%a, %b)
    %ct: f32[4,2] = transpose(%c) {axes=[1,0]}
    %q: f32[2,1,3,2] = matmul(%a, %ct)
    return %p, %q
  })"));
}

TEST(Executor, SwapsRotatesAndKeepsState) {
  check_replay(parse(R"(graph swap(%x: f32[3]) state(%a: f32[3], %b: f32[3], %c: f32[3], %d: f32[3], %k: f32[3]) {
    %e: f32[3] = add(%c, %x)
    return %a, %e, %k
    update %a = %b, %b = %a, %c = %x, %d = %e
  })"),
               {}, 4);
}

// The update copies a window whose bytes are the bytes that the copy must write.
TEST(Executor, StateBecomesAViewOfItself) {
  check_replay(parse(R"(graph turn() state(%a: f32[4,4], %b: f32[2,2], %c: f32[2,2]) {
    %t: f32[4,4] = transpose(%a) {axes=[1,0]}
    %u: f32[2,2] = transpose(%c) {axes=[1,0]}
    return
    update %a = %t, %b = %u, %c = %b
  })"));
}

TEST(Executor, ReturnsInputsStateConstantsAndRepeatedValues) {
  check_replay(parse(R"(graph same(%x: f32[2]) state(%s: f32[2]) {
    %c: f32[2] = constant() {value=[1.5,-2.0]}
    %y: f32[2] = mul(%x, %c)
    return %x, %s, %c, %y, %y
    update %s = %y
  })"));
}

TEST(Executor, TakesEmptyAndScalarValues) {
  check_replay(parse(R"(graph empty(%x: f32[0,3], %y: f32[]) {
    %a: f32[0,3] = add(%x, %y)
    %t: f32[3,0] = transpose(%a) {axes=[1,0]}
    %s: f32[] = sum(%a) {axes=[0,1]}
    %z: f32[] = add(%s, %y)
    return %t, %z
  })"));
}

// The checker accepts a plan that sets more workspace aside than an op needs, so the executor replays it.
TEST(Executor, TakesMoreWorkspaceThanAnOpNeeds) {
  const Graph g = parse(R"(graph g(%x: f32[3,6]) {
    %y: i64[3,6] = argsort(%x) {axis=0, descending=false}
    return %y
  })");
  Plan plan = make_plan(g, {.strategy = Strategy::none});
  ASSERT_GT(plan.workspace[0].bytes, 0);
  plan.workspace[0].bytes += 8;
  const std::int64_t end = plan.workspace[0].offset + plan.workspace[0].bytes;
  const std::int64_t more = std::max<std::int64_t>(0, end - plan.arena_bytes);
  for (std::int64_t* bytes : {&plan.arena_bytes, &plan.peak_bytes, &plan.lower_bound_bytes}) *bytes += more;
  EXPECT_EQ(check_plan(plan), std::vector<std::string>());
  Executor executor(plan, {.threads = 1});
  const Tensor x = from_vector(std::vector<float>{3, 1, 2, 6, 5, 4, 0, 9, 8, 7, 1, 2, 4, 4, 4, 0, 1, 9}, {3, 6});
  executor.set_input(0, x);
  executor.run();
  EXPECT_TRUE(bit_equal(executor.outputs()[0], argsort(x, 0)));
  plan.workspace[0].bytes -= 9;
  EXPECT_THROW(Executor(plan, {.threads = 1}), InvalidGraphError);
}

TEST(Executor, AGraphWithoutNodesReplays) {
  check_replay(parse("graph nothing(%x: f32[2]) state(%s: f32[2]) { return %x, %s }"));
}

TEST(Executor, FillsOpaqueValuesAlike) {
  check_replay(parse(R"(graph opaque(%x: u8[100]) {
    %a: u8[64], %b: f32[9] = opaque(%x) {us=12.5}
    %c: i64[3] = opaque(%b, %a) {us=3.0}
    %d: u8[40] = opaque(%c, %x)
    return %b, %d
  })"));
}

TEST(Executor, DropoutDrawsNewBitsEachStepAndTheSameAsEager) {
  const Graph g = parse(R"(graph drop(%x: f32[64]) state(%rng: i64[2]) {
    %y: f32[64] = dropout(%x, %rng) {p=0.5, path="drop.0"}
    %r: i64[2] = rng_next(%rng)
    return %y
    update %rng = %r
  })");
  check_replay(g);
  Executor executor(make_plan(g));
  set_all(executor, stand_ins(g, 0, 1, 3), stand_ins(g, 1, 1, 3));
  executor.run();
  const Tensor first = executor.outputs()[0];
  executor.run();
  EXPECT_FALSE(bit_equal(first, executor.outputs()[0]));
}

// ---- counted bytes ----

TEST(Executor, CountsBoundStateAsItsOwn) {
  const Graph g = parse(R"(graph bound(%x: f32[1000]) state(%w: f32[1000], %v: f32[1000]) {
    %w2: f32[1000] = add(%w, %x)
    %t: f32[1000] = mul(%w2, %v)
    %s: f32[] = sum(%t) {axes=[0]}
    return %s
    update %w = %w2
  })");
  const Plan plan = make_plan(g);
  Executor executor(plan);
  Tensor w = default_value({DType::f32, {1000}}, 1, "w");
  executor.set_input("x", default_value({DType::f32, {1000}}, 1, "x"));
  executor.set_state("v", default_value({DType::f32, {1000}}, 1, "v"));
  executor.set_state("w", w);  // first the executor's own tensor, then the user's
  executor.bind_state("w", w);
  executor.run();
  EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
}

TEST(Executor, BoundStateIsTheUsersTensor) {
  const Graph g = parse(R"(graph bound(%x: f32[3]) state(%w: f32[3], %k: f32[3]) {
    %w2: f32[3] = add(%w, %x)
    return %w2
    update %w = %w2
  })");
  Executor executor(make_plan(g));
  Tensor w = tensor({1, 2, 3}), k = tensor({0, 0, 0});
  executor.set_input("x", tensor({10, 10, 10}));
  executor.bind_state("w", w);
  executor.bind_state("k", k);
  const std::uint32_t before = w.impl()->storage->version, untouched = k.impl()->storage->version;
  executor.run();
  executor.run();
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{21, 22, 23}));
  EXPECT_GT(w.impl()->storage->version, before);
  EXPECT_EQ(k.impl()->storage->version, untouched);
  executor.set_state("w", tensor({5, 5, 5}));
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{5, 5, 5}));
  executor.bind_state("w", tensor({7, 7, 7}));  // binds another tensor and releases the old one
  executor.run();
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(executor.state("w").to_vector<float>(), (std::vector<float>{17, 17, 17}));
}

TEST(Executor, RefusesToBindWhatItCannotWrite) {
  const Graph g = parse(R"(graph bound() state(%a: f32[2,3], %b: f32[2,3]) {
    return %a
    update %b = %a
  })");
  Executor executor(make_plan(g));
  const Tensor six = default_value({DType::f32, {6}}, 1, "six");
  const Tensor a = default_value({DType::f32, {2, 3}}, 1, "a");
  expect_mentions(message_of<TypeError>([&] { executor.bind_state("a", six); }), {"'a'", "f32[6]", "f32[2,3]"});
  const std::int64_t scattered[] = {1, 2};
  const Tensor t(detail::new_view(*six.impl(), Shape{2, 3}, 0, scattered));
  expect_mentions(message_of<TypeError>([&] { executor.bind_state("a", t); }), {"'a'", "dense"});
  executor.bind_state("a", a);
  expect_mentions(message_of<UsageError>([&] { executor.bind_state("b", a); }), {"'b'", "'a'"});
}

// ---- outputs and their owners ----

TEST(Executor, OutputsStayThoseOfTheLastRun) {
  const Graph g = parse(R"(graph keep(%x: f32[2]) state(%s: f32[2]) {
    %y: f32[2] = add(%s, %x)
    return %x, %y
    update %s = %y
  })");
  Executor executor(make_plan(g));
  expect_mentions(message_of<ExecutionError>([&] { executor.outputs(); }), {"run()"});
  executor.set_input("x", tensor({1, 2}));
  executor.set_state("s", tensor({10, 20}));
  executor.run();
  executor.set_input("x", tensor({8, 9}));
  executor.set_state("s", tensor({0, 0}));
  EXPECT_EQ(executor.outputs()[0].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(executor.outputs()[1].to_vector<float>(), (std::vector<float>{11, 22}));
  executor.run();
  EXPECT_EQ(executor.outputs()[0].to_vector<float>(), (std::vector<float>{8, 9}));
}

TEST(Executor, OutputsBelongToTheCaller) {
  const Graph g = parse(R"(graph own(%x: f32[2]) {
    %y: f32[2] = neg(%x)
    return %y
  })");
  Executor executor(make_plan(g));
  executor.set_input(0, tensor({1, 2}));
  executor.run();
  const Tensor first = executor.outputs()[0];
  executor.set_input(0, tensor({3, 4}));
  executor.run();
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{-1, -2}));
  EXPECT_EQ(executor.output("y").to_vector<float>(), (std::vector<float>{-3, -4}));
  expect_mentions(message_of<UsageError>([&] { executor.output("z"); }), {"'z'", "y"});
}

// ---- faults and refusals ----

constexpr const char* kTwoDivisions = R"(graph faulty(%a: i32[4], %b: i32[4], %c: i32[4]) state(%s: i32[4]) {
    %p: i32[4] = div(%a, %b)
    %q: i32[4] = div(%a, %c)
    %t: i32[4] = add(%s, %p)
    %r: i32[4] = div(%t, %q)
    return %r
    update %s = %t
  })";

Tensor ints(std::vector<std::int32_t> values) { return from_vector(values, {static_cast<std::int64_t>(values.size())}); }

TEST(Executor, ThrowsTheErrorOfTheLowestNode) {
  const Graph g = parse(kTwoDivisions);
  for (int threads : {1, 2, 4}) {
    Executor executor(make_plan(g, {.segment_us = 0.001}), {.threads = threads});
    set_all(executor, {ints({1, 2, 3, 4}), ints({1, 1, 0, 1}), ints({1, 0, 1, 1})}, {ints({0, 0, 0, 0})});
    for (int i = 0; i < 20; ++i) {
      executor.set_state("s", ints({0, 0, 0, 0}));
      expect_mentions(message_of<ExecutionError>([&] { executor.run(); }), {"[div]", "%p: i32[4] = div(%a, %b)", "zero"});
    }
    expect_mentions(message_of<ExecutionError>([&] { executor.outputs(); }), {"run()"});
  }
}

TEST(Executor, AFaultBeforeAnyStateIsWrittenLeavesItWhole) {
  const Graph g = parse(kTwoDivisions);
  Executor executor(make_plan(g));
  set_all(executor, {ints({8, 8, 8, 8}), ints({1, 1, 0, 1}), ints({1, 1, 1, 1})}, {ints({1, 1, 1, 1})});
  EXPECT_THROW(executor.run(), ExecutionError);
  executor.set_input("b", ints({2, 2, 2, 2}));
  executor.run();
  EXPECT_EQ(executor.state("s").to_vector<std::int32_t>(), (std::vector<std::int32_t>{5, 5, 5, 5}));
}

// The update is computed in the bytes of the state. Then a later node fails.
TEST(Executor, AFaultAfterAStateWriteTearsIt) {
  const Graph g = parse(R"(graph torn(%a: i32[4], %b: i32[4]) state(%s: i32[4], %k: i32[4]) {
    %t: i32[4] = add(%s, %a)
    %r: i32[4] = div(%k, %b)
    return %r
    update %s = %t
  })");
  const Plan plan = make_plan(g);
  ASSERT_EQ(plan.values[plan.graph.updates[0].value].where, Where::state);
  for (int threads : {1, 2}) {
    Executor executor(plan, {.threads = threads});
    set_all(executor, {ints({1, 1, 1, 1}), ints({1, 0, 1, 1})}, {ints({0, 0, 0, 0}), ints({6, 6, 6, 6})});
    expect_mentions(message_of<ExecutionError>([&] { executor.run(); }), {"[div]", "state"});
    executor.set_input("b", ints({1, 1, 1, 1}));
    expect_mentions(message_of<ExecutionError>([&] { executor.run(); }), {"failed", "'torn'", "(still missing: s)"});
    EXPECT_EQ(executor.state("k").to_vector<std::int32_t>(), (std::vector<std::int32_t>{6, 6, 6, 6}))
        << "only read, so not torn";
    executor.set_state("s", ints({0, 0, 0, 0}));
    executor.run();
    EXPECT_EQ(executor.state("s").to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 1, 1, 1}));
  }
}

TEST(Executor, NamesWhatWasNeverSet) {
  const Graph g = parse(R"(graph missing(%x: f32[2], %y: f32[2]) state(%s: f32[2]) {
    %z: f32[2] = add(%x, %y)
    return %z, %s
  })");
  Executor executor(make_plan(g));
  executor.set_input("x", tensor({1, 2}));
  expect_mentions(message_of<ExecutionError>([&] { executor.run(); }), {"input 'y'", "state 's'"});
  EXPECT_THROW(executor.state("s"), ExecutionError);
}

TEST(Executor, RefusesWrongTypesAndNames) {
  const Graph g = parse("graph id(%x: f32[2]) state(%s: i64[2]) { return %x }");
  Executor executor(make_plan(g));
  expect_mentions(message_of<TypeError>([&] { executor.set_input("x", tensor({1, 2, 3})); }), {"'x'", "f32[3]", "f32[2]"});
  expect_mentions(message_of<TypeError>([&] { executor.set_state("s", tensor({1, 2})); }), {"'s'", "f32[2]", "i64[2]"});
  EXPECT_THROW(executor.set_input("x", Tensor()), TypeError);
  EXPECT_THROW(executor.set_input("x", abstract_tensor({DType::f32, {2}})), TypeError);
  expect_mentions(message_of<UsageError>([&] { executor.set_input("y", tensor({1, 2})); }), {"'y'", "x"});
  EXPECT_THROW(executor.set_input(1, tensor({1, 2})), UsageError);
  EXPECT_THROW(executor.set_input(-1, tensor({1, 2})), UsageError);
  expect_mentions(message_of<UsageError>([&] { executor.set_state("x", tensor({1, 2})); }), {"'x'", "s"});
  EXPECT_THROW(executor.bind_state("nope", tensor({1, 2})), UsageError);
}

TEST(Executor, RefusesDevicesItDoesNotHave) {
  const Plan plan = make_plan(parse("graph id(%x: f32[2]) { return %x }"));
  expect_mentions(message_of<UsageError>([&] { Executor(plan, {.device = "tpu"}); }), {"'tpu'", "cpu", "cuda"});
  const std::string cuda = message_of<DeviceError>([&] { Executor(plan, {.device = "cuda:999"}); });
  EXPECT_FALSE(cuda.empty());
  EXPECT_EQ(cuda.find('\n'), std::string::npos);
  EXPECT_THROW(Executor(plan, {.threads = -1}), UsageError);
}

TEST(Executor, RefusesPlansThatBreakTheirRules) {
  const Graph g = parse(R"(graph g(%x: f32[2,3], %y: f32[3,2]) {
    %z: f32[2,2] = matmul(%x, %y)
    %r: f32[2,2] = relu(%z)
    return %r
  })");
  const Plan good = make_plan(g);
  Plan outside = good;
  outside.values[2].offset = outside.arena_bytes + 64;
  EXPECT_THROW(Executor{outside}, InvalidGraphError);
  Plan workspace = good;
  workspace.workspace[1] = {0, 64};
  workspace.arena_bytes += 64;
  workspace.peak_bytes += 64;
  EXPECT_THROW(Executor{workspace}, InvalidGraphError);
  Plan infeasible = good;
  infeasible.feasible = false;
  infeasible.infeasible_reason = "floor 12";
  expect_mentions(message_of<InfeasibleError>([&] { Executor{infeasible}; }), {"budget", "floor 12"});
}

TEST(Executor, NamesAConstantWithoutData) {
  Graph g = parse(R"(graph g(%x: f32[2]) {
    %c: f32[2] = constant() {value=[1.0,2.0]}
    %y: f32[2] = add(%x, %c)
    return %y
  })");
  g.constants[0].data = nullptr;
  expect_mentions(message_of<ExecutionError>([&] { Executor(make_plan(g)); }), {"constant", "%c"});
}

// ---- runs on several threads ----

std::atomic<int> gate{0};  // 0 = closed, 1 = a kernel waits, 2 = open

void wait_at_gate(const KernelCall& call) {
  int closed = 0;
  gate.compare_exchange_strong(closed, 1);
  while (gate.load() != 2) std::this_thread::yield();
  call.outputs[0].as<float>()[0] = call.inputs[0].as<float>()[0];
}

const Op& gate_op() { return test::unary_op("test.gate", wait_at_gate); }

TEST(Executor, RefusesASecondRunAtTheSameTime) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::f32, {1}});
  const Type out{DType::f32, {1}};
  g.add_node(gate_op(), std::span(&x, 1), nullptr, std::span(&out, 1));
  g.outputs = {1};
  g.output_names = {"y"};
  Executor executor(make_plan(g));
  executor.set_input("x", from_vector(std::vector<float>{4}, {1}));
  gate = 0;
  std::thread first([&] { executor.run(); });
  while (gate.load() != 1) std::this_thread::yield();
  const std::string run = message_of<ExecutionError>([&] { executor.run(); });
  const std::string set = message_of<ExecutionError>([&] { executor.set_input("x", from_vector(std::vector<float>{5}, {1})); });
  gate = 2;
  first.join();
  expect_mentions(run, {"in use"});
  expect_mentions(set, {"in use"});
  EXPECT_EQ(executor.outputs()[0].to_vector<float>(), std::vector<float>{4});
}

// Many independent chains that meet, so that threads hand over many segments.
TEST(Executor, ManySegmentsOnManyThreadsGiveTheSameBits) {
  std::string text = "graph wide(%x: f32[64]) {\n";
  for (int chain = 0; chain < 16; ++chain) {
    std::string from = "%x";
    for (int i = 0; i < 12; ++i) {
      const std::string to = "%v" + std::to_string(chain) + "_" + std::to_string(i);
      const std::string other = i % 3 == 2 && chain > 0 ? "%v" + std::to_string(chain - 1) + "_" + std::to_string(i) : "%x";
      text += to + ": f32[64] = " + (i % 2 ? "sub(" : "mul(") + from + ", " + other + ")\n";
      from = to;
    }
  }
  text += "return %v15_11, %v7_11, %v0_11 }";
  const Graph g = parse(text);
  const Plan plan = make_plan(g, {.segment_us = 0.01});
  const std::vector<Tensor> inputs = stand_ins(g, 0, 1, 5);
  const EagerResult eager = run_eagerly(g, inputs, {});
  for (int threads : {1, 2, 4, 0}) {
    Executor executor(plan, {.threads = threads});
    executor.set_input(0, inputs[0]);
    for (int i = 0; i < 100; ++i) executor.run();
    expect_equal(executor, eager, "threads " + std::to_string(threads));
    EXPECT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
  }
}

TEST(Executor, ExecutorsRunBesideEachOther) {
  const Graph g = parse(R"(graph g(%x: f32[256]) state(%s: f32[256]) {
    %t: f32[256] = add(%s, %x)
    return %t
    update %s = %t
  })");
  const Plan plan = make_plan(g);
  const auto work = [&](std::uint64_t seed, Tensor* result) {
    Executor executor(plan, {.threads = 2});
    set_all(executor, stand_ins(g, 0, 1, seed), stand_ins(g, 1, 1, seed));
    for (int i = 0; i < 50; ++i) executor.run();
    *result = executor.state("s");
  };
  Tensor a, b, again;
  std::thread one([&] { work(1, &a); }), two([&] { work(2, &b); });
  one.join();
  two.join();
  work(1, &again);
  EXPECT_TRUE(bit_equal(a, again));
  EXPECT_FALSE(bit_equal(a, b));
}

}  // namespace
}  // namespace tapedeck
