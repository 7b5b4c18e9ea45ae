// Executors that share an arena and state: what they hold is counted from their plans alone, what they compute is compared with
// run_eagerly() on one table of state, and everything is asked in every order.
#include <tapedeck/capture/capture.h>
#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/capture/replay_pool.h>
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/nn.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/settings.h>
#include <tapedeck/engine/tensor_impl.h>
#include <tapedeck/engine/text.h>

#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

std::shared_ptr<ReplayPool> new_pool() { return std::make_shared<ReplayPool>(); }

// A member wants an arena that follows its batch; all of one `depth` share weights.
Graph net(const char* name, int batch, bool train) {
  std::string text = "graph " + std::string(name) + "(%x: f32[" + std::to_string(batch) + ",16]) state(%w: f32[16,16], %b: f32[16]) {\n";
  const std::string wide = "f32[" + std::to_string(batch) + ",16]";
  text += "  %h: " + wide + " = matmul(%x, %w)\n  %z: " + wide + " = add(%h, %b)\n  %y: " + wide + " = tanh(%z)\n";
  text += "  %v: " + wide + " = matmul(%y, %w)\n  %s: f32[16] = sum(%v) {axes=[0]}\n";
  if (train) {
    text += "  %xt: f32[16," + std::to_string(batch) + "] = transpose(%x) {axes=[1,0]}\n  %g: f32[16,16] = matmul(%xt, %y)\n";
    text += "  %t: f32[16,16] = tanh(%g)\n  %w2: f32[16,16] = add(%w, %t)\n  %u: f32[16] = tanh(%s)\n  %b2: f32[16] = add(%b, %u)\n";
  }
  return parse(text + "  return %s\n" + (train ? "  update %w = %w2, %b = %b2\n" : "") + "}");
}

Tensor value(const char* name, const Type& type, std::uint64_t seed = 1) { return default_value(type, seed, name); }
Tensor copied(const Tensor& t) { return from_bytes(t.type(), t.data()); }
Type f32(const Shape& shape) { return {DType::f32, shape}; }

// What a pool of these plans is to hold, from the definition.
std::int64_t expected_peak(const std::vector<Plan>& plans) {
  std::int64_t arena = 0, own = 0, state = 0;
  std::set<std::string> seen;
  for (const Plan& p : plans) {
    arena = std::max(arena, p.arena_bytes);
    own += p.external_bytes;
    for (ValueId v = p.graph.n_inputs; v < p.graph.n_inputs + p.graph.n_state; ++v) {
      const std::int64_t bytes = p.graph.values[static_cast<std::size_t>(v)].type.bytes();
      own -= bytes;
      if (seen.insert(p.graph.value_name(v)).second) state += bytes;
    }
  }
  return arena + own + state;
}

void set_weights(Executor& member) {
  member.set_state("w", value("w", f32({16, 16})));
  member.set_state("b", value("b", f32({16})));
}

// ---- bytes ----

TEST(ReplayPool, D13_TheArenaIsTheLargestAndStateIsHeldOnce) {
  const std::vector<Plan> plans = {make_plan(net("train", 64, true)), make_plan(net("infer", 8, false)), make_plan(net("evaluate", 128, false))};
  const auto pool = new_pool();
  std::vector<Executor> members;
  for (const Plan& p : plans) members.emplace_back(p, ExecutorOptions{.pool = pool});
  const std::int64_t expected = expected_peak(plans);
  EXPECT_EQ(pool->planned_peak_bytes(), expected);
  set_weights(members[1]);
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].set_input("x", value("x", members[i].plan().graph.values[0].type));
    members[i].run();
  }
  EXPECT_EQ(pool->observed_peak_bytes(), expected);
  EXPECT_EQ(members[0].observed_peak_bytes(), expected) << "a member's count is the pool's";
  const PoolReport report = pool->report();
  EXPECT_EQ(report.separate_bytes, plans[0].peak_bytes + plans[1].peak_bytes + plans[2].peak_bytes);
  EXPECT_EQ(report.saved_bytes(), report.separate_bytes - expected);
  EXPECT_GT(report.saved_bytes(), std::min(plans[0].arena_bytes, plans[2].arena_bytes));
}

