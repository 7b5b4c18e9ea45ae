// Tests runs that end early (errors of kernels and callbacks, cancelling), and the progress and times that a run reports.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/capture/test_op.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace tapedeck {
namespace {

using testing::floats_of;
using testing::message_of;
using Floats = std::vector<float>;

// ---- kernels that throw ----

std::atomic<int> trouble{
    0};  // 0: the kernel below does nothing, 1: throws, 2: runs out of memory, 3: throws an int instead of an exception

void troubled(const KernelCall& call) {
  if (trouble == 1) throw std::logic_error("a bug in an op library");
  if (trouble == 2) throw std::bad_alloc();
  if (trouble == 3) throw 42;
  call.outputs[0].as<float>()[0] = call.inputs[0].as<float>()[0] + 1;
}

const Op& troubled_op() { return test::unary_op("test.troubled", troubled); }

// Two chains of `troubled` nodes, so that two nodes can fail at the same time.
Graph troubled_graph() {
  Graph g;
  const Type one{DType::f32, {1}};
  const ValueId starts[] = {g.add_input("x", one), g.add_input("y", one)};
  Origin origin;
  origin.site = "user.cpp:7";
  for (int chain = 0; chain < 2; ++chain) {
    ValueId v = starts[chain];
    for (int i = 0; i < 3; ++i) {
      g.add_node(troubled_op(), std::span(&v, 1), nullptr, std::span(&one, 1), origin);
      v = g.value_count() - 1;
    }
    g.outputs.push_back(v);
  }
  g.output_names.resize(2);
  return g;
}

TEST(ExecutorErrors, WhatAKernelThrowsSurfacesOnceWithNodeAndCallSite) {
  for (int threads : {1, 2, 4}) {
    Executor e(make_plan(troubled_graph(), {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1}), tensor({1})}, {});
    const char* const texts[] = {"", "a bug in an op library", "out of memory", "something was thrown"};
    for (int kind : {1, 2, 3}) {
      trouble = kind;
      const std::string text = message_of<ExecutionError>([&] { e.run(); });
      EXPECT_MENTIONS(text, "[test.troubled] " + std::string(texts[kind]));
      EXPECT_MENTIONS(text, ", at %v2: f32[1] = test.troubled(%x) (user.cpp:7)");
      EXPECT_THROW(e.outputs(), ExecutionError);
      trouble = 0;
      e.run();
      EXPECT_EQ(floats_of(e.outputs()[1]), Floats{4});
    }
  }
}

// A host function fails. The error of run() contains the error that the function threw. Reading a result of the failed run
// throws too, every time; older systems return garbage. The next run succeeds.
TEST(ExecutorErrors, T117_AFailedRunHandsOutNothing) {
  for (int threads : {1, 2}) {
    auto fail = std::make_shared<bool>(false);
    CapturedStepOptions options;
    options.executor.threads = threads;
    Capture scope("main");
    const Tensor x = scope.input("x", tensor({1, 2}));
    const Tensor y = exp(x);
    on_host(
        y,
        [fail](const Tensor&) {
          if (*fail) throw TypeError("no good");
        },
        "tap");
    scope.output("first", slice(y, 0, 0, 1));
    scope.output("second", slice(y, 0, 1, 2));
    const Captured captured = scope.finish();
    Executor e(make_plan(captured.graph), {.threads = threads});
    e.set_input("x", tensor({0, 0}));
    e.run();
    EXPECT_EQ(floats_of(e.output("second")), Floats{1});
    for (int i = 0; i < 2; ++i) {
      *fail = true;
      bool own_type = false;
      try {
        e.run();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const ExecutionError& error) {
        EXPECT_MENTIONS(std::string(error.what()), "[on_host] no good");
        EXPECT_MENTIONS(std::string(error.what()), "executor_stop_test.cpp:");
        try {
          std::rethrow_if_nested(error);
        } catch (const TypeError& inner) {
          own_type = std::string(inner.what()) == "no good";
        }
      }
      EXPECT_TRUE(own_type);
      EXPECT_THROW(e.output("first"), ExecutionError);
      EXPECT_THROW(e.output("second"), ExecutionError) << "the other slice too";
      *fail = false;
      e.run();
      EXPECT_EQ(floats_of(e.output("first")), Floats{1});
    }
  }
}

