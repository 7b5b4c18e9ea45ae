// Tests the decision log of plans against recounts node by node, and the rules of small plans.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace tapedeck {
namespace {

using testing::mentions;
using testing::message_of;

std::vector<ValueEntry> log_of(const Plan& plan, const std::vector<Wish>& wishes = {}) {
  return value_log(plan, cost_nodes(plan.graph, nullptr).us, wishes);
}

// The node that n repeats, by the name in its notes.
NodeId repeated_by(const Graph& g, NodeId n) {
  for (NodeId m = 0; m < g.node_count(); ++m)
    if (!g.nodes[m].origin.clone && g.nodes[m].n_outputs > 0 &&
        g.value_name(g.nodes[m].first_output) == g.nodes[n].origin.of.str())
      return m;
  return kNone;
}

std::set<NodeId> direct_readers(const Graph& g, ValueId v) {
  std::set<NodeId> readers;
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (const ValueId u : g.inputs(g.nodes[n]))
      if (u == v) readers.insert(n);
  return readers;
}

// Counts the readers of the value and of its views. The readers of a view are the nodes that name it as an operand.
std::set<NodeId> all_readers(const Plan& plan, ValueId v) {
  std::set<NodeId> readers = direct_readers(plan.graph, v);
  if (plan.values[v].reason == Reason::alias) return readers;
  for (ValueId u = 0; u < plan.graph.value_count(); ++u) {
    ValueId seen = u;
    while (plan.values[seen].reason == Reason::alias) seen = plan.values[seen].other;
    if (seen == v) readers.merge(direct_readers(plan.graph, u));
  }
  return readers;
}

// Each value is one copy of one entry; what the entries say adds up to what the plan says.
void expect_recount(const Plan& plan) {
  const std::vector<ValueEntry> log = log_of(plan);
  std::map<ValueId, const ValueEntry*> entry_of;
  std::size_t copies = 0, again = 0;
  double us = 0, more_us = 0;
  for (const ValueEntry& e : log) {
    copies += e.copies.size();
    std::set<NodeId> readers;
    for (const ValueId v : e.copies) {
      entry_of[v] = &e;
      EXPECT_EQ(plan.graph.values[v].type.bytes(), e.bytes);
      readers.merge(all_readers(plan, v));
    }
    EXPECT_EQ(std::set<NodeId>(e.readers.begin(), e.readers.end()), readers) << e.name << "\n" << print(plan.graph);
    EXPECT_TRUE(std::is_sorted(e.readers.begin(), e.readers.end()));
    EXPECT_FALSE(e.rule.empty()) << e.name;
    if (e.choice != ValueChoice::elsewhere) {
      EXPECT_EQ(e.choice == ValueChoice::recomputed, e.runs.size() > 1) << e.name;
    }
    if (e.result != 0 || e.runs.empty()) continue;
    again += e.runs.size() - 1;
    us += e.us * static_cast<double>(e.runs.size());
    more_us += e.again_us();
  }
  EXPECT_EQ(copies, plan.graph.values.size());
  EXPECT_EQ(entry_of.size(), plan.graph.values.size());
  EXPECT_EQ(again, static_cast<std::size_t>(plan.recomputed_nodes)) << print(plan.graph);
  EXPECT_NEAR(us, plan.cost_us, 1e-6 * plan.cost_us) << print(plan.graph);
  EXPECT_NEAR(more_us, plan.cost_us - plan.keep_all_cost_us, 1e-6 * plan.cost_us) << print(plan.graph);
  for (NodeId n = 0; n < plan.graph.node_count(); ++n) {
    const NodeId first = plan.graph.nodes[n].origin.clone ? repeated_by(plan.graph, n) : n;
    ASSERT_NE(first, kNone);
    for (std::int32_t i = 0; i < plan.graph.nodes[n].n_outputs; ++i)
      EXPECT_EQ(entry_of.at(plan.graph.nodes[n].first_output + i), entry_of.at(plan.graph.nodes[first].first_output + i));
  }
}

TEST(ValueLog, AddsUpToThePlan) {
  int recomputed = 0;
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (const double percent : {85.0, 60.0}) {
      for (const Graph& graph :
           {test::RandomProgram(seed).graph(), test::RandomGraph(seed).make(30), test::there_and_back(seed)}) {
        const Plan plan = make_plan(graph, {.budget_percent = percent});
        expect_recount(plan);
        recomputed += plan.recomputed_nodes;
        if (::testing::Test::HasFailure()) return;
      }
    }
  EXPECT_GT(recomputed, 10);
}

const ValueEntry& entry(const std::vector<ValueEntry>& log, const Plan& plan, const char* name) {
  return find_entry(log, plan, name);
}

TEST(ValueLog, SaysTheRuleOfEachValue) {
  const Plan plan = make_plan(parse(R"(graph g(%x: f32[1000]) state(%w: f32[4]) {
    %c: f32[4] = constant() {value=[1.0,2.0,3.0,4.0]}
    %a: f32[1000] = exp(%x)
    %v: f32[10,100] = reshape(%a) {shape=[10,100]}
    %b: f32[1000] = tanh(%a)
    %unread: f32[7], %big: f32[3000] = opaque(%b) {us=9.0}
    %s: f32[4] = opaque(%big) {us=1.0}
    %w2: f32[4] = opaque(%w, %s) {us=1.0}
    %t: f32[4] = opaque(%a, %v, %c, %w2) {us=1.0}
    %late: f32[4] = opaque(%t) {us=1.0}
    %r: f32[4] = opaque(%late) {us=1.0}
    return %r
    update %w = %w2
  })",
                                    "g"),
                              {.level = OptimizationLevel::none, .ordering = Ordering::recorded});
  const std::vector<ValueEntry> log = log_of(plan);
  const auto rule = [&](const char* name) { return entry(log, plan, name).rule; };
  EXPECT_EQ(rule("x"), "an input: the caller holds it");
  EXPECT_EQ(rule("w"), "state: it is there before and after the step");
  EXPECT_EQ(rule("c"), "a constant");
  EXPECT_EQ(rule("v"), "a view of %a: it has no bytes of its own");
  EXPECT_EQ(rule("r"), "a result of the graph: it is handed to the caller");
  EXPECT_EQ(rule("unread"), "kept: nobody reads it, so its bytes are free at once");
  EXPECT_EQ(rule("a"), "kept across the peak: this plan recomputes nothing");
  EXPECT_EQ(rule("big"), "kept: a node at the peak makes or reads it");
  EXPECT_EQ(rule("late"), "kept: nobody needs its bytes at the peak");
  EXPECT_EQ(entry(log, plan, "a").readers, (std::vector<NodeId>{2, 3, 7}));
  EXPECT_EQ(entry(log, plan, "big").result, 1);
}