// DW5: neither the bytes nor what is said nor any bit depends on who came first, or on who ran before the others came.
TEST(ReplayPool, DW5_TheOrderOfJoiningDoesNotMatter) {
  const std::vector<Graph> graphs = {net("train", 24, true), net("infer", 1, false), net("evaluate", 40, false), net("fine_tune", 7, true)};
  std::vector<Plan> plans;
  for (const Graph& g : graphs) plans.push_back(make_plan(g));
  std::vector<std::size_t> order = {0, 1, 2, 3};
  std::string said, said_json;
  do {
    for (const bool early : {false, true}) {   // members run before the next one joins
      const auto pool = new_pool();
      std::map<std::size_t, Executor> members;
      std::vector<Plan> joined;
      const auto run = [&](std::size_t i) {
        members.at(i).set_input("x", value("x", graphs[i].values[0].type));
        members.at(i).run();
      };
      for (std::size_t i : order) {
        members.emplace(i, Executor(plans[i], {.pool = pool}));
        joined.push_back(plans[i]);
        if (members.size() == 1) set_weights(members.at(i));
        if (!early) continue;
        run(i);
        EXPECT_EQ(pool->observed_peak_bytes(), expected_peak(joined));
        EXPECT_EQ(pool->planned_peak_bytes(), expected_peak(joined));
      }
      set_weights(members.at(order[3]));
      for (std::size_t i = 0; i < 4; ++i) run(i);
      EXPECT_EQ(pool->observed_peak_bytes(), expected_peak(plans));
      EXPECT_EQ(pool->planned_peak_bytes(), expected_peak(plans));
      if (said.empty()) said = pool->explain(), said_json = pool->explain_json();
      EXPECT_EQ(pool->explain(), said);
      EXPECT_EQ(pool->explain_json(), said_json);

      std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
      for (std::size_t i = 0; i < 4; ++i) {
        const EagerResult eager = run_eagerly(graphs[i], {value("x", graphs[i].values[0].type)}, state);
        state = eager.state;
        EXPECT_TRUE(bit_equal(members.at(i).outputs()[0], eager.outputs[0])) << "member " << i;
      }
      EXPECT_TRUE(bit_equal(members.at(1).state("w"), state[0]));
      EXPECT_TRUE(bit_equal(members.at(2).state("b"), state[1]));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ReplayPool, TheArenaShrinksWhenTheLargestLeaves) {
  const Plan small = make_plan(net("small", 4, false)), large = make_plan(net("large", 400, false));
  const auto pool = new_pool();
  Executor stays(small, {.pool = pool});
  set_weights(stays);
  stays.set_input("x", value("x", f32({4, 16})));
  {
    Executor leaves(large, {.pool = pool});
    leaves.set_input("x", value("x", f32({400, 16})));
    leaves.run();
    EXPECT_EQ(pool->planned_peak_bytes(), expected_peak({small, large}));
  }
  EXPECT_EQ(pool->planned_peak_bytes(), expected_peak({small}));
  stays.run();
  EXPECT_EQ(pool->observed_peak_bytes(), expected_peak({small, large})) << "the most there ever was";
  const EagerResult eager = run_eagerly(small.graph, {value("x", f32({4, 16}))}, {value("w", f32({16, 16})), value("b", f32({16}))});
  EXPECT_TRUE(bit_equal(stays.outputs()[0], eager.outputs[0]));
}

// DW4: sizes in true dtypes. An f16 pool takes exactly half of the f32 one, an f64 one twice as much.
TEST(ReplayPool, DW4_TrueSizesOfEveryType) {
  std::map<std::string, PoolReport> reports;
  for (const std::string type : {"f16", "f32", "f64"}) {
    // Ops that only move bytes: what computes in f16 may need f32 workspace.
    const std::string one_k = type + "[1024]", two_k = type + "[2048]", four_k = type + "[4096]";
    const Graph g = parse("graph g(%x: " + one_k + ") state(%s: " + one_k + ") {\n  %a: " + two_k + " = concat(%x, %s) {axis=0}\n  %b: " + two_k +
                          " = concat(%s, %x) {axis=0}\n  %c: " + four_k + " = concat(%b, %a) {axis=0}\n  %d: " + four_k + " = flip(%c) {axes=[0]}\n  return %d\n}");
    const auto pool = new_pool();
    const Executor one(make_plan(g), {.pool = pool, .name = "one"}), two(make_plan(g), {.pool = pool, .name = "two"});
    reports[type] = pool->report();
  }
  for (const auto field : {&PoolReport::arena_bytes, &PoolReport::state_bytes, &PoolReport::own_bytes, &PoolReport::planned_peak_bytes}) {
    EXPECT_GT(reports["f16"].*field, 0);
    EXPECT_EQ(reports["f16"].*field * 2, reports["f32"].*field);
    EXPECT_EQ(reports["f32"].*field * 2, reports["f64"].*field);
  }
  EXPECT_EQ(reports["f16"].planned_peak_bytes, 2 * (1024 + 2 * (1024 + 4096) + 4096)) << "state, both members' input and output, the arena of one";
}

TEST(ReplayPool, AFamilyInAPoolIsOneMemberOfMany) {
  const auto pool = new_pool();
  Executor base(make_plan(net("base", 12, true)), {.pool = pool}), other(make_plan(net("other", 30, false)), {.pool = pool});
  const std::int64_t before = pool->planned_peak_bytes();
  Executor small = base.reshape({{"x", f32({5, 16})}});
  EXPECT_EQ(pool->planned_peak_bytes(), before) << "a smaller one takes no memory";
  set_weights(other);
  std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
  Executor* members[] = {&base, &other, &small, &other, &base, &small};
  for (Executor* m : members) {
    const Tensor x = value("x", m->plan().graph.values[0].type, 9);
    m->set_input("x", x);
    m->run();
    const EagerResult eager = run_eagerly(m->plan().graph, {x}, state);
    state = eager.state;
    EXPECT_TRUE(bit_equal(m->outputs()[0], eager.outputs[0]));
  }
  EXPECT_EQ(pool->observed_peak_bytes(), pool->planned_peak_bytes());
}

// ---- state ----

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

// ---- results ----

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

// ---- what is read late ----

// Three members in every order, several rounds: what each returned stays its own, what is gone says whose it was, who took it, which op made
// it and where. With poison: what one leaves in the arena is not there for the next.
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
      graphs.push_back(parse("graph " + std::string(names[i]) + "(%x: " + type + ") state(%w: f32[16,16]) {\n  %h: " + type + " = matmul(%x, %w) [site=\"net.cpp:" +
                             std::to_string(10 + i) + "\"]\n  %y: " + type + " = tanh(%h)\n  %s: f32[16] = sum(%y) {axes=[0]}\n  %g: f32[16,16] = add(%w, %s)\n  return %s, %y" +
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
            EXPECT_TRUE(bit_equal(got[o], expected[k][o])) << names[k] << " after " << names[i] << " in round " << round << ", output " << o;
          if (k == i) continue;
          const std::string gone = message_of<ExecutionError>([&] { members[k].value("h"); });
          for (const std::string& words : {fmt::format("%h of '{}' is not there any more: '{}', which shares its memory, has run since", names[k], names[i]),
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
  for (const std::string& message : {message_of<ExecutionError>([&] { steps.value("h"); }), message_of<ExecutionError>([&] { steps.outputs(); })})
    EXPECT_TRUE(mentions(message, "ended unfinished when 'other', which shares its memory, ran")) << message;
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { steps.value("h"); }), "%h of 'steps'"));
  steps.run();
  EXPECT_NO_THROW(steps.outputs());
}

// New state that was computed in the state's bytes is what the node made only until somebody sets the state.
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
    EXPECT_TRUE(mentions(gone, "%w2 of 'train' is not there any more: state 'w', in whose bytes it lies, has been set since; made by [add] %w2")) << gone;
  }
}

