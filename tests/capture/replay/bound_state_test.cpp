// Tests results and values that lie in a tensor of the caller's which is bound as state. After a write to this tensor they
// are refused, and never returned changed. The tests also fix when a tensor counts as written.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <atomic>

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

// %n lies in the bytes of state %w and is not an output.
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

// Eager backward passes over an op without a gradient where its gradient is known to be zeros. A tensor that a replay has
// written, to its end or in part, is not known any more.
TEST(BoundState, ZerosThatAReplayWritesAreKnownNoMore) {
  const auto backward_with = [](const Tensor& head) {
    Tensor x = ones({1, 1, 2, 2});
    x.requires_grad(true);
    backward(max_pool2d_grad(x, ones({1, 1, 1, 1}), {}), {.head = reshape(head, x.shape())});
  };
  for (const bool whole : {true, false}) {
    Executor e = executor_of(kUpdates);
    const Tensor w = zeros({4});
    EXPECT_NO_THROW(backward_with(w));
    e.bind_state("w", w);
    EXPECT_NO_THROW(backward_with(w));
    e.set_input("x", ones({4}));
    if (whole)
      e.run();
    else
      e.run_to("n");
    EXPECT_EQ(w.to_vector<float>(), std::vector<float>(4, 1));
    EXPECT_THROW(backward_with(w), GradientError) << (whole ? "after a step" : "after a part of a step");
  }
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

TEST(BoundState, ARepeatedBindingLosesNoResult) {
  Executor e = executor_of("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}");
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.run();
  e.bind_state("w", w);
  EXPECT_TRUE(bit_equal(e.outputs()[1], ones({4})));
}

// Two bound tensors lie in one storage. Another member's step writes both. Both old values must be saved, although the first
// write changes the version of the whole storage.
TEST(BoundState, NeighboursOnOneStorageAreSavedTogether) {
  PlanOptions options;
  options.ordering = Ordering::recorded;
  const auto pool = std::make_shared<ReplayPool>();
  Executor reads(
      make_plan(
          parse("graph reads(%x: f32[4]) state(%a: f32[4], %b: f32[4]) {\n  %y: f32[4] = add(%x, %a)\n  return %y, %b\n}"),
          options),
      {.pool = pool});
  Executor writes(make_plan(parse("graph writes(%x: f32[4]) state(%a: f32[4], %b: f32[4]) {\n  %c: f32[4] = add(%a, %x)\n  %d: "
                                  "f32[4] = add(%b, %x)\n"
                                  "  %s: f32[] = sum(%x) {axes=[0]}\n  return %s\n  update %a = %c, %b = %d\n}"),
                            options),
                  {.pool = pool});
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

// Setting the state would save the result that lies in the old tensor. But if the caller has written to the tensor before,
// there is nothing left to save.
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

// ---- when a tensor counts as written ----

constexpr const char* kReads = "graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}";
constexpr const char* kReadsTwo = R"(graph reads(%x: f32[4]) state(%w: f32[4], %v: f32[4]) {
  %y: f32[4] = add(%x, %w)
  %z: f32[4] = add(%y, %v)
  return %z, %w
})";
// The first node does not touch the state; the second node writes it.
constexpr const char* kUpdatesSecond = R"(graph second(%x: f32[4]) state(%w: f32[4]) {
  %t: f32[4] = tanh(%x)
  %n: f32[4] = add(%w, %t)
  return %n
  update %w = %n
})";

Plan plan_of_text(const char* text) { return make_plan(parse(text), {.ordering = Ordering::recorded}); }

TEST(BoundState, BindingIsNoWrite) {
  Tensor w = full({4}, 3.0);
  w.requires_grad(true);
  const Tensor loss = sum(mul(w, w));
  Executor e = executor_of(kReads);
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.run();
  backward(loss);
  EXPECT_TRUE(bit_equal(w.grad(), full({4}, 6.0)));
}

TEST(BoundState, NeitherIsAStepThatOnlyReadsIt) {
  for (int calls = 0; calls < 5; ++calls) {
    SCOPED_TRACE(calls);
    Tensor w = full({4}, 3.0);
    w.requires_grad(true);
    CapturedStep step = capture([w](const std::vector<Tensor>& in) {
      const NoGrad off;
      return std::vector<Tensor>{add(in[0], w)};
    });
    const Tensor loss = sum(mul(w, w));
    for (int i = 0; i < calls; ++i) step({ones({4})});
    backward(loss);
    EXPECT_TRUE(bit_equal(w.grad(), full({4}, 6.0)));
  }
}