TEST(ValueLog, NamesTheWishBehindAChoice) {
  const std::vector<Wish> wishes = {{WishKind::recompute, "a1"}, {WishKind::keep, "a2"}};
  const Plan plan = make_plan(test::chain(4, 100), {.wishes = wishes});
  const std::vector<ValueEntry> log = log_of(plan, wishes);
  EXPECT_EQ(entry(log, plan, "a1").rule, "made again: wished for by `--recompute a1`");
  EXPECT_EQ(entry(log, plan, "a1").choice, ValueChoice::recomputed);
  EXPECT_EQ(entry(log, plan, "a2").rule, "kept: wished for by `--keep a2`");
}

TEST(ValueLog, FindsAValueByTheNameOfACopyAndSuggestsNearNames) {
  const Plan plan = make_plan(test::chain(4, 100), {.wishes = {{WishKind::recompute, "a1"}}});
  const std::vector<ValueEntry> log = log_of(plan);
  const ValueEntry& a1 = entry(log, plan, "a1");
  ASSERT_EQ(a1.copies.size(), 2u);
  EXPECT_EQ(&entry(log, plan, plan.graph.value_name(a1.copies[1]).c_str()), &a1);
  EXPECT_TRUE(mentions(message_of<UsageError>([&] { find_entry(log, plan, "aa1"); }), "did you mean 'a1'?"));
}

TEST(ValueLog, TheTableHasTheLargestValuesFirst) {
  const Plan plan = make_plan(test::there_and_back(3));
  const std::string text = value_log_text(log_of(plan), 3);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_TRUE(mentions(text, "more; --json has all of them")) << text;
  EXPECT_FALSE(mentions(value_log_text(log_of(plan), -1), "more;"));
}

}  // namespace
}  // namespace tapedeck