// ---- cancelled runs ----

std::atomic<bool> wanted{false};
std::atomic<int> naps{0};

// This kernel takes a millisecond. Its first call asks for the run to be cancelled.
void nap(const KernelCall& call) {
  ++naps;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  call.outputs[0].as<float>()[0] = call.inputs[0].as<float>()[0] + 1;
  wanted = true;
}

const Op& nap_op() { return test::unary_op("test.nap", nap); }

// A graph of `before` naps, a write of the state, and `after` naps.
Graph sleepy(int before, int after) {
  Graph g;
  const Type one{DType::f32, {1}};
  ValueId v = g.add_input("x", one);
  const ValueId s = g.add_state("s", one, Role::parameter);
  const auto add = [&](const Op& op, std::vector<ValueId> operands) {
    g.add_node(op, operands, nullptr, std::span(&one, 1));
    v = g.value_count() - 1;
  };
  for (int i = 0; i < before; ++i) add(nap_op(), {v});
  add(*find_op("add"), {s, v});
  g.updates.push_back({s, v});
  for (int i = 0; i < after; ++i) add(nap_op(), {v});
  g.outputs = {v};
  g.output_names.resize(1);
  return g;
}

TEST(ExecutorCancel, StopsBetweenSegmentsBeforeTheFirstStateWrite) {
  for (int threads : {1, 2}) {
    Executor e(make_plan(sleepy(10, 0), {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1})}, {tensor({100})});
    std::atomic<bool> cancel{true};
    naps = 0;
    EXPECT_MENTIONS(message_of<Cancelled>([&] { e.run(RunOptions{.cancel = &cancel}); }), "no state has been written");
    EXPECT_EQ(naps, 0) << "asked for before it began";
    EXPECT_THROW(e.run(RunOptions{.cancel = &wanted}), Cancelled) << "asked for by the first node";
    EXPECT_EQ(naps, 1);
    EXPECT_EQ(floats_of(e.state("s")), Floats{100});
    EXPECT_THROW(e.outputs(), ExecutionError) << "the arena has been written";
    wanted = false;
    e.run();
    EXPECT_EQ(floats_of(e.state("s")), Floats{111});
    wanted = false;
  }
}

TEST(ExecutorCancel, ARunThatHasBegunToWriteStateEnds) {
  for (int threads : {1, 2}) {
    Executor e(make_plan(sleepy(0, 10), {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1})}, {tensor({100})});
    wanted = false;
    naps = 0;
    e.run(RunOptions{.cancel = &wanted});
    EXPECT_TRUE(wanted) << "asked for in the middle";
    EXPECT_EQ(naps, 10);
    EXPECT_EQ(floats_of(e.state("s")), Floats{101});
    EXPECT_EQ(floats_of(e.outputs()[0]), Floats{111});
    wanted = false;
  }
}

TEST(ExecutorCancel, EndsAStepInParts) {
  Executor e(make_plan(sleepy(6, 3), {.segment_us = 0.001}), {.threads = 2});
  set_all(e, {tensor({1})}, {tensor({100})});
  e.step(2);
  wanted = true;
  EXPECT_THROW(e.resume(RunOptions{.cancel = &wanted}), Cancelled);
  EXPECT_THROW(e.resume(), ExecutionError) << "the step is gone";
  wanted = false;
  e.step(7);  // the step has written its state
  wanted = true;
  e.resume(RunOptions{.cancel = &wanted});
  EXPECT_EQ(floats_of(e.state("s")), Floats{107});
  wanted = false;
}

// ---- loops ----

Graph loop_while_told() {
  return parse(R"(graph loop(%x: f32[1], %go: bool[]) state(%s: f32[1]) {
  %n: i64[], %y: f32[1] = while(%x, %go) {carried=1} (%i: i64[], %c: f32[1], %g: bool[]) {
    return %g
  } (%i: i64[], %c: f32[1], %g: bool[]) {
    %d: f32[1] = neg(%c)
    return %d
  }
  %t: f32[1] = add(%s, %y)
  return %y
  update %s = %t
})",
               "loop");
}