TEST(BoundState, AStateThatIsUpdatedByItselfIsNotWritten) {
  Executor e =
      executor_of("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y\n  update %w = %w\n}");
  Tensor w = full({4}, 3.0);
  w.requires_grad(true);
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  const Tensor loss = sum(mul(w, w));
  e.run();
  backward(loss);
  EXPECT_TRUE(bit_equal(w.grad(), full({4}, 6.0)));
}

// Another executor binds the tensor that a result lies in: in the same pool by tensor, in the same pool under another name,
// or outside of the pool.
TEST(BoundState, OthersWhoBindItLoseNoResult) {
  enum { by_tensor, by_name, outside };
  for (const int how : {by_tensor, by_name, outside}) {
    SCOPED_TRACE(how);
    const auto pool = std::make_shared<ReplayPool>();
    const StateSharing sharing = how == by_tensor ? StateSharing::by_tensor : StateSharing::by_name;
    Executor a(plan_of_text(kReads), {.pool = pool, .state = sharing});
    Executor b(plan_of_text(
                   "graph other(%x: f32[4]) state(%v: f32[4]) {\n  %n: f32[4] = add(%v, %x)\n  return %n\n  update %v = %n\n}"),
               {.pool = how == outside ? nullptr : pool, .state = sharing});
    Tensor w = ones({4});
    a.bind_state("w", w);
    for (Executor* e : {&a, &b}) e->set_input("x", ones({4}));
    a.run();
    b.bind_state("v", w);
    EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4})));
    b.run();
    EXPECT_TRUE(bit_equal(w, full({4}, 2.0)));
    if (how == outside)
      EXPECT_THROW(a.outputs(), ExecutionError);
    else
      EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4}))) << "saved before it was written";
  }
}

TEST(BoundState, ARefusedBindingLosesNoResult) {
  Executor e = executor_of(kReadsTwo);
  Tensor w = ones({4}), v = ones({4});
  e.bind_state("w", w);
  e.bind_state("v", v);
  e.set_input("x", ones({4}));
  e.run();
  EXPECT_THROW(e.bind_state("v", w), UsageError);
  EXPECT_TRUE(bit_equal(e.outputs()[1], ones({4})));
}

TEST(BoundState, ACancelledRunThatWroteNothingLosesNoResult) {
  Executor a = executor_of(kReads), b = executor_of(kUpdatesSecond);
  Tensor w = ones({4});
  for (Executor* e : {&a, &b}) {
    e->bind_state("w", w);
    e->set_input("x", ones({4}));
  }
  a.run();
  const std::atomic<bool> cancel{true};
  EXPECT_THROW(b.run({.cancel = &cancel}), Cancelled);
  EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4})));
}

// Between two parts of a step, %w still has its old bytes. A later part overwrites them, so the result of `a` must then be
// refused.
TEST(BoundState, EveryPartThatWritesCounts) {
  Executor a = executor_of(kReads), b = executor_of(kUpdatesSecond);
  Tensor w = ones({4});
  for (Executor* e : {&a, &b}) {
    e->bind_state("w", w);
    e->set_input("x", ones({4}));
  }
  b.step(1);
  a.run();
  EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4})));
  b.resume();
  EXPECT_THROW(a.outputs(), ExecutionError);
  EXPECT_NO_THROW(b.outputs());
}

TEST(BoundState, EagerHistoryBetweenPartsIsStaleAfterwards) {
  Tensor w = ones({4});
  w.requires_grad(true);
  Executor b = executor_of(kUpdatesSecond);
  b.bind_state("w", w);
  b.set_input("x", ones({4}));
  b.step(1);
  const Tensor loss = sum(mul(w, w));
  b.resume();
  EXPECT_TRUE(mentions(message_of<GradientError>([&] { backward(loss); }), "modified in place"));
}

// ---- the caller writes in the middle of a step ----

constexpr const char* kReadsTwice = R"(graph twice(%x: f32[4]) state(%w: f32[4]) {
  %a: f32[4] = add(%x, %w)
  %b: f32[4] = mul(%a, %w)
  return %b
})";