// A result that is bound state, unchanged: the caller may write his tensor, and nobody can keep the old bytes for him.
TEST(ReplayPool, AResultInBoundStateIsRefusedOnceTheTensorIsWritten) {
  PlanOptions as_recorded;
  as_recorded.ordering = Ordering::recorded;
  as_recorded.sharing = Sharing::all;
  Executor reads(make_plan(parse("graph reads(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y, %w\n}"), as_recorded));
  Tensor w = ones({4});
  reads.bind_state("w", w);
  reads.set_input("x", ones({4}));
  reads.run();
  ASSERT_EQ(reads.plan().values[reads.plan().graph.outputs[1]].where, Where::state) << "the plan copies the state that it returns";
  EXPECT_TRUE(bit_equal(reads.outputs()[1], ones({4})));
  {
    NoGrad off;
    add_(w, ones({4}));
  }
  const std::string gone = message_of<ExecutionError>([&] { reads.outputs(); });
  EXPECT_TRUE(mentions(gone, "%w of 'reads' is not there any more: it lies in state 'w', and the tensor bound to that has been written since")) << gone;
  EXPECT_TRUE(bit_equal(reads.output("y"), full({4}, 2.0)));
  reads.run();
  EXPECT_TRUE(bit_equal(reads.outputs()[1], full({4}, 2.0)));
}

