// What lies in a tensor of the caller's, bound as state, is gone once he has written it: refused, never handed out changed.
#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>
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
