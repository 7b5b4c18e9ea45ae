// Tests the search that chooses an order of nodes and the parts in place together. The oracles are every order with every
// choice of parts (brute force) and the list schedules. Other tests look at plans that use the result.
#include <tapedeck/capture/planner/joins/join_orders.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/joins/join_choice.h>
#include <tapedeck/capture/planner/order/list_schedules.h>
#include <tapedeck/capture/planner/order/local_search.h>
#include <tapedeck/capture/planner/order/set_search.h>
#include <tapedeck/capture/planner/order/stretch_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/capture/random_graph.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

// A random program on rows: nodes join, cut, add and pass on rows. Each row that no node reads is summed and returned.
Graph random_rows(std::uint64_t seed, int nodes) {
  test::Dice dice{seed * 0x9E3779B97F4A7C15u + 7};
  struct Row {
    std::string name;
    std::int64_t size;
    bool is_read;
  };
  std::vector<Row> rows = {{"x", 64, true}};
  std::string body;
  const auto define = [&](std::int64_t size, const std::string& text) {
    rows.push_back({fmt::format("v{}", rows.size()), size, false});
    body += fmt::format("  %{}: f32[{}] = {}\n", rows.back().name, size, text);
  };
  const auto any = [&]() -> Row& { return rows[dice.below(static_cast<std::int64_t>(rows.size()))]; };
  while (static_cast<int>(rows.size()) <= nodes) {
    Row& a = any();
    const std::int64_t kind = dice.below(8), size = a.size;
    const std::string name = a.name;
    if (kind < 3) {
      std::set<std::string> joined = {name};
      std::int64_t total = size;
      for (std::int64_t k = 1 + dice.below(2); k > 0; --k) {
        Row& b = any();
        if (!joined.insert(b.name).second) continue;
        total += b.size;
        b.is_read = true;
      }
      if (joined.size() < 2 || total > 1024) continue;
      a.is_read = true;
      define(total, fmt::format("concat(%{}) {{axis=0}}", fmt::join(joined, ", %")));
      continue;
    }
    a.is_read = true;
    if (kind == 3 && size > 64)
      define(size / 2, fmt::format("slice(%{}) {{starts=[0], stops=[{}]}}", name, size / 2));
    else if (kind == 4)
      define(size, fmt::format("cumsum(%{}) {{axis=0}}", name));
    else if (kind == 5)
      define(size, fmt::format("mul(%{0}, %{0})", name));
    else
      define(size, fmt::format("tanh(%{})", name));
  }
  std::string results;
  for (const Row& row : rows) {
    if (row.is_read) continue;
    body += fmt::format("  %o{0}: f32[] = sum(%{0}) {{axes=[0], keepdims=false}}\n", row.name);
    results += fmt::format("{}%o{}", results.empty() ? "" : ", ", row.name);
  }
  PassRunner passes;
  return prepare(parse("graph rows(%x: f32[64]) {\n" + body + "  return " + results + "\n}\n", "rows"), &passes);
}

// Lists every order of the graph's nodes. The list is empty if there are more than `most` orders.
class AllOrders {
 public:
  AllOrders(const Graph& graph, std::size_t most) : graph_(graph), most_(most), done_(graph.nodes.size(), 0) { extend(); }
  std::vector<std::vector<NodeId>> orders() && {
    return orders_.size() > most_ ? std::vector<std::vector<NodeId>>{} : std::move(orders_);
  }

 private:
  void extend() {
    if (orders_.size() > most_) return;
    if (now_.size() == done_.size()) orders_.push_back(now_);
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      const auto inputs = graph_.inputs(graph_.nodes[n]);
      if (done_[n] || std::any_of(inputs.begin(), inputs.end(),
                                  [&](ValueId v) { return graph_.values[v].node != kNone && !done_[graph_.values[v].node]; }))
        continue;
      done_[n] = 1;
      now_.push_back(n);
      extend();
      now_.pop_back();
      done_[n] = 0;
    }
  }

  const Graph& graph_;
  const std::size_t most_;
  std::vector<char> done_;
  std::vector<NodeId> now_;
  std::vector<std::vector<NodeId>> orders_;
};

// The least peak of this order over every choice of parts.
std::int64_t least_peak_of_choices(const Graph& graph, const std::vector<PartPlace>& places, std::size_t at,
                                   PartChoice* choice) {
  if (at == places.size()) {
    const Facts facts = collect_facts(graph);
    return peak_without_clones(with_chosen(Readers(graph), facts, *choice));
  }
  std::int64_t least = least_peak_of_choices(graph, places, at + 1, choice);
  if ((*choice)[places[at].part] != kNone) return least;
  (*choice)[places[at].part] = places[at].whole;
  least = std::min(least, least_peak_of_choices(graph, places, at + 1, choice));
  (*choice)[places[at].part] = kNone;
  return least;
}

