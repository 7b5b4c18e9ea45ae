// Replays random graphs on two and four threads: whole steps, parts, phases, faults, cancelling, monitors, executors side by
// side. The tests are made for the thread sanitizer and also compare every bit with eager runs. Each test covers 200 graphs.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/tests/engine/messages.h>

#include <tapedeck/tests/capture/replay/random_plans.h>
#include <tapedeck/tests/capture/replay_check.h>
#include <tapedeck/tests/engine/seeds.h>

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace tapedeck {
namespace {

constexpr int kReplayGroup = 10;  // graphs in each test case

using test::all_values;
using test::graph_of;
using test::plan_of;

class ReplayRandom : public ::testing::TestWithParam<int> {
 protected:
  template <class F>
  void each(F&& f) {
    for (int i = 0; i < kReplayGroup; ++i) {
      const auto seed = static_cast<std::uint64_t>(GetParam() * kReplayGroup + i);
      SCOPED_TRACE("seed " + std::to_string(seed));
      const Graph g = graph_of(seed);
      for (int threads : {2, 4}) {
        SCOPED_TRACE("threads " + std::to_string(threads));
        f(seed, g, threads);
      }
    }
  }
};

TEST_P(ReplayRandom, StepsEqualEager) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    Executor e(plan_of(g, seed), {.threads = threads});
    std::vector<Tensor> state = stand_ins(g, g.n_inputs, g.n_state, 7);
    set_all(e, {}, state);
    for (std::uint64_t step = 0; step < 2; ++step) {
      const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, step);
      set_all(e, inputs, {});
      e.run();
      const EagerResult eager = run_eagerly(g, inputs, state);
      expect_equal(e, eager, "step " + std::to_string(step));
      state = eager.state;
    }
    EXPECT_EQ(e.observed_peak_bytes(), e.plan().peak_bytes);
  });
}

// Runs a step in random parts. Between the parts, every value that is still there must be right.
TEST_P(ReplayRandom, PartsEqualTheWhole) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    test::Dice dice{seed + 99};
    Executor e(plan_of(g, seed), {.threads = threads});
    const Graph& planned = e.plan().graph;
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    const std::map<std::string, Tensor> wanted = all_values(planned, inputs, state);
    set_all(e, inputs, state);
    std::int32_t left = planned.node_count();
    while (left > 0 && dice.below(4) > 0) {
      left = e.step(1 + static_cast<std::int32_t>(dice.below(8)));
      for (const auto& [name, value] : wanted) {
        Tensor seen;
        try {
          seen = e.value(name);
        } catch (const ExecutionError&) {
          continue;  // not computed yet, or overwritten already
        }
        EXPECT_TRUE(bit_equal(seen, value)) << name << " with " << left << " nodes left";
      }
    }
    if (e.nodes_left() > 0)
      e.resume();
    else if (left == planned.node_count())
      e.run();  // no part was run, or the graph has no nodes
    expect_equal(e, run_eagerly(g, inputs, state), "in parts");
  });
}

// Runs the phases one by one: always if the plan splits segments at phases, otherwise if the plan happens to allow it.
TEST_P(ReplayRandom, PhasesEqualTheWhole) {
  each([](std::uint64_t seed, const Graph&, int threads) {
    const Graph g = test::RandomProgram(static_cast<unsigned>(seed) + 1).graph();
    const bool split = seed % 3 > 0;
    Executor e(plan_of(g, seed, split), {.threads = threads});
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    set_all(e, inputs, state);
    try {
      for (Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
        try {
          e.run(phase);
        } catch (const UsageError& error) {
          if (std::string(error.what()).find("to run apart") == std::string::npos) throw;
        }
      }
      EXPECT_EQ(e.nodes_left(), 0);
    } catch (const UsageError& error) {
      EXPECT_FALSE(split) << error.what();
      EXPECT_MENTIONS(std::string(error.what()), "plan with segments split at phases");
      if (e.nodes_left() > 0)
        e.resume();
      else
        e.run();
    }
    expect_equal(e, run_eagerly(g, inputs, state), "phases");
  });
}

