// State of a pool is one value by name: set, bound and updated through any member; and results are not lost by it.
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/tensor_impl.h>

#include <tapedeck/tests/capture/replay_pool_graphs.h>
#include <tapedeck/tests/engine/messages.h>

#include <memory>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

TEST(ReplayPool, StateIsSharedByNameFromWhoeverSetsOrBindsIt) {
  const auto pool = new_pool();
  Executor train(make_plan(net("train", 6, true)), {.pool = pool}), infer(make_plan(net("infer", 3, false)), {.pool = pool});
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { infer.state("w"); }), "never set"));
  set_weights(infer);
  EXPECT_TRUE(bit_equal(train.state("w"), value("w", f32({16, 16}))));
  Tensor mine = value("w", f32({16, 16}), 5);
  const std::int64_t planned = pool->planned_peak_bytes();
  infer.bind_state("w", mine);
  EXPECT_EQ(pool->planned_peak_bytes(), planned) << "bound bytes count as the pool's own did";
  EXPECT_TRUE(bit_equal(train.state("w"), mine));
  train.set_input("x", value("x", f32({6, 16})));
  const std::uint32_t version = mine.impl()->storage->version;
  const Tensor before = copy(mine);
  train.run();
  EXPECT_GT(mine.impl()->storage->version, version);
  EXPECT_FALSE(bit_equal(mine, before)) << "the update went to the caller's tensor";
  EXPECT_TRUE(bit_equal(infer.state("w"), mine));
  EXPECT_EQ(pool->observed_peak_bytes(), planned);
}

TEST(ReplayPool, D12_WhatCannotBeShared) {
  const auto pool = new_pool();
  Executor train(make_plan(parse("graph train(%x: f32[4]) state(%w: f32[4]) { %y: f32[4] = add(%x, %w)\n return %y }")), {.pool = pool});
  const std::string text = message_of<TypeError>([&] {
    Executor(make_plan(parse("graph infer(%x: f16[4]) state(%w: f16[4]) { %y: f16[4] = add(%x, %w)\n return %y }")), {.pool = pool});
  });
  EXPECT_TRUE(mentions(text, "state 'w' cannot be shared: it is f32[4] in 'train' and f16[4] in 'infer'")) << text;
  EXPECT_EQ(pool->report().members.size(), 1u) << "who could not join is not there";
  train.set_state("w", tensor({1, 2, 3, 4}));
  train.set_input("x", tensor({1, 1, 1, 1}));
  train.run();
  EXPECT_EQ(pool->observed_peak_bytes(), pool->planned_peak_bytes());
}

TEST(ReplayPool, StateLivesAsLongAsAMemberHasIt) {
  const auto pool = new_pool();
  auto first = std::make_unique<Executor>(make_plan(net("first", 2, true)), ExecutorOptions{.pool = pool});
  set_weights(*first);
  auto second = std::make_unique<Executor>(make_plan(net("second", 2, false)), ExecutorOptions{.pool = pool});
  first.reset();
  EXPECT_TRUE(bit_equal(second->state("w"), value("w", f32({16, 16}))));
  second.reset();
  Executor third(make_plan(net("third", 2, false)), {.pool = pool});
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { third.state("w"); }), "never set"));
}

// Outputs lie in slots of their own, in inputs, and in state that the graph only reads: none changes before its own member runs again.
TEST(ReplayPool, ResultsNotReadYetOutliveTheRunsOfOthers) {
  const auto pool = new_pool();
  Executor reads(make_plan(parse(R"(graph reads(%x: f32[16,16]) state(%w: f32[16,16], %b: f32[16]) {
    %y: f32[16,16] = add(%x, %w)
    return %y, %x, %w, %b, %y
  })")), {.pool = pool});
  Executor train(make_plan(net("train", 50, true)), {.pool = pool});
  set_weights(train);
  const Tensor x = value("x", f32({16, 16})), w = value("w", f32({16, 16})), b = value("b", f32({16}));
  const auto check = [&](const Tensor& input, const Tensor& weight, const Tensor& bias, const char* when) {
    const std::vector<Tensor> got = reads.outputs(), want = {add(input, weight), input, weight, bias, add(input, weight)};
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bit_equal(got[i], want[i])) << when << ", output " << i;
  };
  reads.set_input("x", x);
  reads.run();
  for (int i = 0; i < 2; ++i) {
    train.set_input("x", value("x", f32({50, 16})));
    train.run();
  }
  check(x, w, b, "after another member's update");
  reads.run();
  const Tensor w2 = train.state("w"), b2 = train.state("b");
  EXPECT_FALSE(bit_equal(w, w2));
  train.set_state("w", w);
  check(x, w2, b2, "after another member set state");
  train.bind_state("b", zeros({16}));
  check(x, w2, b2, "after another member bound state");
  train.bind_state("w", zeros({16, 16}));
  reads.run();
  train.run();
  check(x, zeros({16, 16}), zeros({16}), "after another member updated bound state");
}

}  // namespace
}  // namespace tapedeck
