// Tests steps in a pool that do not finish at once: steps that fail, steps in parts, and steps that another member ends.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>
#include <tapedeck/tests/engine/messages.h>

#include <memory>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

Tensor ints(const std::vector<std::int32_t>& values) { return from_vector(values, {static_cast<std::int64_t>(values.size())}); }

// Only the states that the failed graph updates are torn.
TEST(ReplayPool, AFailedRunTearsTheStateThatItsGraphUpdates) {
  const auto pool = new_pool();
  const Plan breaks = make_plan(parse(R"(graph breaks(%a: i32[2], %d: i32[2]) state(%s: i32[2], %k: i32[2]) {
    %t: i32[2] = add(%s, %a)
    %r: i32[2] = div(%k, %d)
    return %r
    update %s = %t
  })"));
  ASSERT_EQ(breaks.values[breaks.graph.updates[0].value].where, Where::state) << "s is written before the division";
  Executor bad(breaks, {.pool = pool});
  Executor has_s(make_plan(parse("graph has_s() state(%s: i32[2]) { %y: i32[2] = neg(%s)\n return %y }")), {.pool = pool});
  Executor has_k(make_plan(parse("graph has_k() state(%k: i32[2]) { %y: i32[2] = neg(%k)\n return %y, %k }")), {.pool = pool});
  bad.set_state("s", ints({1, 2}));
  bad.set_state("k", ints({6, 8}));
  bad.set_input("a", ints({10, 10}));
  has_s.run();
  has_k.run();
  bad.set_input("d", ints({1, 0}));
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { bad.run(); }), "state had been written already"));

  EXPECT_EQ(has_s.outputs()[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{-1, -2})) << "its results are from before";
  const std::string text = message_of<ExecutionError>([&] { has_s.run(); });
  EXPECT_TRUE(mentions(
      text, "an earlier run of 'breaks' failed after it had begun to write state; set it again first (still missing: s)"))
      << text;
  has_k.run();
  EXPECT_EQ(has_k.outputs()[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{-6, -8})) << "k was only read";
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { bad.run(); }), "still missing: s)"));
  has_s.set_state("s", ints({1, 2}));
  bad.set_input("d", ints({2, 2}));
  bad.run();
  has_s.run();
  EXPECT_EQ(has_s.outputs()[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{-11, -12}));
}

TEST(ReplayPool, AStepInPartsEndsWhenAnotherMemberRuns) {
  const auto pool = new_pool();
  const Graph train = net("train", 6, true);
  Executor steps(make_plan(train), {.pool = pool}), other(make_plan(net("other", 60, false)), {.pool = pool});
  set_weights(steps);
  const Tensor x = value("x", f32({6, 16}));
  steps.set_input("x", x);
  steps.run_to("h");
  other.set_input("x", value("x", f32({60, 16})));  // its own input: it does not touch the shared memory
  steps.resume();
  const std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
  const EagerResult once = run_eagerly(train, {x}, state), twice = run_eagerly(train, {x}, once.state);
  EXPECT_TRUE(bit_equal(steps.outputs()[0], once.outputs[0]));
  EXPECT_TRUE(bit_equal(other.state("w"), once.state[0]));

  steps.run_to("h");
  other.run();  // the arena grows, so the values in it are lost
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { steps.resume(); }), "no step is under way"));
  EXPECT_TRUE(bit_equal(steps.state("w"), once.state[0]));
  steps.run();
  EXPECT_TRUE(bit_equal(steps.outputs()[0], twice.outputs[0]));
  EXPECT_TRUE(bit_equal(steps.state("w"), twice.state[0]));
  other.run();
  const std::string gone = message_of<ExecutionError>([&] { steps.value("h"); });
  EXPECT_TRUE(mentions(gone, "'other', which shares its memory, has run since; made by [matmul] %h") ||
              mentions(gone, "has been computed in its bytes"))
      << gone;
  EXPECT_TRUE(bit_equal(steps.outputs()[0], twice.outputs[0]));
}

TEST(ReplayPool, AStepThatHasWrittenStateKeepsOthersOut) {
  const auto pool = new_pool();
  const Graph train = net("train", 6, true);
  auto steps = std::make_unique<Executor>(make_plan(train), ExecutorOptions{.pool = pool});
  Executor other(make_plan(net("other", 2, false)), {.pool = pool});
  set_weights(other);
  const Tensor x = value("x", f32({6, 16}));
  steps->set_input("x", x);
  other.set_input("x", value("x", f32({2, 16})));
  steps->run_to("w2");
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.run(); }),
                       "'train', which shares this memory, is in the middle of a step that has written state"));
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.set_state("b", zeros({16})); }), "in the middle of a step"));
  steps->resume();
  const EagerResult once = run_eagerly(train, {x}, {value("w", f32({16, 16})), value("b", f32({16}))});
  EXPECT_TRUE(bit_equal(other.state("w"), once.state[0]));
  EXPECT_TRUE(bit_equal(other.state("b"), once.state[1]));
  other.run();

  steps->run_to("w2");
  steps.reset();  // the step never ends
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.run(); }), "(still missing: w, b)"));
  set_weights(other);
  other.run();
}

}  // namespace
}  // namespace tapedeck