std::int64_t least_peak(const Graph& graph, const std::vector<std::vector<NodeId>>& orders) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<NodeId>& order : orders) {
    const Graph in_order = reorder(graph, order);
    PartChoice choice(in_order.values.size(), kNone);
    least =
        std::min(least, least_peak_of_choices(in_order, part_places(Readers(in_order), collect_facts(in_order)), 0, &choice));
  }
  return least;
}

JoinedOrder least_apart(const Facts& facts) {
  const NodeOrder found = find_order(facts, *facts.graph, own_sources(*facts.graph));
  return {found.name, found.nodes, PartChoice(facts.graph->values.size(), kNone), found.live_peak};
}

std::int64_t peak_of(const JoinedOrder& order, const Graph& graph) {
  const std::vector<NodeId> nodes = order.nodes.empty() ? own_sources(graph) : order.nodes;
  const Graph in_order = reorder(graph, nodes);
  verify(in_order);
  return peak_without_clones(
      with_chosen(Readers(in_order), collect_facts(in_order), move_choice(order.parts, graph, nodes, in_order)));
}

Plan plan_of(const Graph& graph) {
  PlanOptions options;
  options.alignment = 1;
  options.strategy = Strategy::none;
  return make_plan(graph, options);
}

TEST(JoinOrders, WhatIsJoinedGetsAnOrderOfItsOwn) {
  const Graph graph = parse(R"(graph g(%x: f32[1000]) {
    %a: f32[1000] = cumsum(%x) {axis=0}
    %b: f32[1000] = tanh(%x)
    %c: f32[2000] = concat(%b, %x) {axis=0}
    %s: f32[] = sum(%a) {axes=[0], keepdims=false}
    %t: f32[] = sum(%c) {axes=[0], keepdims=false}
    return %s, %t
  })",
                            "join");
  const Plan plan = plan_of(graph);
  EXPECT_EQ(plan.peak_bytes, 4000 + 8 + 8000) << plan.order;
  EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
  check_replay(graph);
}

TEST(JoinOrders, EqualEveryOrderWithEveryChoiceOfParts) {
  int tried = 0, better = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = random_rows(seed, 4 + static_cast<int>(seed % 3));
    const std::vector<std::vector<NodeId>> orders = AllOrders(graph, 300).orders();
    const Facts facts = collect_facts(graph);
    if (orders.empty() || part_places(Readers(graph), facts).size() > 4) continue;
    const std::int64_t least = least_peak(graph, orders);
    const JoinedOrder known = least_apart(facts), found = find_joined_order(facts, known);
    ASSERT_EQ(found.live_peak, least) << "seed " << seed << "\n" << print(graph);
    EXPECT_EQ(peak_of(found, graph), least) << "seed " << seed;
    EXPECT_EQ(plan_of(graph).lower_bound_bytes, facts.external_bytes + least) << "seed " << seed << "\n" << print(graph);
    ++tried;
    better += found.live_peak < known.live_peak;
  }
  EXPECT_GT(tried, 20);
  EXPECT_GT(better, 5);
}

TEST(JoinOrders, AreNeverAboveAListScheduleWithPartsOfItsOwn) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = random_rows(seed, 24 + static_cast<int>(seed % 30));
    const Facts facts = collect_facts(graph);
    const JoinedOrder found = find_joined_order(facts, least_apart(facts));
    EXPECT_EQ(peak_of(found, graph), found.live_peak) << "seed " << seed;
    const Plan plan = plan_of(graph);
    EXPECT_LE(plan.lower_bound_bytes, facts.external_bytes + found.live_peak) << "seed " << seed;
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << "seed " << seed;
    for (const NodeOrder& list : find_list_orders(facts, graph, own_sources(graph))) {
      const Graph in_order = list.nodes.empty() ? graph : reorder(graph, list.nodes);
      Facts there = collect_facts(in_order);
      share_parts(Readers(in_order), &there);
      EXPECT_LE(found.live_peak, peak_without_clones(there)) << list.name << ", seed " << seed;
    }
  }
}

// In a hurry, the planner looks for another order with parts only if the step is long. Here the number of elements in a row
// makes the step long.
TEST(JoinOrders, InAHurryLongStepsAreOrderedShortOnesWait) {
  const auto plan_of_rows = [](std::int64_t rows) {
    PlanOptions hurried;
    hurried.alignment = 1;
    hurried.find_floor = false;
    const Plan plan = make_plan(parse(fmt::format(R"(graph g(%x: f32[{0}]) {{
      %a: f32[{0}] = cumsum(%x) {{axis=0}}
      %b: f32[{0}] = tanh(%x)
      %y: f32[{0}] = sin(%x)
      %c: f32[{1}] = concat(%b, %y) {{axis=0}}
      %s: f32[] = sum(%a) {{axes=[0], keepdims=false}}
      %t: f32[] = sum(%c) {{axes=[0], keepdims=false}}
      return %s, %t
    }})",
                                                  rows, 2 * rows)),
                                hurried);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{});
    return plan.peak_bytes - 4 * rows - 8;
  };
  EXPECT_EQ(plan_of_rows(100'000'000), 8 * std::int64_t{100'000'000}) << "joined, with %a summed up before";
  EXPECT_LE(plan_of_rows(1000), 16 * 1000);
}

