// Tests values that are read after other members have run. Results stay valid; a value whose bytes are overwritten is
// refused with its owner and the member that overwrote it.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>
#include <tapedeck/tests/engine/messages.h>

#include <algorithm>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

// Three members run in every order for several rounds. Results stay valid. The error about a lost value names its member,
// the member that overwrote it, the op that made it and its call site. Poison makes the bytes of other members unreadable.
TEST(ReplayPool, DW5_EveryOrderOfThreeMembers) {
  Settings poisoned = settings();
  poisoned.poison = 2;
  const ScopedSettings scope(poisoned);
  const char* const names[] = {"a", "b", "c"};
  std::vector<int> order = {0, 1, 2};
  do {
    const auto pool = new_pool();
    std::vector<Graph> graphs;
    std::vector<Executor> members;
    std::vector<Tensor> inputs;
    for (int i = 0; i < 3; ++i) {
      const std::string batch = std::to_string(4 + 7 * i), type = "f32[" + batch + ",16]";
      graphs.push_back(
          parse("graph " + std::string(names[i]) + "(%x: " + type + ") state(%w: f32[16,16]) {\n  %h: " + type +
                " = matmul(%x, %w) [site=\"net.cpp:" + std::to_string(10 + i) + "\"]\n  %y: " + type +
                " = tanh(%h)\n  %s: f32[16] = sum(%y) {axes=[0]}\n  %g: f32[16,16] = add(%w, %s)\n  return %s, %y" +
                (i == 1 ? "\n  update %w = %g\n}" : ", %w\n}")));
      members.emplace_back(make_plan(graphs.back(), {.segment_us = 0}), ExecutorOptions{.pool = pool});
      inputs.push_back(value(names[i], graphs.back().values[0].type));
      members.back().set_input("x", inputs.back());
    }
    Tensor w = value("w", f32({16, 16}));
    members[0].set_state("w", w);
    std::vector<std::vector<Tensor>> expected(3);
    for (int round = 0; round < 3; ++round)
      for (const int i : order) {
        const EagerResult eager = run_eagerly(graphs[i], {inputs[i]}, {w});
        members[i].run();
        expected[i] = eager.outputs;
        w = eager.state[0];
        for (int k = 0; k < 3; ++k) {
          if (expected[k].empty()) continue;
          const std::vector<Tensor> got = members[k].outputs();
          for (std::size_t o = 0; o < got.size(); ++o)
            EXPECT_TRUE(bit_equal(got[o], expected[k][o]))
                << names[k] << " after " << names[i] << " in round " << round << ", output " << o;
          if (k == i) continue;
          const std::string gone = message_of<ExecutionError>([&] { members[k].value("h"); });
          for (const std::string& words :
               {fmt::format("%h of '{}' is not there any more: '{}', which shares its memory, has run since", names[k],
                            names[i]),
                std::string("made by [matmul] %h"), fmt::format("net.cpp:{}", 10 + k)})
            EXPECT_TRUE(mentions(gone, words)) << words << "\n" << gone;
        }
        EXPECT_TRUE(bit_equal(members[order[0]].state("w"), w));
      }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ReplayPool, AStepThatOthersEndedSaysByWhom) {
  const auto pool = new_pool();
  Executor steps(make_plan(net("steps", 6, false)), {.pool = pool}), other(make_plan(net("other", 9, false)), {.pool = pool});
  set_weights(steps);
  steps.set_input("x", value("x", f32({6, 16})));
  other.set_input("x", value("x", f32({9, 16})));
  steps.run_to("y");
  other.run();
  for (const std::string& message :
       {message_of<ExecutionError>([&] { steps.value("h"); }), message_of<ExecutionError>([&] { steps.outputs(); })})
    EXPECT_TRUE(mentions(message, "ended unfinished when 'other', which shares its memory, ran")) << message;
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { steps.value("h"); }), "%h of 'steps'"));
  steps.run();
  EXPECT_NO_THROW(steps.outputs());
}

// The new state was computed in the bytes of the state. The value is gone as soon as the state is set.
TEST(ReplayPool, ANewStateIsGoneOnceTheStateIsSet) {
  for (const bool through_other : {false, true}) {
    const auto pool = new_pool();
    Executor train(make_plan(net("train", 6, true)), {.pool = pool}), other(make_plan(net("other", 9, false)), {.pool = pool});
    set_weights(train);
    train.set_input("x", value("x", f32({6, 16})));
    train.run();
    EXPECT_TRUE(bit_equal(train.value("w2"), train.state("w")));
    (through_other ? other : train).set_state("b", value("b", f32({16}), 5));
    EXPECT_NO_THROW(train.value("w2"));
    (through_other ? other : train).set_state("w", value("w", f32({16, 16}), 5));
    const std::string gone = message_of<ExecutionError>([&] { train.value("w2"); });
    EXPECT_TRUE(mentions(
        gone, "%w2 of 'train' is not there any more: state 'w', in whose bytes it lies, has been set since; made by [add] %w2"))
        << gone;
  }
}

// The result is the bound state, unchanged. If the caller writes to the tensor, the old bytes cannot be kept, so the result
// is refused.
TEST(ReplayPool, AResultInBoundStateIsRefusedOnceTheTensorIsWritten) {
  PlanOptions as_recorded;
  as_recorded.ordering = Ordering::recorded;
  as_recorded.sharing = Sharing::all;
  Executor reads(make_plan(parse("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}"),
                           as_recorded));
  Tensor w = ones({4});
  reads.bind_state("w", w);
  reads.set_input("x", ones({4}));
  reads.run();
  ASSERT_EQ(reads.plan().values[reads.plan().graph.outputs[1]].where, Where::state)
      << "the plan copies the state that it returns";
  EXPECT_TRUE(bit_equal(reads.outputs()[1], ones({4})));
  {
    NoGrad off;
    add_(w, ones({4}));
  }
  const std::string gone = message_of<ExecutionError>([&] { reads.outputs(); });
  EXPECT_TRUE(mentions(
      gone, "%w of 'reads' is not there any more: it lies in state 'w', and the tensor bound to that has been written since"))
      << gone;
  EXPECT_TRUE(bit_equal(reads.output("y"), full({4}, 2.0)));
  reads.run();
  EXPECT_TRUE(bit_equal(reads.outputs()[1], full({4}, 2.0)));
}

}  // namespace
}  // namespace tapedeck