// ---- one at a time ----

TEST(ReplayPool, AnotherMembersRunIsRefusedNamingBoth) {
  const auto pool = new_pool();
  const Graph slow = parse(R"(graph slow(%a: f32[600,600]) {
    %b: f32[600,600] = matmul(%a, %a)
    %c: f32[600,600] = matmul(%b, %a)
    return %c
  })");
  Executor long_one(make_plan(slow), {.pool = pool, .name = "long"});
  Executor short_one(make_plan(net("short", 2, false)), {.pool = pool});
  set_weights(short_one);
  short_one.set_input("x", value("x", f32({2, 16})));
  long_one.set_input("a", value("a", f32({600, 600})));
  std::atomic<bool> done{false};
  std::thread thread([&] {
    for (int ran = 0; ran < 20 && !done;) {
      try {
        long_one.run();
        ++ran;
      } catch (const ExecutionError&) {
      }
    }
    done = true;
  });
  std::string refused;
  while (!done && refused.empty()) {
    try {
      short_one.run();
    } catch (const ExecutionError& e) {
      refused = e.what();
    }
  }
  done = true;
  thread.join();
  EXPECT_TRUE(mentions(refused, "run: the executor of 'short' cannot be used now: 'long', which shares its memory, is in use by another thread")) << refused;
  short_one.run();
}

// Members come, run and go in several threads: refused at worst, never raced, and every run that was let in is right.
TEST(ReplayPool, MembersOfManyThreadsAreRefusedNeverRaced) {
  const auto pool = new_pool();
  const Graph infer = net("infer", 3, false);
  Executor anchor(make_plan(infer), {.pool = pool});
  set_weights(anchor);
  const std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
  std::atomic<int> ran{0}, refused{0}, wrong{0};
  const auto work = [&](int id) {
    for (int round = 0; round < 15; ++round) {
      const Graph g = net("member", 1 + (id * 7 + round * 3) % 20, false);
      const Tensor x = value("x", g.values[0].type, static_cast<std::uint64_t>(round));
      const Tensor right = run_eagerly(g, {x}, state).outputs[0];
      Executor member(make_plan(g), {.threads = 1 + id % 2, .pool = pool, .name = "member " + std::to_string(id)});
      for (bool fine = false; !fine;) {
        try {
          member.set_input("x", x);
          member.run();
          if (!bit_equal(member.outputs()[0], right)) ++wrong;
          ++ran;
          fine = true;
        } catch (const ExecutionError&) {
          ++refused;
          std::this_thread::yield();
        }
      }
      pool->explain();
    }
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) threads.emplace_back(work, id);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ran, 60);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool->report().members.size(), 1u);
  anchor.set_input("x", value("x", f32({3, 16})));
  anchor.run();
  EXPECT_TRUE(bit_equal(anchor.outputs()[0], run_eagerly(infer, {value("x", f32({3, 16}))}, state).outputs[0]));
}

// ---- faults ----

Tensor ints(const std::vector<std::int32_t>& values) { return from_vector(values, {static_cast<std::int64_t>(values.size())}); }

// Torn is by state: what the failed graph updates, and nothing else.
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
  EXPECT_TRUE(mentions(text, "an earlier run of 'breaks' failed after it had begun to write state; set it again first (still missing: s)")) << text;
  has_k.run();
  EXPECT_EQ(has_k.outputs()[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{-6, -8})) << "k was only read";
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { bad.run(); }), "still missing: s)"));
  has_s.set_state("s", ints({1, 2}));
  bad.set_input("d", ints({2, 2}));
  bad.run();
  has_s.run();
  EXPECT_EQ(has_s.outputs()[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{-11, -12}));
}

// ---- steps in parts ----

