// Implements harness.h: one method for each way of running a program. Each method compares its results and state with those
// of the eager run and throws at the first difference.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/tests/agree/harness.h>

#include <tapedeck/tests/agree/subject.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/text/text.h>

#include <cstdlib>
#include <limits>
#include <random>

namespace tapedeck::agree {

namespace {

// An exception: one way of running the program gave other bits. check_agreement() catches it.
struct Differs {
  std::string what;
};

void expect(const std::string& difference) {
  if (!difference.empty()) throw Differs{difference};
}

struct DisabledPasses {
  explicit DisabledPasses(const std::string& value) { ::setenv("TAPEDECK_DISABLE_PASSES", value.c_str(), 1); }
  ~DisabledPasses() { ::unsetenv("TAPEDECK_DISABLE_PASSES"); }
};

class Ways {
 public:
  Ways(const Builder& build, const Harness& harness) : build_(build), harness_(harness) {}

  Verdict check() {
    try {
      twin_ = run_eager_twin(build_, harness_.seed);
    } catch (const Error& e) {
      return {Verdict::Kind::illegal, "eager", e.what(), 0};
    }
    try {
      eager_again();
      capture_it();
      callable();
      graphs();
      planted();
      if (harness_.plans) plans();
      passes();
      text();
      if (harness_.files) file();
      gradient();
    } catch (const Differs& d) {
      return {Verdict::Kind::differs, way_, d.what, ways_};
    } catch (const std::exception& e) {
      return {Verdict::Kind::differs, way_, std::string("throws ") + e.what(), ways_};
    }
    return {Verdict::Kind::agrees, "", "", ways_};
  }

 private:
  void way(std::string name) {
    way_ = std::move(name);
    ++ways_;
  }

  void eager_again() {
    way("eager again");
    const std::vector<Record> again = run_eager_twin(build_, harness_.seed);
    for (int step = 0; step < kSteps; ++step) expect(difference(again[step], twin_[step], step));
  }

  void capture_it() {
    way("eager around a capture");
    subject_ = captured_subject(build_, harness_.seed);
    for (int k = 0; k < kReplayed; ++k)
      expect(difference({subject_.expected[k].outputs, {}}, {twin_[kFirstReplayed + k].outputs, {}}, kFirstReplayed + k));
  }

  void callable() {
    for (int threads : {1, 2}) {
      way(fmt::format("captured, {} threads", threads));
      const auto program = made(build_, harness_.seed);
      CapturedStepOptions options;
      options.executor.threads = threads;
      if (threads == 2) options.plan.segment_us = 0.2;
      CapturedStep step = capture(program->step(), options);
      for (int i = 0; i < kSteps; ++i) {
        program->prepare(i);
        const Tensors outputs = copied(step(program->inputs(i)));
        expect(difference({outputs, copied(program->state())}, twin_[i], i));
      }
      if (step.recordings() != 2 || step.replays() != kSteps - 2)
        throw Differs{fmt::format("recorded {} times", step.recordings())};
    }
  }

  // Runs the graph's nodes one by one for each step after the capture.
  void node_by_node(const Graph& g) {
    Tensors state = subject_.start;
    for (int k = 0; k < kReplayed; ++k) {
      EagerResult r = run_eagerly(g, subject_.inputs[k], state);
      expect(difference({r.outputs, r.state}, subject_.expected[k], kFirstReplayed + k));
      state = r.state;
    }
  }

  void replay(Executor& executor) {
    const std::vector<std::string> names = executor.state_names();
    for (std::size_t i = 0; i < names.size(); ++i) executor.set_state(names[i], subject_.start[i]);
    replay_from_here(executor);
  }

