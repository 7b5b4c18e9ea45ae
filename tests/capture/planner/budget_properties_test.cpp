// Tests what must hold for every plan under a budget, on 1,000 random programs of 10 to 60 nodes with 16 budgets each, from one
// byte below the floor to the peak of the plan that keeps all. All budgets of a program are asked of one PlanSearch. A failure
// names the seed of its program.
#include <tapedeck/tests/capture/byte_simulation.h>
#include <tapedeck/tests/capture/planner/rematerialize/strategy_checks.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

// ---- the programs ----

struct Program {
  Graph graph;
  std::vector<Tensor> inputs, state;
  std::vector<std::shared_ptr<const void>> held;          // the functions that it calls on the host
  std::shared_ptr<int> calls = std::make_shared<int>(0);  // how often they were called
};

Program from_graph(Graph graph) {
  Program p;
  p.inputs = stand_ins(graph, 0, graph.n_inputs, 0);
  p.state = stand_ins(graph, graph.n_inputs, graph.n_state, 7);
  p.graph = std::move(graph);
  return p;
}

struct Net : Module {
  BatchNorm1d norm{*this, "norm", 4};
};

// A recorded training step with its gradients: products, dropout, batch norm, a loop, regions, a statistic that is written in
// place, and calls of the host.
class RecordedStep {
 public:
  explicit RecordedStep(unsigned seed) : random_(seed) {
    manual_seed(seed);
    w_ = normal({4, 4});
    w_.name("w").role(Role::parameter).requires_grad(true);
    sum_ = zeros({4, 4});
    sum_.name("sum").role(Role::statistic);
  }

  Program record() {
    Program p;
    calls_ = p.calls;
    Tensor sample = normal({4, 4});
    Capture scope("step");
    Tensor h = scope.input("x", sample);
    h = tanh(matmul(h, w_));
    for (int i = 0, n = 2 + below(4); i < n; ++i) h = layer(h);
    const Tensor loss = sum(h * h);
    backward(loss);
    scope.output("loss", loss);
    if (w_.grad().defined()) scope.output("g", w_.grad());
    Captured captured = scope.finish();
    p.graph = std::move(captured.graph);
    p.inputs = {sample};
    for (const Tensor& t : captured.state) p.state.push_back(copied(t));
    p.held = std::move(captured.held);
    return p;
  }

 private:
  static Tensor copied(const Tensor& t) {
    const NoGrad no_grad;
    return from_bytes(t.type(), contiguous(t).data());
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  Tensor layer(const Tensor& h) {
    switch (below(9)) {
      case 0:
        return dropout(h, 0.25);
      case 1:
        return net_.norm(h);
      case 2:
        return scan([&](const std::vector<Tensor>& c) { return std::vector<Tensor>{tanh(c[0] * c[1])}; }, {h}, {w_}).carried[0];
      case 3:
        return checkpoint([&] { return tanh(keep_here([&] { return matmul(h, w_); }) * h); });
      case 4:
        return on_host(h, [calls = calls_](const Tensor&) { ++*calls; });
      case 5:
        add_(sum_, h.detach());
        return h * w_;
      case 6:
        return sigmoid(h) + sin(h);
      default:
        return tanh(matmul(h, w_));
    }
  }

  std::mt19937 random_;
  Net net_;
  Tensor w_, sum_;
  std::shared_ptr<int> calls_;
};

constexpr const char* kKinds[] = {"all features", "training", "replayed", "chain", "recorded"};

Program program_of(unsigned kind, unsigned seed) {
  switch (kind) {
    case 0:
      return from_graph(test::RandomProgram(seed, 58).graph());
    case 1:
      return from_graph(test::random_training(seed, 3 + static_cast<int>(seed % 17)));
    case 2:
      return from_graph(test::RandomGraph(seed).make(10 + static_cast<int>(seed % 50)));
    case 3:
      return from_graph(test::there_and_back(seed));
    default:
      return RecordedStep(seed).record();
  }
}

// The first program of its kind from this seed on that has 10 to 60 nodes.
Program program_of(unsigned seed) {
  for (unsigned s = seed;; s += 1'000'000)
    if (Program p = program_of(seed % 5, s); p.graph.node_count() >= 10 && p.graph.node_count() <= 60) return p;
}

// ---- what must hold ----

// The plan's graph without one clone. Its readers read the run before it. Clones that no node reads then are removed, too.
Graph without_clone(const Graph& from, NodeId clone, const std::map<ValueId, ValueId>& run_before) {
  Graph g = from;
  for (Node& node : g.nodes) node.n_after = 0;  // order edges say when a clone runs
  Rewriter rewriter(g);
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (n != clone) {
      rewriter.copy(n);
      continue;
    }
    for (ValueId v = g.nodes[n].first_output; v < g.nodes[n].first_output + g.nodes[n].n_outputs; ++v)
      rewriter.replace(v, rewriter.at(run_before.at(v)));
  }
  const Graph rest = rewriter.finish();
  std::vector<char> read(rest.values.size(), 0);
  for (ValueId v : rest.outputs) read[v] = 1;
  for (const Update& u : rest.updates) read[u.value] = 1;
  std::vector<char> unread(rest.nodes.size(), 0);
  for (NodeId n = rest.node_count(); n-- > 0;) {
    const Node& node = rest.nodes[n];
    unread[n] = node.origin.clone;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) unread[n] &= !read[v];
    if (unread[n]) continue;
    for (ValueId v : rest.inputs(node)) read[v] = 1;
  }
  Rewriter shorter(rest);
  for (NodeId n = 0; n < rest.node_count(); ++n)
    if (!unread[n]) shorter.copy(n);
  return shorter.finish();
}