TEST(ReplayPool, AStepInPartsEndsWhenAnotherMemberRuns) {
  const auto pool = new_pool();
  const Graph train = net("train", 6, true);
  Executor steps(make_plan(train), {.pool = pool}), other(make_plan(net("other", 60, false)), {.pool = pool});
  set_weights(steps);
  const Tensor x = value("x", f32({6, 16}));
  steps.set_input("x", x);
  steps.run_to("h");
  other.set_input("x", value("x", f32({60, 16})));   // its own: disturbs nobody
  steps.resume();
  const std::vector<Tensor> state = {value("w", f32({16, 16})), value("b", f32({16}))};
  const EagerResult once = run_eagerly(train, {x}, state), twice = run_eagerly(train, {x}, once.state);
  EXPECT_TRUE(bit_equal(steps.outputs()[0], once.outputs[0]));
  EXPECT_TRUE(bit_equal(other.state("w"), once.state[0]));

  steps.run_to("h");
  other.run();   // the arena grows, and what was in it is gone
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { steps.resume(); }), "no step is under way"));
  EXPECT_TRUE(bit_equal(steps.state("w"), once.state[0]));
  steps.run();
  EXPECT_TRUE(bit_equal(steps.outputs()[0], twice.outputs[0]));
  EXPECT_TRUE(bit_equal(steps.state("w"), twice.state[0]));
  other.run();
  const std::string gone = message_of<ExecutionError>([&] { steps.value("h"); });
  EXPECT_TRUE(mentions(gone, "'other', which shares its memory, has run since; made by [matmul] %h") || mentions(gone, "has been computed in its bytes")) << gone;
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
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.run(); }), "'train', which shares this memory, is in the middle of a step that has written state"));
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.set_state("b", zeros({16})); }), "in the middle of a step"));
  steps->resume();
  const EagerResult once = run_eagerly(train, {x}, {value("w", f32({16, 16})), value("b", f32({16}))});
  EXPECT_TRUE(bit_equal(other.state("w"), once.state[0]));
  EXPECT_TRUE(bit_equal(other.state("b"), once.state[1]));
  other.run();

  steps->run_to("w2");
  steps.reset();   // and never comes to its end
  EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other.run(); }), "(still missing: w, b)"));
  set_weights(other);
  other.run();
}

// ---- captured steps ----

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 12}, fc2{*this, "fc2", 12, 4};
  Dropout drop{*this, "drop", 0.25};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

struct Steps {
  Net model;
  AdamW optimizer{model.parameters(), {.lr = 0.02}};
  Tensor hidden = zeros({4});   // unnamed state of one step, of the type of a bias in the other

  std::vector<Tensor> train(const std::vector<Tensor>& in) {
    const Tensor loss = mean(model(in[0]) * in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  }
  std::vector<Tensor> evaluate(const std::vector<Tensor>& in) {
    const NoGrad no_grad;
    const Tensor y = sum(model(in[0]), {0});
    copy_(hidden, hidden + y);
    return {y, copy(hidden)};
  }
};

std::vector<Tensor> train_and_evaluate(bool captured, const std::shared_ptr<ReplayPool>& pool) {
  manual_seed(4);
  Steps steps;
  CapturedStepOptions for_training, for_evaluation;
  for_training.executor.pool = for_evaluation.executor.pool = pool;
  for_training.executor.name = "train";
  for_evaluation.executor.name = "evaluate";
  CapturedStep train = capture([&](const std::vector<Tensor>& in) { return steps.train(in); }, for_training);
  CapturedStep evaluate = capture([&](const std::vector<Tensor>& in) { return steps.evaluate(in); }, for_evaluation);
  std::vector<Tensor> all;
  const auto keep = [&](std::vector<Tensor> results) {
    for (Tensor& t : results) all.push_back(t.detach());
  };
  for (int i = 0; i < 9; ++i) {
    const std::int64_t batch = i % 3 == 2 ? 10 : 5;
    const std::vector<Tensor> in = {value("x", f32({batch, 6}), static_cast<std::uint64_t>(i)), value("y", f32({batch, 4}), static_cast<std::uint64_t>(i))};
    steps.model.train(true);
    keep(captured ? train(in) : steps.train(in));
    steps.model.train(false);
    if (i != 4) keep(captured ? evaluate({in[0]}) : steps.evaluate({in[0]}));
  }
  if (captured && pool) {
    const PoolReport report = pool->report();
    EXPECT_GE(report.members.size(), 4u) << "two batch sizes of each\n" << pool->explain();
    EXPECT_EQ(pool->observed_peak_bytes(), report.planned_peak_bytes) << pool->explain();
    int shared = 0;
    for (const PoolReport::State& s : report.state) shared += s.members.size() == report.members.size();
    EXPECT_EQ(shared, 4) << "weights and biases\n" << pool->explain();
    EXPECT_GT(report.saved_bytes(), 0);
  }
  for (const Tensor& p : steps.model.parameters()) all.push_back(copy(p).detach());
  return all;
}

// The tensors are what is shared, not their names: two steps may call different tensors alike.
TEST(ReplayPool, CapturedStepsShareTheirTensors) {
  const std::vector<Tensor> eager = train_and_evaluate(false, nullptr);
  for (const auto& pool : {new_pool(), std::shared_ptr<ReplayPool>()}) {
    const std::vector<Tensor> replayed = train_and_evaluate(true, pool);
    ASSERT_EQ(replayed.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(replayed[i], eager[i])) << i;
  }
}

TEST(ReplayPool, StepsThatCallDifferentTensorsAlike) {
  const auto pool = new_pool();
  const auto step = [&](const Tensor& counter) {
    CapturedStepOptions options;
    options.executor.pool = pool;
    return capture([counter](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      Tensor c = counter;
      add_(c, in[0]);
      return {copy(c)};
    }, options);
  };
  const Tensor one = zeros({3}), two = zeros({3});
  CapturedStep first = step(one), second = step(two);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(first({tensor({1, 1, 1})})[0].to_vector<float>()[0], static_cast<float>(i));
    EXPECT_EQ(second({tensor({10, 10, 10})})[0].to_vector<float>()[0], static_cast<float>(10 * i));
  }
  EXPECT_EQ(one.to_vector<float>()[2], 6);
  EXPECT_EQ(two.to_vector<float>()[2], 60);
}

