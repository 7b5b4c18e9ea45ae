// Tests the bytes of a pool: the arena of its largest member and each state once. The oracle computes them from the plans
// alone.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>

#include <algorithm>
#include <map>

namespace tapedeck {
namespace {

TEST(ReplayPool, D13_TheArenaIsTheLargestAndStateIsHeldOnce) {
  const std::vector<Plan> plans = {make_plan(net("train", 64, true)), make_plan(net("infer", 8, false)),
                                   make_plan(net("evaluate", 128, false))};
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

// DW5: bytes, reports and results do not depend on the order of joining, nor on runs before later members join.
TEST(ReplayPool, DW5_TheOrderOfJoiningDoesNotMatter) {
  const std::vector<Graph> graphs = {net("train", 24, true), net("infer", 1, false), net("evaluate", 40, false),
                                     net("fine_tune", 7, true)};
  std::vector<Plan> plans;
  for (const Graph& g : graphs) plans.push_back(make_plan(g));
  std::vector<std::size_t> order = {0, 1, 2, 3};
  std::string said, said_json;
  do {
    for (const bool early : {false, true}) {  // true: members run before the next one joins
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
  const EagerResult eager =
      run_eagerly(small.graph, {value("x", f32({4, 16}))}, {value("w", f32({16, 16})), value("b", f32({16}))});
  EXPECT_TRUE(bit_equal(stays.outputs()[0], eager.outputs[0]));
}

// DW4: sizes follow the dtype. An f16 pool takes exactly half of the bytes of an f32 pool, an f64 pool exactly twice as
// many.
TEST(ReplayPool, DW4_TrueSizesOfEveryType) {
  std::map<std::string, PoolReport> reports;
  for (const std::string type : {"f16", "f32", "f64"}) {
    // These ops only move bytes. Other ops may need f32 workspace for f16.
    const std::string one_k = type + "[1024]", two_k = type + "[2048]", four_k = type + "[4096]";
    const Graph g = parse("graph g(%x: " + one_k + ") state(%s: " + one_k + ") {\n  %a: " + two_k +
                          " = concat(%x, %s) {axis=0}\n  %b: " + two_k + " = concat(%s, %x) {axis=0}\n  %c: " + four_k +
                          " = concat(%b, %a) {axis=0}\n  %d: " + four_k + " = flip(%c) {axes=[0]}\n  return %d\n}");
    const auto pool = new_pool();
    const Executor one(make_plan(g), {.pool = pool, .name = "one"}), two(make_plan(g), {.pool = pool, .name = "two"});
    reports[type] = pool->report();
  }
  for (const auto field :
       {&PoolReport::arena_bytes, &PoolReport::state_bytes, &PoolReport::own_bytes, &PoolReport::planned_peak_bytes}) {
    EXPECT_GT(reports["f16"].*field, 0);
    EXPECT_EQ(reports["f16"].*field * 2, reports["f32"].*field);
    EXPECT_EQ(reports["f32"].*field * 2, reports["f64"].*field);
  }
  EXPECT_EQ(reports["f16"].planned_peak_bytes, 2 * (1024 + 2 * (1024 + 4096) + 4096))
      << "state, both members' input and output, the arena of one";
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

}  // namespace
}  // namespace tapedeck