// The plan's graph, where each view that has bytes of its own is an operation that no rule of views and no takeover concerns.
Graph views_to_copies(const Plan& plan) {
  Graph g = plan.graph;
  const OpaqueAttrs attrs;
  const Node copy = g.nodes[g.add_node(*find_op("opaque"), {}, &attrs, {})];
  g.nodes.pop_back();  // its attributes stay in the pool
  for (Node& node : g.nodes) {
    if (!node.op->is(kView) || plan.values[node.first_output].reason == Reason::alias) continue;
    node.op = copy.op;
    node.attrs = copy.attrs;
  }
  return g;
}

class ProgramUnderBudgets {
 public:
  ProgramUnderBudgets(const Program& program, PlanOptions options)
      : program_(program), options_(std::move(options)), search_(program.graph, options_) {}

  void check() {
    const std::int64_t floor = search_.floor(), peak = search_.keep_all_peak();
    ASSERT_LE(floor, peak);
    ASSERT_NO_FATAL_FAILURE(check_infeasible(search_.plan(floor - 1)));
    const int calls_before = *program_.calls;
    eager_ = run_eagerly(program_.graph, program_.inputs, program_.state);
    calls_in_step_ = *program_.calls - calls_before;
    Plan last = search_.plan(peak);
    ASSERT_EQ(last.recomputed_nodes, 0) << "what the keep-all peak holds needs no clone";
    ASSERT_NO_FATAL_FAILURE(check_plan_itself(last));
    for (int i = 13; i >= 0; --i) {
      const std::int64_t budget = floor + (peak - floor) * i / 14;
      Plan plan = search_.plan(budget);
      ASSERT_TRUE(plan.feasible) << budget << " is not below the floor " << floor;
      ASSERT_LE(plan.peak_bytes, budget);
      ASSERT_EQ(plan.floor_bytes, floor);
      ASSERT_GE(plan.cost_us, last.cost_us) << "a larger budget costs more";
      ASSERT_TRUE(last.peak_bytes > budget || last.cost_us == plan.cost_us) << "the cheaper plan of a larger budget fits";
      ASSERT_GE(plan.cost_us * (1 + 1e-9), plan.cost_lower_bound_us);
      if (print(plan.graph) == print(last.graph) && plan.peak_bytes == last.peak_bytes) continue;
      ASSERT_NO_FATAL_FAILURE(check_plan_itself(plan));
      with_spare_clones_ += can_do_without_a_clone(plan, budget);
      last = std::move(plan);
      ++plans_;
    }
  }