// ---- nobody thought of ----

struct Dice {
  std::uint64_t state;
  std::int64_t below(std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

// A program over a part of one table of state: mixes values as they fit, updates some, returns some, may divide by an input.
class RandomMember {
 public:
  explicit RandomMember(Dice* dice) : dice_(*dice) {}

  Graph make(const std::string& name) {
    g_.name = name;
    rows_ = 1 + dice_.below(30);
    g_.add_input("x", f32({rows_, 6}));
    g_.add_input("q", {DType::i32, {5}});
    const std::pair<const char*, Type> table[] = {{"a", f32({4, 6})}, {"b", f32({6, 4})}, {"c", f32({6, 6})}, {"d", f32({6})}, {"n", {DType::i32, {5}}}};
    for (const auto& [state, type] : table)
      if (dice_.below(3) > 0) g_.add_state(state, type, Role::parameter);
    if (g_.n_state == 0) g_.add_state("a", f32({4, 6}), Role::parameter);
    rng_ = g_.add_state("rng", {DType::i64, {2}}, Role::rng);
    const std::int64_t nodes = 4 + dice_.below(20);
    for (std::int64_t i = 0; i < nodes; ++i) add_any();
    finish();
    return std::move(g_);
  }

 private:
  ValueId add(const char* op_name, std::initializer_list<ValueId> inputs, const void* attrs = nullptr) {
    const Op& op = *find_op(op_name);
    std::vector<Type> in, out;
    for (ValueId v : inputs) in.push_back(type(v));
    infer_types(op, in, attrs, out);
    return g_.nodes[static_cast<std::size_t>(g_.add_node(op, std::vector<ValueId>(inputs), attrs, out))].first_output;
  }
  const Type& type(ValueId v) const { return g_.values[static_cast<std::size_t>(v)].type; }
  ValueId any(DType dtype) {
    for (;;) {
      const auto v = static_cast<ValueId>(dice_.below(g_.value_count()));
      if (type(v).dtype == dtype) return v;
    }
  }

  void add_any() {
    const ValueId v = any(DType::f32), o = any(DType::f32);
    Shape both;
    switch (dice_.below(7)) {
      case 0: add(dice_.below(2) ? "tanh" : "neg", {v}); return;
      case 1:
      case 2:
        if (broadcast_shapes(type(v).shape, type(o).shape, &both)) add(dice_.below(2) ? "add" : "mul", {v, o});
        return;
      case 3:
        if (type(v).shape.rank == 2 && type(o).shape.rank == 2 && type(v).shape[1] == type(o).shape[0]) add("tanh", {add("matmul", {v, o})});
        return;
      case 4:
        if (type(v).shape.rank > 0) {
          ReduceAttrs attrs;
          attrs.axes = {0};
          add("sum", {v}, &attrs);
        }
        return;
      case 5: {
        DropoutAttrs attrs;
        attrs.path = "drop." + std::to_string(g_.node_count());
        add("dropout", {v, rng_}, &attrs);
        return;
      }
      default:
        if (dice_.below(3)) add("add", {any(DType::i32), any(DType::i32)});
        else g_.outputs.push_back(add("div", {any(DType::i32), any(DType::i32)}));   // returned, so that no pass drops it with its fault
    }
  }

  void finish() {
    for (ValueId s = g_.n_inputs; s < g_.n_inputs + g_.n_state; ++s) {
      if (s == rng_) continue;
      if (dice_.below(2)) continue;
      ValueId next = kNone;
      for (ValueId v = g_.value_count() - 1; v >= 0 && next == kNone; --v)
        if (type(v) == type(s) && g_.values[static_cast<std::size_t>(v)].node != kNone) next = v;
      if (next == kNone) next = add("neg", {s});
      const bool bounded = type(s).dtype == DType::f32;
      g_.updates.push_back({s, bounded ? add("tanh", {next}) : next});
    }
    if (dice_.below(2)) g_.updates.push_back({rng_, add("rng_next", {rng_})});
    for (int i = 0; i < 4; ++i) g_.outputs.push_back(static_cast<ValueId>(dice_.below(g_.value_count())));
    g_.output_names.resize(g_.outputs.size());
  }

  Dice& dice_;
  Graph g_;
  std::int64_t rows_ = 0;
  ValueId rng_ = kNone;
};

using Table = std::map<std::string, Tensor>;

// Members in random number, sizes and order over one pool, with members that come and go, results read late, state set by anybody, and
// divisions by zero, against one table of state and run_eagerly().
class Interleaving {
 public:
  explicit Interleaving(std::uint64_t seed) : seed_(seed), dice_{seed * 0x9E3779B97F4A7C15u + 3} {}

  void run() {
    join();
    join();
    for (int step = 0; step < 30 && !::testing::Test::HasFatalFailure(); ++step) {
      switch (dice_.below(10)) {
        case 0: join(); break;
        case 1: leave(); break;
        case 2: set_some_state(); break;
        case 3: check_results(); break;
        default: run_one(members_[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(members_.size())))]);
      }
    }
    for (const auto& m : members_) run_one(m);
    check_results();
    for (const auto& m : members_)
      for (const std::string& s : m->executor->state_names()) EXPECT_TRUE(bit_equal(m->executor->state(s), table_.at(s))) << where() << ", state " << s;
    EXPECT_LE(pool_->planned_peak_bytes(), pool_->observed_peak_bytes()) << where();
  }

