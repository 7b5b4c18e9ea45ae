// Tests the state of a pool: a state is one value for each name, set, bound and updated through any member. Results that are
// not read yet must survive this.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>
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
  Executor train(make_plan(parse("graph train(%x: f32[4]) state(%w: f32[4]) { %y: f32[4] = add(%x, %w)\n return %y }")),
                 {.pool = pool});
  const std::string text = message_of<TypeError>([&] {
    Executor(make_plan(parse("graph infer(%x: f16[4]) state(%w: f16[4]) { %y: f16[4] = add(%x, %w)\n return %y }")),
             {.pool = pool});
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

// Outputs lie in slots of their own, in inputs, or in state that the graph only reads. None of them may change before its
// own member runs again.
TEST(ReplayPool, ResultsNotReadYetOutliveTheRunsOfOthers) {
  const auto pool = new_pool();
  Executor reads(make_plan(parse(R"(graph reads(%x: f32[16,16]) state(%w: f32[16,16], %b: f32[16]) {
    %y: f32[16,16] = add(%x, %w)
    return %y, %x, %w, %b, %y
  })")),
                 {.pool = pool});
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

// ---- states that share bytes, and refused bindings ----

constexpr const char* kReadsW = "graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}";
constexpr const char* kUpdatesW = R"(graph updates(%x: f32[4]) state(%w: f32[4]) {
  %n: f32[4] = add(%w, %x)
  %z: f32[4] = exp(%x)
  return %z
  update %w = %n
})";

Executor member(const char* text, const std::shared_ptr<ReplayPool>& pool, const char* name,
                StateSharing state = StateSharing::by_name) {
  return Executor(make_plan(parse(text)), {.pool = pool, .name = name, .state = state});
}

// One member has %u, one has %v, one has both. While the third exists, %u and %v must not be bound to the same bytes, in any
// order of binding and joining.
TEST(ReplayPool, NoMemberHasTwoStatesInTheSameBytes) {
  const char* const both = R"(graph both(%x: f32[4]) state(%u: f32[4], %v: f32[4]) {
    %n: f32[4] = add(%u, %x)
    %y: f32[4] = add(%x, %v)
    return %y
    update %u = %n
  })";
  const auto pool = new_pool();
  Executor p = member("graph p(%x: f32[4]) state(%u: f32[4]) {\n  %y: f32[4] = add(%x, %u)\n  return %y\n}", pool, "p");
  Executor q = member("graph q(%x: f32[4]) state(%v: f32[4]) {\n  %y: f32[4] = add(%x, %v)\n  return %y\n}", pool, "q");
  const Tensor shared = ones({6});
  p.bind_state("u", slice_along(shared, 0, 0, 4));
  {
    Executor r = member(both, pool, "r");
    const std::string text = message_of<UsageError>([&] { q.bind_state("v", slice_along(shared, 0, 2, 6)); });
    EXPECT_TRUE(mentions(text, "state 'v' cannot be bound to bytes that 'u' is bound to: 'r' has both")) << text;
  }
  q.bind_state("v", slice_along(shared, 0, 2, 6));  // allowed, because no member has both
  const std::string text = message_of<UsageError>([&] { member(both, pool, "r"); });
  EXPECT_TRUE(mentions(text, "'r' cannot have state 'u' and 'v': they are bound to the same bytes")) << text;
  q.bind_state("v", ones({4}));
  EXPECT_NO_THROW(member(both, pool, "r"));
}

// A refused binding does not use the memory: the unfinished step of another member continues.
TEST(ReplayPool, ARefusedBindingDropsNobodysStep) {
  const auto pool = new_pool();
  const char* const two_nodes =
      "graph steps(%x: f32[4]) state(%w: f32[4]) {\n  %t: f32[4] = tanh(%x)\n  %y: f32[4] = add(%t, %w)\n  return %y\n}";
  Executor steps = member(two_nodes, pool, "steps");
  Executor other = member(kReadsW, pool, "other");
  steps.set_state("w", ones({4}));
  steps.set_input("x", zeros({4}));
  steps.step(1);
  EXPECT_THROW(other.bind_state("w", ones({5})), TypeError);
  EXPECT_THROW(other.bind_state("w", reshape(slice_along(ones({4, 4}), 1, 0, 1), {4})), TypeError);
  steps.resume();
  EXPECT_TRUE(bit_equal(steps.outputs()[0], ones({4})));
}

// Members of a pool read one tensor as two types. It is one state: a write or a tear counts for all members.
TEST(ReplayPool, ATensorReadAsTwoTypesIsOneState) {
  const auto pool = new_pool();
  Executor a = member(kReadsW, pool, "a", StateSharing::by_tensor);
  const char* const square = "graph two(%x: f32[2,2]) state(%w: f32[2,2]) {\n  %y: f32[2,2] = add(%x, %w)\n  return %y, %w\n}";
  Executor b = member(square, pool, "b", StateSharing::by_tensor);
  Executor c = member(kUpdatesW, pool, "c", StateSharing::by_tensor);
  const Tensor t = ones({4});
  a.bind_state("w", t);
  b.bind_state("w", reshape(t, {2, 2}));
  c.bind_state("w", t);
  for (Executor* e : {&a, &c}) e->set_input("x", ones({4}));
  b.set_input("x", ones({2, 2}));
  a.run();
  b.run();
  c.run();
  EXPECT_TRUE(bit_equal(a.outputs()[1], ones({4}))) << "saved before c wrote";
  EXPECT_TRUE(bit_equal(b.outputs()[1], ones({2, 2}))) << "saved before c wrote";
  int shared = 0;
  for (const PoolReport::State& s : pool->report().state) shared += s.members.size() == 2;
  EXPECT_EQ(shared, 1) << "a's and c's\n" << pool->explain();
  c.run_to("n");
  c.restart();
  for (Executor* e : {&a, &b, &c}) EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { e->run(); }), "set it again first"));
  b.set_state("w", full({2, 2}, 5.0));
  for (Executor* e : {&a, &b, &c}) e->run();
  EXPECT_TRUE(bit_equal(t, full({4}, 6.0)));
}

// One member binds another tensor. Members that are bound to the old tensor keep it.
TEST(ReplayPool, RebindingByTensorMovesNobodyElse) {
  const auto pool = new_pool();
  Executor a = member(kReadsW, pool, "a", StateSharing::by_tensor), c = member(kUpdatesW, pool, "c", StateSharing::by_tensor);
  const Tensor first = ones({4}), second = full({4}, 50.0);
  a.bind_state("w", first);
  c.bind_state("w", first);
  for (Executor* e : {&a, &c}) e->set_input("x", ones({4}));
  a.bind_state("w", second);
  c.run();
  a.run();
  EXPECT_TRUE(bit_equal(first, full({4}, 2.0)));
  EXPECT_TRUE(bit_equal(a.outputs()[0], full({4}, 51.0)));
}

}  // namespace
}  // namespace tapedeck