  int plans() const { return plans_; }    // different ones
  int clones() const { return clones_; }  // in these plans
  int with_spare_clones() const { return with_spare_clones_; }

 private:
  void check_infeasible(const Plan& plan) {
    if (plan.feasible) {
      ASSERT_LE(plan.peak_bytes, search_.floor() - 1) << "the floor is no floor";
      FAIL() << "a budget below the floor is met";
    }
    const InfeasiblePlanError error("", plan);
    ASSERT_EQ(error.floor_bytes(), search_.floor());
    ASSERT_EQ(plan.peak_bytes, search_.floor()) << "the lowest plan is shown";
    ASSERT_NE(plan.infeasible_reason.find(fmt::format("the floor is {} bytes", plan.floor_bytes)), std::string::npos);
    if (plan.graph.nodes.empty()) return;
    ASSERT_EQ(error.node_bytes(), plan.lower_bound_bytes) << "the node with the most live bytes";
    ASSERT_NE(plan.infeasible_reason.find(error.node_op() + "("), std::string::npos) << plan.infeasible_reason;
    ASSERT_NE(plan.infeasible_reason.find(fmt::format("{} bytes are alive", plan.lower_bound_bytes)), std::string::npos);
    ASSERT_NO_FATAL_FAILURE(check_named_tensors(plan, error.node()));
  }

  // The largest value in the arena that the node reads or makes is named, unless larger ones leave no room for it.
  static void check_named_tensors(const Plan& plan, const std::string& node_name) {
    const Graph& g = plan.graph;
    ValueId largest = kNone;
    for (const Node& node : g.nodes) {
      if (node.n_outputs == 0 || g.value_name(node.first_output) != node_name) continue;
      std::vector<ValueId> all(g.inputs(node).begin(), g.inputs(node).end());
      for (std::int32_t i = 0; i < node.n_outputs; ++i) all.push_back(node.first_output + i);
      for (ValueId v : all)
        if (plan.values[v].where == Where::arena && plan.values[v].reason != Reason::alias &&
            plan.values[v].reason != Reason::part &&
            (largest == kNone || g.values[v].type.bytes() > g.values[largest].type.bytes()))
          largest = v;
    }
    if (largest == kNone || plan.infeasible_reason.find(" more") != std::string::npos) return;
    const std::string wanted = fmt::format("%{} {} bytes", g.value_name(largest), g.values[largest].type.bytes());
    ASSERT_NE(plan.infeasible_reason.find(wanted), std::string::npos) << plan.infeasible_reason << "\nlacks " << wanted;
  }

  void check_plan_itself(const Plan& plan) {
    ASSERT_EQ(check_plan(plan), std::vector<std::string>()) << print(plan.graph);
    ASSERT_EQ(check_clones(plan), std::vector<std::string>()) << print(plan.graph);
    ASSERT_EQ(test::ByteSimulation(plan).run(static_cast<unsigned>(plan.peak_bytes)), "") << print(plan.graph);
    ASSERT_EQ(test::nodes_that_nobody_reads(plan.graph), std::vector<std::string>()) << print(plan.graph);
    ASSERT_NO_FATAL_FAILURE(check_log(plan));
    ASSERT_NO_FATAL_FAILURE(check_replay(plan));
  }

  // Every value has one line, and the lines of nodes with effects say that they run once.
  void check_log(const Plan& plan) {
    log_ = value_log(plan, cost_nodes(plan.graph, nullptr).us);
    std::set<ValueId> told;
    for (const ValueEntry& e : log_) {
      ASSERT_FALSE(e.rule.empty()) << e.name;
      for (const ValueId v : e.copies) ASSERT_TRUE(told.insert(v).second) << e.name << " has two lines";
      if (e.first_maker() == kNone || !plan.graph.nodes[e.first_maker()].op->is(kEffect)) continue;
      ASSERT_EQ(e.runs.size(), 1u) << e.name;
    }
    ASSERT_EQ(told.size(), plan.graph.values.size());
  }