// Several nodes fail. The error must be that of the lowest failing node, on any number of threads. Then the same executor
// must give right results.
TEST_P(ReplayRandom, FaultsAreThoseOfTheLowestNode) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    test::Dice dice{seed + 7};
    constexpr int kDivisions = 6;  // added among the other nodes
    Graph with;
    with.name = g.name;
    const Type one{DType::i32, {1}};
    for (ValueId v = 0; v < g.n_inputs; ++v) with.add_input(g.values[v].name, g.values[v].type);
    const ValueId numerator = with.add_input("numerator", one);
    std::vector<ValueId> divisors;
    for (int i = 0; i < kDivisions; ++i) divisors.push_back(with.add_input(Name("divisor" + std::to_string(i)), one));
    for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
      with.add_state(g.values[v].name, g.values[v].type, g.values[v].role);
    std::vector<ValueId> map;
    for (ValueId v = 0; v < g.n_inputs; ++v) map.push_back(v);
    for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) map.push_back(v + kDivisions + 1);
    int divided = 0;
    std::vector<ValueId> quotients;
    const auto divide = [&] {
      const ValueId pair[] = {numerator, divisors[divided]};
      quotients.push_back(with.value_count());
      with.add_node(*find_op("div"), pair, nullptr, std::span(&one, 1));
      ++divided;
    };
    for (NodeId n = 0; n < g.node_count(); ++n) {
      if (divided < kDivisions && dice.below(g.node_count()) < kDivisions) divide();
      const Node& node = g.nodes[n];
      std::vector<ValueId> operands, after;
      for (ValueId v : g.inputs(node)) operands.push_back(map[v]);
      for (ValueId v : g.after(node)) after.push_back(map[v]);
      for (int i = 0; i < node.n_outputs; ++i) map.push_back(with.value_count() + i);
      with.add_node(*node.op, operands, g.attributes(node), g.output_types(node), node.origin, after);
    }
    while (divided < kDivisions) divide();
    for (ValueId v : g.outputs) with.outputs.push_back(map[v]);
    for (ValueId v : quotients) with.outputs.push_back(v);
    with.output_names.resize(with.outputs.size());
    for (const Update& u : g.updates) with.updates.push_back({map[u.state], map[u.value]});

    Executor e(plan_of(with, seed), {.threads = threads});
    const Graph& planned = e.plan().graph;
    std::vector<Tensor> inputs = stand_ins(with, 0, with.n_inputs, 1);
    const std::vector<Tensor> state = stand_ins(with, with.n_inputs, with.n_state, 7);
    const auto divisor = [](int value) { return from_vector(std::vector<std::int32_t>{value}, {1}); };
    for (int round = 0; round < 3; ++round) {
      set_all(e, inputs, state);
      std::vector<bool> zero(kDivisions);
      zero[dice.below(kDivisions)] = true;
      for (int i = 0; i < kDivisions; ++i) zero[i] = zero[i] || dice.below(3) == 0;
      for (int i = 0; i < kDivisions; ++i) e.set_input(divisors[i], divisor(zero[i] ? 0 : 3));
      NodeId lowest = kNone;
      for (NodeId n = 0; n < planned.node_count() && lowest == kNone; ++n) {
        const Node& node = planned.nodes[n];
        if (std::string(node.op->name) == "div" && node.n_inputs == 2 && planned.inputs(node)[1] < planned.n_inputs) {
          const std::string name = planned.value_name(planned.inputs(node)[1]);
          if (name.starts_with("divisor") && zero[name.back() - '0']) lowest = n;
        }
      }
      ASSERT_NE(lowest, kNone);
      EXPECT_MENTIONS(testing::message_of<ExecutionError>([&] { e.run(); }), planned.node_text(lowest));
      EXPECT_THROW(e.outputs(), ExecutionError);
    }
    for (int i = 0; i < kDivisions; ++i) inputs[divisors[i]] = divisor(5);
    set_all(e, inputs, state);
    e.run();
    expect_equal(e, run_eagerly(with, inputs, state), "after the faults");
  });
}