// It ends only if it is stopped. The loop has a segment of its own, or is in one with the node that writes state after it.
void expect_that_a_loop_can_be_stopped(int threads, double segment_us, std::size_t segments) {
  Executor e(make_plan(loop_while_told(), {.segment_us = segment_us}), {.threads = threads});
  ASSERT_EQ(e.plan().segments.size(), segments);
  set_all(e, {tensor({1}), scalar(1, DType::boolean)}, {tensor({5})});
  std::atomic<bool> stop{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_THROW(e.run(RunOptions{.cancel = &stop}), Cancelled);
  later.join();
  EXPECT_EQ(floats_of(e.state("s")), Floats{5});
  e.set_input("go", scalar(0, DType::boolean));
  e.run();
  EXPECT_EQ(floats_of(e.state("s")), Floats{6});
}

TEST(ExecutorCancel, StopsAnEndlessLoop) {
  for (int threads : {1, 2}) {
    expect_that_a_loop_can_be_stopped(threads, 0.001, 2);
    expect_that_a_loop_can_be_stopped(threads, 1e6, 1);
  }
}

// ---- progress callbacks ----

TEST(ExecutorProgress, GrowsToOne) {
  for (int threads : {1, 2}) {
    Executor e(make_plan(sleepy(60, 20), {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1})}, {tensor({0})});
    for (int run = 0; run < 2; ++run) {
      std::vector<double> told;
      const auto began = std::chrono::steady_clock::now();
      e.run(RunOptions{.progress = [&](double f) { told.push_back(f); }});
      ASSERT_GE(told.size(), 2u) << "80 ms and more";
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
      EXPECT_LE(static_cast<double>(told.size()), static_cast<double>(ms) / 20 + 2) << "not too often";
      EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
      EXPECT_GT(told.front(), 0);
      EXPECT_LT(told.front(), 1);
      EXPECT_EQ(told.back(), 1);
    }
  }
}

TEST(ExecutorProgress, WhatItThrowsStopsTheRunAsItIs) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (int threads : {1, 2}) {
    Executor e(make_plan(sleepy(80, 0), {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1})}, {tensor({0})});
    int calls = 0;
    naps = 0;
    EXPECT_THROW(e.run(RunOptions{.progress =
                                      [&](double) {
                                        ++calls;
                                        throw Mine("enough");
                                      }}),
                 Mine);
    EXPECT_EQ(calls, 1);
    EXPECT_LT(naps, 80);
    EXPECT_EQ(floats_of(e.state("s")), Floats{0});
    e.run();
    EXPECT_EQ(floats_of(e.state("s")), Floats{81});

    Executor late(make_plan(sleepy(0, 80), {.segment_us = 0.001}), {.threads = threads});
    set_all(late, {tensor({1})}, {tensor({0})});
    EXPECT_THROW(late.run(RunOptions{.progress = [&](double) { throw Mine("enough"); }}), Mine);
    EXPECT_EQ(floats_of(late.state("s")), Floats{1}) << "the step has ended first";
    EXPECT_EQ(floats_of(late.outputs()[0]), Floats{81});
  }
}

// ---- timelines of runs ----

TEST(ExecutorTimeline, HoldsEveryCallOnceInAnOrderThatItsOperandsAllow) {
  const Graph g = sleepy(5, 5);
  for (int threads : {1, 2}) {
    Executor e(make_plan(g, {.segment_us = 0.001}), {.threads = threads});
    set_all(e, {tensor({1})}, {tensor({0})});
    Timeline times;
    for (int run = 0; run < 2; ++run) {
      e.run(&times);
      ASSERT_EQ(times.slices.size(), 11u);
      std::int64_t before = 0;
      for (NodeId n = 0; n < 11; ++n) {
        const Slice& s = times.slices[n];
        EXPECT_EQ(s.node, n);
        EXPECT_GE(s.start_ns, before);
        EXPECT_GE(s.end_ns, s.start_ns);
        EXPECT_LE(s.end_ns, times.run_ns);
        EXPECT_TRUE(s.thread >= 0 && s.thread < threads);
        before = s.end_ns;
      }
    }
    e.step(4);
    e.resume(RunOptions{.timeline = &times});
    EXPECT_EQ(times.slices.size(), 7u) << "of the part that ran";
  }
}

}  // namespace
}  // namespace tapedeck