TEST(BoundState, WhatNodesHaveReadAndOthersWillReadMayNotChange) {
  Executor e = executor_of(kReadsTwice);
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", ones({4}));
  e.step(1);
  write(w);
  const std::string text = message_of<ExecutionError>([&] { e.resume(); });
  EXPECT_TRUE(mentions(text, "the tensor bound to state 'w' was written in the middle of it")) << text;
  EXPECT_TRUE(mentions(text, "%b")) << text;
  EXPECT_EQ(e.nodes_left(), 0) << "the step has ended";
  e.run();  // no state was written, so none is torn
  EXPECT_TRUE(bit_equal(e.outputs()[0], full({4}, 6.0)));
}

TEST(BoundState, WhatNoNodeHasReadMayChange) {
  Executor e = executor_of(kUpdatesSecond);
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", zeros({4}));
  e.step(1);
  write(w);
  e.resume();
  EXPECT_TRUE(bit_equal(e.outputs()[0], full({4}, 2.0)));
  EXPECT_TRUE(bit_equal(w, full({4}, 2.0)));
}

// The step has written the new state, and a later node reads it. The caller writes the tensor in between, so the state is
// torn.
TEST(BoundState, WhatTheStepWroteAndWillReadMayNotChange) {
  Executor e = executor_of(R"(graph reads_new(%x: f32[4]) state(%w: f32[4]) {
    %n: f32[4] = tanh(%x)
    %b: f32[4] = exp(%x)
    %q: f32[4] = mul(%n, %b)
    return %q, %b
    update %w = %n
  })");
  Tensor w = ones({4});
  e.bind_state("w", w);
  e.set_input("x", zeros({4}));
  ASSERT_EQ(e.plan().values[e.plan().graph.updates[0].value].where, Where::state) << "the plan copies the update";
  e.run_to("n");
  write(w);
  const std::string text = message_of<ExecutionError>([&] { e.step(1); });
  EXPECT_TRUE(mentions(text, "must be set again before the next run")) << text;
  EXPECT_THROW(e.run(), ExecutionError);
  e.bind_state("w", w);
  e.run();
  EXPECT_TRUE(bit_equal(e.outputs()[0], zeros({4})));
}

TEST(BoundState, AbstractTensorsAreRefusedAlsoWithoutBytes) {
  Executor e =
      executor_of("graph r(%x: f32[4], %e: f32[0]) state(%w: f32[0]) {\n  %y: f32[4] = add(%x, %x)\n  return %y, %w, %e\n}");
  const Tensor nothing = abstract_tensor({DType::f32, {0}});
  for (const std::string& text :
       {message_of<TypeError>([&] { e.bind_state("w", nothing); }), message_of<TypeError>([&] { e.set_state("w", nothing); }),
        message_of<TypeError>([&] { e.set_input("e", nothing); })})
    EXPECT_TRUE(mentions(text, "is an abstract tensor: it has no data")) << text;
}

// ---- windows on state ----

// The window shows state %w until a member, set_state, bind_state or the caller puts another value there.
TEST(BoundState, AWindowOnStateIsGoneOnceTheStateHasChanged) {
  const char* const windows = R"(graph windows(%x: f32[4]) state(%w: f32[4]) {
    %r: f32[2,2] = reshape(%w) {shape=[2,2]}
    %y: f32[2,2] = tanh(%r)
    return %y
  })";
  const auto pool = std::make_shared<ReplayPool>();
  Executor a(plan_of_text(windows), {.pool = pool}), b(plan_of_text(kUpdatesSecond), {.pool = pool, .name = "b"});
  Tensor w = ones({4}), other = full({4}, 5.0);
  for (Executor* e : {&a, &b}) e->set_input("x", ones({4}));
  const auto seen = [&] {
    a.run();
    EXPECT_TRUE(bit_equal(reshape(a.value("r"), {4}), a.state("w")));
  };
  a.set_state("w", w);
  seen();
  b.run();
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { a.value("r"); }), "%r of 'windows' is not there any more"))
      << "another member updated it";
  seen();
  a.set_state("w", other);
  EXPECT_THROW(a.value("r"), ExecutionError) << "set anew";
  seen();
  b.bind_state("w", w);
  EXPECT_THROW(a.value("r"), ExecutionError) << "bound to another tensor";
  seen();
  write(w);
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { a.value("r"); }), "has been written since"));
  seen();
}

}  // namespace
}  // namespace tapedeck