  void replay_from_here(Executor& executor) {
    const std::vector<std::string> names = executor.state_names();
    for (int k = 0; k < kReplayed; ++k) {
      for (std::size_t i = 0; i < subject_.inputs[k].size(); ++i)
        executor.set_input(static_cast<int>(i), subject_.inputs[k][i]);
      executor.run();
      Tensors state;
      for (const std::string& name : names) state.push_back(executor.state(name));
      expect(difference({executor.outputs(), state}, subject_.expected[k], kFirstReplayed + k));
    }
    if (executor.observed_peak_bytes() != executor.plan().peak_bytes)
      throw Differs{
          fmt::format("held {} bytes at once, planned {}", executor.observed_peak_bytes(), executor.plan().peak_bytes)};
  }

  static Plan judged(Plan plan) {
    if (!plan.feasible) throw Differs{"infeasible: " + plan.infeasible_reason};
    for (const std::vector<std::string>& found : {check_plan(plan), check_clones(plan)})
      if (!found.empty()) throw Differs{"the plan is wrong: " + found.front()};
    return plan;
  }

  // Makes many segments even in a small program, so that some run side by side. A search for the floor tries few offsets: the
  // bits of a replay do not depend on how well the bytes are packed, and half of the time of a program went into packing.
  static PlanOptions in_small_segments(PlanOptions options) {
    options.segment_us = 0.2;
    if (options.find_floor) options.place_work = 300;
    return options;
  }

  // The search for the floor, with its orders and offsets, takes most of the time of a program. So a program has one such
  // search, for the budgets and the plan without one, and every third a second search, without a pass. The other plans are
  // made as the callable makes its own, without the floor.
  Plan planned(const Graph& g, const PlanOptions& options) { return judged(make_plan(g, in_small_segments(options))); }

  void planned_replay(const Graph& g, PlanOptions options = {}, int threads = 1) {
    options.threads = threads;
    Executor executor(planned(g, options), {.threads = threads});
    replay(executor);
  }

  const Graph& graph() const { return subject_.captured.graph; }

  void graphs() {
    way("node by node");
    node_by_node(graph());
  }

  void planted() {
    for (const NamedPass& pass : harness_.planted) {
      way("pass " + pass.name);
      node_by_node(pass.run(graph()));
    }
  }

  void plans() {
    way("planned, one thread, replayed twice");
    Executor executor(planned(graph(), {.find_floor = false}), {.threads = 1});
    replay(executor);
    replay(executor);
    way("planned, two threads");
    planned_replay(graph(), {.find_floor = false}, 2);
    way("keep-all");
    planned_replay(graph(), {.strategy = Strategy::none, .find_floor = false});
    budgets();
  }

  void budgets() {
    way("no budget, but the floor is known");
    PlanSearch search(graph(), in_small_segments({.threads = 2}));
    Executor wide(judged(search.plan(-1)), {.threads = 1});
    replay(wide);
    way("budget: the floor");
    const std::int64_t floor = search.floor(), peak = search.keep_all_peak();
    Executor tight(judged(search.plan(floor)), {.threads = 1});
    replay(tight);
    if (floor == peak) return;
    way("budget: half of what the floor saves, two threads");
    Executor halfway(judged(search.plan(floor + (peak - floor) / 2)), {.threads = 2});
    replay(halfway);
  }

  void passes() {
    if (harness_.plans) without_each_pass();
    random_orders();
  }

  void without_each_pass() {
    std::uint64_t turn = 0;
    const std::uint64_t full = (harness_.seed + graph().nodes.size()) % (3 * legal_passes().size());
    const std::string with_all = prepared_text();
    for (const NamedPass& pass : legal_passes()) {
      if (pass_named(pass.name).always) continue;
      way(fmt::format("passes: {} left out", pass.name));
      const DisabledPasses off(pass.name);
      const bool is_full = turn++ == full;
      // What a pass does not change is planned as with it, and that plan was replayed above.
      if (is_full || prepared_text() != with_all) planned_replay(graph(), {.find_floor = is_full});
    }
  }

  // The graph that is planned, where the passes that are not disabled have run.
  std::string prepared_text() const {
    PassRunner runner;
    return print(prepare(graph(), &runner), everything());
  }

  static PrintOptions everything() {
    PrintOptions all;
    all.max_inline_constant = std::numeric_limits<std::int64_t>::max();
    return all;
  }

