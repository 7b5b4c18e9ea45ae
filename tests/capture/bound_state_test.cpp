// What lies in a tensor of the caller's, bound as state, is gone once he has written it: refused, never handed out changed.
#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/capture/replay_pool.h>
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

Executor executor_of(const char* text) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  return Executor(make_plan(parse(text), options));
}

void write(Tensor t) {
  const NoGrad off;
  add_(t, ones(t.shape()));
}

// %n lies in state w, and is no result.
constexpr const char* kUpdates = R"(graph updates(%x: f32[4]) state(%w: f32[4]) {
  %n: f32[4] = add(%w, %x)
  %y: f32[4] = tanh(%x)
  %z: f32[4] = exp(%y)
  return %z
  update %w = %n
})";

TEST(BoundState, AValueInItIsRefusedOnceTheTensorIsWritten) {
  Executor e = executor_of(kUpdates);
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.run();
  ASSERT_EQ(e.plan().values[e.plan().graph.updates[0].value].where, Where::state) << "the plan copies the update";
  EXPECT_TRUE(bit_equal(e.value("n"), full({4}, 2.0)));
  write(w);
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { e.value("n"); }), "the tensor bound to that has been written since"));
  e.run();
  EXPECT_TRUE(bit_equal(e.value("n"), full({4}, 4.0)));
}

TEST(BoundState, AValueInItIsRefusedInTheMiddleOfAStepToo) {
  Executor e = executor_of(kUpdates);
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.run_to("n");
  EXPECT_TRUE(bit_equal(e.value("n"), full({4}, 2.0)));
  write(w);
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { e.value("n"); }), "the tensor bound to that has been written since"));
}

TEST(BoundState, WhatWasWrittenInTheMiddleOfAStepStaysTheCallers) {
  Executor e = executor_of(kUpdates);
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  ASSERT_EQ(e.plan().values[e.plan().graph.updates[0].value].where, Where::state) << "the plan copies the update";
  e.run_to("n");
  EXPECT_TRUE(bit_equal(e.value("n"), full({4}, 2.0)));
  write(w);
  EXPECT_THROW(e.value("n"), ExecutionError);
  e.resume();
  EXPECT_THROW(e.value("n"), ExecutionError);
  e.run();
  EXPECT_TRUE(bit_equal(e.value("n"), full({4}, 4.0)));
}

// Binding asks the tensor for its bytes to write, which counts as a write; nothing was written.
TEST(BoundState, ARepeatedBindingLosesNoResult) {
  Executor e = executor_of("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}");
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.run();
  e.bind_state("w", w);
  EXPECT_TRUE(bit_equal(e.outputs()[1], ones({4})));
}

// Two tensors on one storage: another member's step writes both, and the first write must not make the second look lost.
TEST(BoundState, NeighboursOnOneStorageAreSavedTogether) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  const auto pool = std::make_shared<ReplayPool>();
  Executor reads(make_plan(parse("graph reads(%x: f32[4]) state(%a: f32[4], %b: f32[4]) {\n  %y: f32[4] = add(%x, %a)\n  return %y, %b\n}"), options), {.pool = pool});
  Executor writes(make_plan(parse("graph writes(%x: f32[4]) state(%a: f32[4], %b: f32[4]) {\n  %c: f32[4] = add(%a, %x)\n  %d: f32[4] = add(%b, %x)\n"
                                  "  %s: f32[] = sum(%x) {axes=[0]}\n  return %s\n  update %a = %c, %b = %d\n}"), options), {.pool = pool});
  const Tensor both = ones({8});
  reads.bind_state("a", slice_along(both, 0, 0, 4));
  reads.bind_state("b", slice_along(both, 0, 4, 8));
  for (Executor* e : {&reads, &writes}) e->set_input("x", ones({4}));
  reads.run();
  writes.run();
  EXPECT_TRUE(bit_equal(reads.outputs()[1], ones({4})));
  reads.run();
  EXPECT_TRUE(bit_equal(reads.outputs()[1], full({4}, 2.0)));
}

// The result would have been saved when the state is set anew: but by then the caller had written there.
TEST(BoundState, AResultInItIsNotSavedAfterTheCallerHasWritten) {
  for (const bool written : {false, true}) {
    SCOPED_TRACE(written ? "written" : "untouched");
    Executor e = executor_of("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}");
    Tensor w = ones({4});
    e.bind_state("w", w);
    e.set_input("x", ones({4}));
    e.run();
    ASSERT_EQ(e.plan().values[e.plan().graph.outputs[1]].where, Where::state) << "the plan copies the state that it returns";
    if (written) write(w);
    e.set_state("w", full({4}, 7.0));
    if (written) {
      EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { e.outputs(); }), "%w of 'reads' is not there any more"));
    } else {
      EXPECT_TRUE(bit_equal(e.outputs()[1], ones({4})));
    }
    EXPECT_TRUE(bit_equal(e.output("y"), full({4}, 2.0)));
    e.run();
    EXPECT_TRUE(bit_equal(e.outputs()[1], full({4}, 7.0)));
  }
}

}  // namespace
}  // namespace tapedeck