  // The bits of an eager run, state and gradients included, effects as often as there, and the planned peak.
  void check_replay(const Plan& plan) {
    const int threads = plans_ % 2 ? 2 : 1;
    Executor executor(plan, {.threads = threads});
    set_all(executor, program_.inputs, program_.state);
    const int before = *program_.calls;
    executor.run();
    ASSERT_EQ(*program_.calls - before, calls_in_step_) << "effects run once";
    expect_equal(executor, eager_, fmt::format("{} threads", threads));
    ASSERT_EQ(executor.observed_peak_bytes(), plan.peak_bytes);
  }

  // Whether the plan fits the budget without one of its clones, and without the clones that only this one reads. A plan below
  // the floor is never taken, and clones of views cost nothing. A view that is copied stays a copy: whether views are copied is
  // decided once for a view and its clones, by the readers of all of them.
  bool can_do_without_a_clone(const Plan& plan, std::int64_t budget) {
    const Graph with_copies = views_to_copies(plan);
    std::map<ValueId, ValueId> run_before;
    for (const ValueEntry& e : log_)
      for (std::size_t i = 1; i < e.copies.size(); ++i) run_before[e.copies[i]] = e.copies[i - 1];
    PlanOptions how = options_;
    how.strategy = Strategy::none;
    how.ordering = Ordering::recorded;
    how.level = OptimizationLevel::none;
    how.find_floor = false;
    const double values = static_cast<double>(plan.graph.value_count());
    how.place_work = static_cast<std::int64_t>(values * values * values * values / 30'000);  // as the plan had
    for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
      if (!plan.graph.nodes[n].origin.clone || plan.graph.nodes[n].op->is(kView)) continue;
      ++clones_;
      const Graph shorter = without_clone(with_copies, n, run_before);
      const Facts facts = collect_facts(shorter);
      if (facts.external_bytes + peak_without_clones(facts) > budget) continue;
      const std::int64_t peak = make_plan(shorter, how).peak_bytes;
      if (peak <= budget && peak >= plan.floor_bytes) return true;
    }
    return false;
  }

  const Program& program_;
  const PlanOptions options_;
  PlanSearch search_;
  EagerResult eager_;
  std::vector<ValueEntry> log_;
  int calls_in_step_ = 0;
  int plans_ = 0, clones_ = 0, with_spare_clones_ = 0;
};

#ifdef TAPEDECK_SANITIZED
constexpr unsigned kPrograms = 100, kShards = 20;  // of each kind one for a shard; the release build runs all
#else
constexpr unsigned kPrograms = 1000, kShards = 20;
#endif

class BudgetProperties : public ::testing::TestWithParam<unsigned> {};

TEST_P(BudgetProperties, Hold) {
  int plans = 0, clones = 0, with_spare_clones = 0;
  for (unsigned k = 0; k < kPrograms / kShards; ++k) {
    const unsigned seed = GetParam() * (kPrograms / kShards) + k;
    SCOPED_TRACE(fmt::format("seed {} ({})", seed, kKinds[seed % 5]));
    const Program program = program_of(seed);
    PlanOptions options;
    options.alignment = seed % 3 == 0 ? -1 : 1;
    options.segment_us = seed % 4 == 0 ? 0 : 50;
    ProgramUnderBudgets under(program, options);
    under.check();
    if (HasFatalFailure()) return;
    plans += under.plans();
    clones += under.clones();
    with_spare_clones += under.with_spare_clones();
  }
  EXPECT_GT(plans, static_cast<int>(kPrograms / kShards / 5)) << "the budgets make a difference";
  fmt::print("{} different plans, {} clones\n", plans, clones);
  EXPECT_EQ(with_spare_clones, 0) << "the budget holds without a clone of the plan";
  EXPECT_GT(clones, static_cast<int>(kPrograms / kShards / 5));
}

INSTANTIATE_TEST_SUITE_P(Shards, BudgetProperties, ::testing::Range(0u, kShards));

}  // namespace
}  // namespace tapedeck