  void random_orders() {
    std::mt19937_64 random(harness_.seed);
    for (int k = 0; k < harness_.orders; ++k) {
      Graph g = graph();
      std::string order;
      const std::size_t length = 1 + random() % (legal_passes().size() + 2);
      for (std::size_t i = 0; i < length; ++i) {
        const NamedPass& pass = legal_passes()[random() % legal_passes().size()];
        order += (order.empty() ? "" : ", ") + pass.name;
        g = pass.run(g);
      }
      way("passes: " + order);
      verify(g);
      node_by_node(g);
      if (k % 4 == 3) planned_replay(g, {.find_floor = false});
    }
  }

  void text() {
    way("printed and parsed");
    const std::string printed = print(graph(), everything());
    const Graph parsed = parse(printed);
    if (print(parsed, everything()) != printed) throw Differs{"prints otherwise once parsed"};
    node_by_node(parsed);
  }

  void file() {
    way("saved and loaded");
    static const TemporaryFolder folder;
    const std::string path = folder.file("program.tape");
    TapeFile file;
    file.captured = graph();
    file.plan = planned(graph(), {.find_floor = false});
    for (std::int32_t i = 0; i < graph().n_state; ++i) file.state[graph().value_name(graph().n_inputs + i)] = subject_.start[i];
    for (std::int32_t i = 0; i < graph().n_inputs; ++i) file.inputs[graph().value_name(i)] = subject_.inputs[0][i];
    save_tape(path, file);
    const TapeFile loaded = load_tape(path);
    node_by_node(loaded.captured);
    Executor executor(*loaded.plan);
    for (const auto& [name, value] : loaded.state) executor.set_state(name, value);
    replay_from_here(executor);
  }

  // Captures the forward pass alone and generates its gradient on the graph. The gradient must equal the grad() of eager
  // backward.
  void gradient() {
    if (!made(build_, harness_.seed)->forward()) return;
    way("gradient generated on the graph");
    const ForwardSubject s = forward_subject(build_, harness_.seed);
    if (!s.comparable) return;
    const Graph& forward = s.captured.graph;
    std::vector<ValueId> wrt;
    for (std::size_t i : s.wrt) wrt.push_back(forward.n_inputs + static_cast<ValueId>(i));
    GraphGradient g = tapedeck::gradient(forward, std::vector<ValueId>{forward.outputs[0]}, wrt);
    for (ValueId v : g.gradients) {
      g.graph.outputs.push_back(v);
      g.graph.output_names.emplace_back();
    }
    verify(g.graph);
    const auto compare = [&](Tensors outputs) {
      if (s.program->has_branches()) s.add_zero(outputs);
      expect(difference({outputs, {}}, {s.expected, {}}, 0));
    };
    compare(run_eagerly(g.graph, s.inputs, s.start).outputs);
    way("gradient generated on the graph, planned");
    Executor executor(planned(g.graph, {.find_floor = false}));
    for (std::size_t i = 0; i < s.inputs.size(); ++i) executor.set_input(static_cast<int>(i), s.inputs[i]);
    const std::vector<std::string> names = executor.state_names();
    for (std::size_t i = 0; i < names.size(); ++i) executor.set_state(names[i], s.start[i]);
    executor.run();
    compare(executor.outputs());
  }

  const Builder& build_;
  const Harness& harness_;
  std::vector<Record> twin_;
  Subject subject_;
  std::string way_;
  int ways_ = 0;
};

}  // namespace

const std::vector<NamedPass>& legal_passes() {
  static const std::vector<NamedPass> passes = [] {
    std::vector<NamedPass> all;
    for (const Pass* pass : all_passes())
      if (!pass->asked_for) all.push_back({pass->name, [pass](const Graph& g) { return run_pass(*pass, g); }});
    return all;
  }();
  return passes;
}

Verdict check_agreement(const Builder& build, const Harness& harness) { return Ways(build, harness).check(); }

}  // namespace tapedeck::agree