// ---- wholes in the problem of order search ----

ItemOrder random_order(const OrderProblem& p, test::Dice* dice) {
  std::vector<std::size_t> waits;
  std::vector<std::int32_t> ready;
  for (std::int32_t i = 0; i < p.item_count(); ++i) {
    waits.push_back(p.before[i].size());
    if (waits.back() == 0) ready.push_back(i);
  }
  ItemOrder order;
  while (!ready.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(dice->below(static_cast<std::int64_t>(ready.size())));
    const std::int32_t item = ready[at];
    ready.erase(ready.begin() + at);
    order.push_back(item);
    for (std::int32_t next : p.behind[item])
      if (--waits[next] == 0) ready.push_back(next);
  }
  return order;
}

std::int64_t most_live(const OrderProblem& p, const ItemOrder& order) {
  const std::vector<std::int64_t> live = live_in_order(p, order);
  return *std::max_element(live.begin(), live.end());
}

TEST(JoinOrders, LiveBytesAreThoseOfTheReorderedGraph) {
  int wholes = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = random_rows(seed, 30);
    Facts facts = collect_facts(graph);
    share_parts(Readers(graph), &facts);
    const OrderProblem p = order_problem(facts, graph, own_sources(graph), false);
    const std::int64_t bound = order_bound(p);
    for (std::int32_t v = 0; v < p.value_count(); ++v) wholes += p.maker[v] == kNone;
    test::Dice dice{seed};
    for (int k = 0; k < 5; ++k) {
      const ItemOrder order = k == 0 ? recorded_order(p) : random_order(p, &dice);
      const std::int64_t peak = most_live(p, order);
      EXPECT_LE(bound, peak) << "seed " << seed;
      EXPECT_EQ(peak_of({"", nodes_in_order(facts, graph, own_sources(graph), p, order), choice_of(facts.windows), 0}, graph),
                peak)
          << "seed " << seed;
      const Climbed climbed = climb_order(p, order, {bound, 100'000});
      EXPECT_EQ(most_live(p, climbed.items), climbed.peak) << "seed " << seed;
      EXPECT_LE(climbed.peak, peak) << "seed " << seed;
      ItemOrder stretched = order;
      StretchSearch windows{bound, 100'000};
      const std::int64_t stretched_peak = search_stretches(p, &windows, &stretched);
      EXPECT_EQ(stretched_peak, most_live(p, stretched)) << "seed " << seed;
      EXPECT_LE(stretched_peak, peak) << "seed " << seed;
    }
    OrderSearch search;
    search.below = std::numeric_limits<std::int64_t>::max();
    search.width = 8;
    search.work = 1'000'000;
    const OrderFound found = search_orders(p, search);
    ASSERT_EQ(found.items.size(), static_cast<std::size_t>(p.item_count())) << "seed " << seed;
    EXPECT_EQ(most_live(p, found.items), found.peak) << "seed " << seed;
    for (const ListOrder& list : list_orders(p))
      EXPECT_EQ(list.items.size(), found.items.size()) << list.name << ", seed " << seed;
  }
  EXPECT_GT(wholes, 40);
}

// The rules of least peak look at all items that could run for each item that they take, so for a wide graph they take long.
TEST(JoinOrders, ACancelledRuleOfLeastPeakGivesTheRecordedOrder) {
  std::string text = "graph wide(%x: f32[4]) {\n%a: f32[4] = exp(%x)\n";
  for (int i = 0; i < 60'000; ++i) text += fmt::format("%b{}: f32[4] = opaque(%a) {{us=1.0}}\n", i);
  const Graph graph = parse(text + "return %a\n}");
  const OrderProblem p = order_problem(collect_facts(graph), graph, own_sources(graph), false);
  const std::atomic<bool> cancel{true};
  const ItemOrder recorded = recorded_order(p);
  ASSERT_GE(recorded.size(), 60'000u);
  EXPECT_EQ(least_peak_first(p, false, &cancel), recorded);
  EXPECT_EQ(least_peak_first(p, true, &cancel), recorded);
  EXPECT_EQ(reversed_least_peak(p, &cancel), recorded);
  for (const ListOrder& list : list_orders(p, &cancel)) EXPECT_EQ(list.items.size(), recorded.size()) << list.name;
}

}  // namespace
}  // namespace tapedeck
