// Tests the predicted effect of computing a value again. The oracle inserts the clones into the graph and counts the live
// bytes of the result.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/check/checks.h>
#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tapedeck {
namespace {

// Copies the plan and runs the nodes of `rerun` again before `reader`. From `reader` on, all nodes read the clone of
// `value`. Values keep sharing the bytes they shared; a clone is computed in place of the clone of its original's operand,
// if that clone exists. Offsets do not matter here.
class WithClones {
 public:
  WithClones(const Plan& plan, ValueId value, const std::vector<NodeId>& rerun, NodeId reader)
      : plan_(plan), g_(plan.graph), rewriter_(plan.graph) {
    note(kNone, false);
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (n == reader) clone_all(value, rerun);
      rewriter_.copy(n);
      note(n, false);
    }
    place(reader);
  }

  Plan result;

 private:
  // Notes that the values and nodes added since the last call came from node n. kNone stands for inputs and state.
  void note(NodeId n, bool clone) {
    ValueId old = n == kNone ? 0 : g_.nodes[n].first_output;
    while (static_cast<ValueId>(source_.size()) < rewriter_.graph().value_count()) {
      (clone ? again_ : first_)[old] = static_cast<ValueId>(source_.size());
      source_.push_back(old++);
      is_clone_.push_back(clone);
    }
    if (n != kNone) scratch_.push_back(plan_.workspace[n]);
  }

  void clone_all(ValueId value, const std::vector<NodeId>& rerun) {
    for (const NodeId n : rerun) clone(n);
    const std::vector<ValueId> owner = bytes_owner(plan_);
    for (ValueId v = 0; v < g_.value_count(); ++v)
      if (owner[v] == value && first_.contains(v)) rewriter_.replace(v, again(v));
  }

  void clone(NodeId n) {
    std::vector<ValueId> in;
    for (const ValueId v : g_.inputs(g_.nodes[n])) in.push_back(again(v));
    rewriter_.clone(n, in, {});
    note(n, true);
  }

  // The clone of v if there is one. A window on a clone is itself cloned.
  ValueId again(ValueId v) {
    const Placement& p = plan_.values[v];
    if (!again_.contains(v) && p.reason == Reason::alias && again(p.other) != first_.at(p.other)) clone(g_.values[v].node);
    return again_.contains(v) ? again_.at(v) : first_.at(v);
  }

  void place(NodeId reader) {
    result.graph = rewriter_.finish();
    verify(result.graph);
    result.workspace = scratch_;
    result.external_bytes = plan_.external_bytes;
    for (std::size_t v = 0; v < source_.size(); ++v) {
      const Placement& old = plan_.values[source_[v]];
      Placement p = old;
      const bool later = is_clone_[v] || g_.values[source_[v]].node >= reader;
      if (p.other != kNone) p.other = later && again_.contains(p.other) ? again_.at(p.other) : first_.at(p.other);
      const bool shares = p.reason == Reason::alias || (p.reason == Reason::in_place && again_.contains(old.other));
      if (is_clone_[v] && !shares) p = {.where = Where::arena, .reason = Reason::temporary};
      if (is_clone_[v]) p.where = Where::arena;
      p.birth = old.birth == kNone && !is_clone_[v] ? kNone : result.graph.values[v].node;
      p.death = old.death >= g_.node_count() && !is_clone_[v] ? result.graph.node_count() : p.birth;
      result.values.push_back(p);
    }
    for (NodeId n = 0; n < result.graph.node_count(); ++n)
      for (const ValueId v : result.graph.inputs(result.graph.nodes[n]))
        result.values[v].death = std::max(result.values[v].death, n);
    for (std::size_t v = 0; v < source_.size(); ++v)  // a whole is alive from its first part on
      for (ValueId w = static_cast<ValueId>(v); result.values[w].reason == Reason::part; w = result.values[w].other)
        result.values[result.values[w].other].birth =
            std::min(result.values[result.values[w].other].birth, result.values[v].birth);
  }

  const Plan& plan_;
  const Graph& g_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> first_, again_;  // for each value of the plan: its first copy, and its clone
  std::vector<ValueId> source_;               // the value of the plan that each new value came from
  std::vector<bool> is_clone_;
  std::vector<Scratch> scratch_;
};

std::int64_t live_peak_of(const Plan& plan) {
  const std::vector<std::int64_t> live = live_bytes(plan);
  return *std::max_element(live.begin(), live.end());
}

std::vector<Plan> plans_under_budgets() {
  std::vector<Plan> plans;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    PlanOptions options;
    options.find_floor = false;
    if (seed % 3 == 0) options.budget_percent = 80;
    if (seed % 2) options.ordering = Ordering::recorded;
    plans.push_back(make_plan(test::RandomProgram(seed).graph(), options));
    plans.push_back(make_plan(test::RandomGraph(seed).make(40), options));
  }
  for (const char* model : {"unet", "lstm_lm", "mlp", "densenet121"}) {
    ModelOptions options;
    options.batch = 2;
    options.abstract = true;
    if (model == std::string("densenet121")) options.image = 32;
    plans.push_back(make_plan(record_model(*find_model(model), options).graph, {.find_floor = false}));
  }
  return plans;
}