  int faults = 0, torn = 0;

 private:
  struct Member {
    Graph graph;
    std::unique_ptr<Executor> executor;
    std::vector<Tensor> inputs, results;
  };
  std::string where() const { return "seed " + std::to_string(seed_); }
  Tensor draw(const std::string& name, const Type& type) {
    if (type.dtype == DType::f32) return default_value(type, static_cast<std::uint64_t>(dice_.below(1000)), name);
    if (type.dtype == DType::i64) {
      const std::int64_t seed_and_step[] = {dice_.below(99), 0};
      return from_bytes(type, seed_and_step);
    }
    std::vector<std::int32_t> values(5);
    for (auto& v : values) v = static_cast<std::int32_t>(dice_.below(name == "q" ? 12 : 50));   // now and then a zero
    return from_vector(values, {5});
  }

  void join() {
    auto m = std::make_shared<Member>();
    m->graph = RandomMember(&dice_).make("m" + std::to_string(++made_));
    PlanOptions options;
    if (dice_.below(3) == 0) options.segment_us = 0;
    if (dice_.below(3) == 0) options.budget_percent = 90;
    Plan plan = make_plan(m->graph, options);
    if (!plan.feasible) plan = make_plan(m->graph);
    m->executor = std::make_unique<Executor>(std::move(plan), ExecutorOptions{.threads = 1 + static_cast<int>(dice_.below(2)), .pool = pool_});
    members_.push_back(m);
    for (const std::string& s : m->executor->state_names())
      if (!table_.count(s)) set(*m, s);
    give_inputs(*m);
  }