// Another thread cancels the run at a random time. The run completes, or no state has changed.
TEST_P(ReplayRandom, CancelledRunsLeaveStateAlone) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    Executor e(plan_of(g, seed), {.threads = threads});
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    const EagerResult eager = run_eagerly(g, inputs, state);
    const std::vector<std::string> names = e.state_names();
    std::atomic<bool> cancel{false}, running{true};
    std::atomic<int> runs{0};
    std::thread other([&] {
      for (unsigned i = static_cast<unsigned>(seed); running; ++i) {
        for (const int before = runs; running && runs == before;) std::this_thread::yield();
        for (unsigned wait = 0; wait < i % 7 * 50; ++wait) std::this_thread::yield();
        cancel = true;
      }
    });
    for (int round = 0; round < 10; ++round) {
      set_all(e, inputs, state);
      cancel = false;
      ++runs;
      try {
        e.run(RunOptions{.cancel = &cancel, .progress = [](double) {}});
        expect_equal(e, eager, "it had run");
      } catch (const Cancelled&) {
        for (std::size_t s = 0; s < names.size(); ++s) EXPECT_TRUE(bit_equal(e.state(names[s]), state[s])) << names[s];
        EXPECT_THROW(e.outputs(), ExecutionError);
      }
    }
    running = false;
    other.join();
    set_all(e, inputs, state);
    e.run();
    expect_equal(e, eager, "afterwards");
  });
}

// Monitors see the values of an eager run, on any number of threads.
TEST_P(ReplayRandom, MonitorsSeeEagerValues) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    Executor e(plan_of(g, seed), {.threads = threads});
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    set_all(e, inputs, state);
    const std::map<std::string, Tensor> wanted = all_values(e.plan().graph, inputs, state);
    if (e.plan().graph.node_count() == 0) return;
    std::size_t seen = 0;  // needs no lock: callbacks come one at a time
    e.monitor("*",
              [&](const Monitored& m) {
                ++seen;
                EXPECT_TRUE(bit_equal(m.value, wanted.at(m.name))) << m.name;
              },
              {.operands = seed % 2 == 0});
    Timeline times;
    e.run(&times);
    EXPECT_GE(seen, wanted.size() - static_cast<std::size_t>(g.n_inputs + g.n_state));
    expect_equal(e, run_eagerly(g, inputs, state), "monitored");
  });
}

// Executors run side by side, each on several threads and in its own arena. A third caller of a busy executor is refused
// without a race.
TEST_P(ReplayRandom, ExecutorsRunSideBySide) {
  each([](std::uint64_t seed, const Graph& g, int threads) {
    const Plan plan = plan_of(g, seed);
    const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, 1), state = stand_ins(g, g.n_inputs, g.n_state, 7);
    const EagerResult eager = run_eagerly(g, inputs, state);
    Executor first(plan, {.threads = threads}), second(plan, {.threads = threads});
    const auto work = [&](Executor& e) {
      for (int i = 0; i < 2; ++i) {
        set_all(e, inputs, state);
        e.run();
        expect_equal(e, eager, "side by side");
      }
    };
    std::thread a([&] { work(first); }), b([&] { work(second); });
    a.join();
    b.join();

    std::atomic<int> refused{0}, ran{0};
    set_all(first, inputs, state);
    const auto contend = [&] {
      for (int i = 0; i < 5; ++i) {
        try {
          first.run();
          ++ran;
        } catch (const ExecutionError& error) {
          EXPECT_MENTIONS(std::string(error.what()), "in use");
          ++refused;
        }
      }
    };
    std::thread c(contend), d(contend);
    c.join();
    d.join();
    EXPECT_EQ(refused + ran, 10);
    EXPECT_GT(ran, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplayRandom, ::testing::Range(0, test::seeds(200) / kReplayGroup));

}  // namespace
}  // namespace tapedeck