NodeId next_reader(const Plan& plan, ValueId value, NodeId from) {
  const std::vector<ValueId> owner = bytes_owner(plan);
  for (NodeId n = from; n < plan.graph.node_count(); ++n)
    for (const ValueId v : plan.graph.inputs(plan.graph.nodes[n]))
      if (owner[v] == value) return n;
  return kNone;
}

TEST(Rerun, ThePeakSaidToBeLeftIsTheOneThatIsLeft) {
  int one = 0, several = 0, higher = 0, earlier = 0;
  for (const Plan& plan : plans_under_budgets()) {
    ASSERT_EQ(live_bytes(WithClones(plan, kNone, {}, kNone).result), live_bytes(plan)) << print(plan.graph);
    const PeakExplanation e = explain_peak(plan, {});
    for (const PeakTenant& t : e.alive) {
      if (!t.recomputable) continue;
      const NodeId reader = next_reader(plan, t.value, e.node);
      EXPECT_GT(t.rerun_before, e.node) << t.name;
      EXPECT_LE(t.rerun_before, reader) << t.name;
      const WithClones cloned(plan, t.value, t.rerun, t.rerun_before);
      EXPECT_EQ(t.peak_after, live_peak_of(cloned.result)) << t.name << ", " << t.advice << "\n"
                                                           << print(plan.graph) << "\n"
                                                           << print(cloned.result.graph);
      (t.rerun.size() == 1 ? one : several)++;
      higher += t.peak_after > e.live_bytes;
      earlier += t.rerun_before < reader;
    }
  }
  EXPECT_GT(one, 50);
  EXPECT_GT(several, 20);
  EXPECT_GT(higher, 0);
  EXPECT_GT(earlier, 0);
}

// %a is dead when %m is read, but alive until shortly before. %m can be computed again while %a is alive.
TEST(Rerun, IsDoneWhileWhatItNeedsIsThere) {
  const Plan plan = make_plan(parse(R"(graph g(%x: u8[200]) {
    %a: u8[1000] = opaque(%x) {us=7.0}
    %m: u8[400] = opaque(%a) {us=1.0}
    %big: u8[3000] = opaque(%x) {us=50.0}
    %c: u8[8] = opaque(%big) {us=1.0}
    %d: u8[8] = opaque(%a, %c) {us=1.0}
    %f: u8[8] = opaque(%d) {us=1.0}
    %e: u8[8] = opaque(%m, %f) {us=1.0}
    return %e
  })",
                                    "g"),
                              {.ordering = Ordering::recorded});
  const PeakExplanation e = explain_peak(plan, {7, 1, 50, 1, 1, 1, 1});
  const auto m = std::find_if(e.alive.begin(), e.alive.end(), [](const PeakTenant& t) { return t.name == "%m"; });
  ASSERT_NE(m, e.alive.end());
  EXPECT_EQ(m->rerun, std::vector<NodeId>{1});
  EXPECT_EQ(m->rerun_before, 4);
  EXPECT_EQ(m->recompute_us, 1);
  EXPECT_EQ(m->peak_after, e.live_bytes - 400);
  EXPECT_NE(m->advice.find("made again from 1 node (1.0 us) just before node 4, while what it needs is there"),
            std::string::npos)
      << m->advice;
}

// %p, %a and %k are alive at the same time while %a is computed again.
TEST(Rerun, WhatIsMadeOnTheWayCounts) {
  const Plan plan = make_plan(parse(R"(graph g(%x: u8[200]) {
    %p: u8[3000] = opaque(%x) {us=1.0}
    %a: u8[1000] = opaque(%p) {us=1.0}
    %big: u8[4000] = opaque(%x) {us=1.0}
    %c: u8[8] = opaque(%big) {us=1.0}
    %k: u8[2500] = opaque(%c) {us=1.0}
    %e: u8[8] = opaque(%a, %k) {us=1.0}
    return %e
  })",
                                    "g"),
                              {.ordering = Ordering::recorded});
  const PeakExplanation e = explain_peak(plan, {});
  EXPECT_EQ(e.live_bytes, 208 + 1000 + 4000 + 8);
  const auto a = std::find_if(e.alive.begin(), e.alive.end(), [](const PeakTenant& t) { return t.name == "%a"; });
  ASSERT_NE(a, e.alive.end());
  EXPECT_EQ(a->rerun, (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(a->peak_after, 208 + 3000 + 1000 + 2500);
  EXPECT_NE(a->advice.find("6708 bytes, 1492 more: so much is alive while it is made again"), std::string::npos) << a->advice;
}

}  // namespace
}  // namespace tapedeck