  void leave() {
    if (members_.size() < 2) return;
    members_.erase(members_.begin() + dice_.below(static_cast<std::int64_t>(members_.size())));
    std::set<std::string> held;
    for (const auto& m : members_)
      for (const std::string& s : m->executor->state_names()) held.insert(s);
    std::erase_if(table_, [&](const auto& entry) { return !held.count(entry.first); });
  }

  void give_inputs(Member& m) {
    m.inputs.clear();
    for (ValueId v = 0; v < m.graph.n_inputs; ++v) {
      m.inputs.push_back(draw(m.graph.value_name(v), m.graph.values[static_cast<std::size_t>(v)].type));
      m.executor->set_input(v, m.inputs.back());
    }
  }

  const Type& state_type(const Member& m, const std::string& name) const {
    for (ValueId v = m.graph.n_inputs;; ++v)
      if (m.graph.value_name(v) == name) return m.graph.values[static_cast<std::size_t>(v)].type;
  }
  void set(Member& m, const std::string& name) {
    const Tensor value = draw(name, state_type(m, name));
    table_[name] = copied(value);
    if (dice_.below(4) == 0) m.executor->bind_state(name, copied(value));
    else m.executor->set_state(name, value);
  }
  void set_some_state() {
    Member& m = *members_[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(members_.size())))];
    const std::vector<std::string> names = m.executor->state_names();
    set(m, names[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(names.size())))]);
  }

  std::vector<Tensor> state_of(const Member& m) const {
    std::vector<Tensor> state;
    for (ValueId v = m.graph.n_inputs; v < m.graph.n_inputs + m.graph.n_state; ++v) state.push_back(copied(table_.at(m.graph.value_name(v))));
    return state;
  }

  void run_one(const std::shared_ptr<Member>& m) {
    if (dice_.below(2)) give_inputs(*m);
    std::optional<EagerResult> eager;
    try {
      eager = run_eagerly(m->graph, m->inputs, state_of(*m));
    } catch (const ExecutionError&) {
    }
    if (!eager) return fail_one(*m);
    m->executor->run();
    m->results = eager->outputs;
    for (std::size_t s = 0; s < eager->state.size(); ++s) table_[m->graph.value_name(m->graph.n_inputs + static_cast<ValueId>(s))] = eager->state[s];
    if (dice_.below(2)) check_results_of(*m);
  }

  void fail_one(Member& m) {
    ++faults;
    m.results.clear();
    const std::string text = message_of<ExecutionError>([&] { m.executor->run(); });
    if (!mentions(text, "state had been written already")) {
      for (const std::string& s : m.executor->state_names()) EXPECT_TRUE(bit_equal(m.executor->state(s), table_.at(s))) << where() << ", whole state " << s;
      return;
    }
    ++torn;
    std::set<std::string> updated;
    for (const Update& u : m.graph.updates) updated.insert(m.graph.value_name(u.state));
    for (const auto& other : members_) {
      const std::vector<std::string> has = other->executor->state_names();
      const bool refused = std::any_of(has.begin(), has.end(), [&](const std::string& s) { return updated.count(s) > 0; });
      if (refused) EXPECT_TRUE(mentions(message_of<ExecutionError>([&] { other->executor->run(); }), "still missing")) << where();
      else run_one(other);
    }
    for (const std::string& s : updated) set(m, s);
  }

  void check_results_of(const Member& m) {
    if (m.results.empty()) return;
    const std::vector<Tensor> got = m.executor->outputs();
    ASSERT_EQ(got.size(), m.results.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(bit_equal(got[i], m.results[i])) << where() << ", " << m.graph.name.view() << ", output " << i;
  }
  void check_results() {
    for (const auto& m : members_) check_results_of(*m);
  }

  std::uint64_t seed_;
  Dice dice_;
  int made_ = 0;
  std::shared_ptr<ReplayPool> pool_ = new_pool();
  Table table_;
  std::vector<std::shared_ptr<Member>> members_;
};

TEST(ReplayPoolRandom, InterleavedMembersEqualEager) {
  int faults = 0, torn = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Interleaving run(seed);
    run.run();
    faults += run.faults;
    torn += run.torn;
    if (HasFailure()) return;
  }
  EXPECT_GT(faults, 20) << "the faults are meant to happen";
  EXPECT_GT(torn, 5);
}

}  // namespace
}  // namespace tapedeck
