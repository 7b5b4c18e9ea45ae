// Tests the table of bytes that each sharing rule saves. Each row must use the same search effort and the same threads as
// the plan that is shown, so that only the rule makes the difference.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/explain/sharing_bounds.h>
#include <tapedeck/capture/planner/order/find_order.h>
#include <tapedeck/capture/planner/order/order_like.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck {
namespace {

Graph model(const char* name, std::int64_t image) {
  ModelOptions options;
  options.abstract = true;
  options.batch = 1;
  if (image > 0) options.image = image;
  return record_model(*find_model(name), options).graph;
}

void check_rows(const std::vector<SharingBound>& bounds, const Plan& shown) {
  ASSERT_FALSE(bounds.empty());
  EXPECT_EQ(bounds[0].lower_bound_bytes, shown.lower_bound_bytes);
  EXPECT_EQ(bounds[0].peak_bytes, shown.peak_bytes);
  EXPECT_EQ(bounds[0].tight_peak_bytes, shown.segment_rule.tight_peak_bytes);
  for (const SharingBound& b : bounds) {
    EXPECT_GE(b.tight_peak_bytes, b.lower_bound_bytes) << b.rules;
    EXPECT_TRUE(shown.threads > 1 || b.peak_bytes == b.tight_peak_bytes) << b.rules;
  }
  const std::size_t least = bounds[1].rules == "least found";  // no later row may be below a row with more rules
  EXPECT_TRUE(least == 0 || bounds[1].lower_bound_bytes < bounds[0].lower_bound_bytes ||
              bounds[1].tight_peak_bytes < bounds[0].tight_peak_bytes);
  for (std::size_t i = least; i < bounds.size(); ++i)
    for (std::size_t k = least; k < bounds.size(); ++k) {
      if (!has(bounds[i].sharing, bounds[k].sharing)) continue;
      EXPECT_LE(bounds[i].lower_bound_bytes, bounds[k].lower_bound_bytes) << bounds[i].rules << " and " << bounds[k].rules;
      EXPECT_LE(bounds[i].tight_peak_bytes, bounds[k].tight_peak_bytes) << bounds[i].rules << " and " << bounds[k].rules;
    }
}

TEST(SharingBounds, AllIsThePlanThatIsShown) {
  for (const char* name : {"squeezenet", "resnet18", "mlp"})
    for (const int threads : {1, 4}) {
      SCOPED_TRACE(std::string(name) + ", threads: " + std::to_string(threads));
      const Graph g = model(name, std::string(name) == "mlp" ? 0 : 96);
      PlanOptions options;
      options.threads = threads;
      const Plan plan = make_plan(g, options);
      const std::vector<SharingBound> bounds = sharing_bounds(g, options, &plan);
      check_rows(bounds, plan);
      check_rows(sharing_bounds(g, options), plan);
    }
}

// The table is about plans without recomputation, even if the plan that is shown recomputes.
TEST(SharingBounds, NothingIsRecomputed) {
  const Graph g = test::chain(12, 1000);
  const Plan kept = make_plan(g);
  PlanOptions options;
  options.budget_percent = 60;
  const Plan plan = make_plan(g, options);
  ASSERT_GT(plan.recomputed_nodes, 0);
  const std::vector<SharingBound> bounds = sharing_bounds(g, options, &plan);
  EXPECT_EQ(bounds[0].peak_bytes, plan.keep_all_peak_bytes);
  check_rows(bounds, kept);
}

TEST(SharingBounds, MarksOfTheProgramRecomputeNothingThere) {
  const Graph g = test::there_and_back(1);
  Graph marked = g;
  for (Node& node : marked.nodes) node.origin.wish = NodeWish::recompute;
  const Plan plan = make_plan(marked);
  ASSERT_GT(plan.recomputed_nodes, 0);
  check_rows(sharing_bounds(marked, {}, &plan), make_plan(g));
}

TEST(SharingBounds, HoldForAnyGraph) {
  for (unsigned seed = 1; seed <= 40; ++seed)
    for (const Graph& g : {test::RandomProgram(seed).graph(), test::RandomGraph(seed).make(25)}) {
      SCOPED_TRACE(seed);
      const PlanOptions keep_all{.strategy = Strategy::none};
      const Plan plan = make_plan(g, keep_all);
      check_rows(sharing_bounds(g, keep_all, &plan), plan);
    }
}

// ---- order_like: gives a graph the order of another graph ----

// Names the nodes that have a place of their own in an order. Copies for updates have no name, and windows and constants
// follow their readers, so all these are left out.
std::vector<std::string> turns_in(const Graph& g) {
  const Facts facts = collect_facts(g);
  std::vector<std::string> names;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    if (node.n_outputs == 0 || facts.is_window(n) || g.literal(node) || g.values[node.first_output].name.empty()) continue;
    names.push_back(g.value_name(node.first_output));
  }
  return names;
}

TEST(OrderLike, IsAnOrderAndThatOfTheOther) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Graph captured = test::RandomProgram(seed).graph();
    PassRunner passes;
    const Graph all = prepare(captured, &passes), few = prepare(captured, &passes, Sharing::none);
    const Facts facts = collect_facts(all), bare = collect_facts(few, nullptr, Sharing::none);
    const NodeOrder found = find_order(facts, all, own_sources(all));
    const Graph searched = found.nodes.empty() ? all : reorder(all, found.nodes);
    const Graph again = reorder(all, order_like(facts, searched, false));
    verify(again);
    EXPECT_EQ(turns_in(again), turns_in(searched)) << print(searched) << print(again);
    verify(reorder(few, order_like(bare, searched, false)));
  }
}

}  // namespace
}  // namespace tapedeck
