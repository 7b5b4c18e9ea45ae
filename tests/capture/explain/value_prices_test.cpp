// Tests what the other choice for one value is said to cost. The oracle writes the changed program as a list of lines and
// counts the bytes alive at each of them.
#include <tapedeck/tests/capture/planner_graphs.h>
#include <tapedeck/tests/capture/random_graph.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/value_prices.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tapedeck {
namespace {

using testing::mentions;

std::vector<ValueEntry> unwished_log_of(const Plan& plan) { return value_log(plan, cost_nodes(plan.graph, nullptr).us); }

// A program of nodes with one result each, without views: what is read is named.
struct Line {
  std::string name;
  std::vector<std::string> reads;
  std::int64_t bytes;
  double us;
};

class Program {
 public:
  explicit Program(const Plan& plan) : external_(plan.external_bytes) {
    const Graph& g = plan.graph;
    const std::vector<double> us = cost_nodes(g, nullptr).us;
    for (NodeId n = 0; n < g.node_count(); ++n) {
      Line line = {g.value_name(g.nodes[n].first_output), {}, g.values[g.nodes[n].first_output].type.bytes(), us[n]};
      for (const ValueId v : g.inputs(g.nodes[n])) line.reads.push_back(g.value_name(v));
      lines_.push_back(line);
    }
    result_ = g.value_name(g.outputs[0]);
  }

  void read_instead(const std::string& old_name, const std::string& name) {
    for (Line& line : lines_) std::replace(line.reads.begin(), line.reads.end(), old_name, name);
  }

  // The line of `name` once more before the last reader, with all lines that it needs and whose results are gone there.
  void make_again(const std::string& name) {
    const int before = last_reader(name);
    std::vector<Line> again;
    collect(name, before, &again);
    std::sort(again.begin(), again.end(), [&](const Line& a, const Line& b) { return place(a.name) < place(b.name); });
    for (Line& line : again) {
      for (std::string& read : line.reads)
        if (std::any_of(again.begin(), again.end(), [&](const Line& l) { return l.name == read; })) read += "'";
    }
    for (Line& line : again) line.name += "'";
    std::replace(lines_[before].reads.begin(), lines_[before].reads.end(), name, name + "'");
    lines_.insert(lines_.begin() + before, again.begin(), again.end());
  }

  void drop_unread() {
    for (std::size_t i = lines_.size(); i-- > 0;)
      if (last_reader(lines_[i].name) < 0 && lines_[i].name != result_) lines_.erase(lines_.begin() + static_cast<long>(i));
  }

  double us() const {
    double sum = 0;
    for (const Line& line : lines_) sum += line.us;
    return sum;
  }

  // The result has a buffer of its own.
  std::int64_t most_alive() const {
    std::int64_t most = 0;
    for (int at = 0; at < static_cast<int>(lines_.size()); ++at) {
      std::int64_t alive = external_;
      for (int i = 0; i <= at; ++i)
        if (lines_[i].name != result_ && (i == at || last_reader(lines_[i].name) >= at)) alive += lines_[i].bytes;
      most = std::max(most, alive);
    }
    return most;
  }

 private:
  int place(const std::string& name) const {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].name == name) return static_cast<int>(i);
    return -1;
  }

  int last_reader(const std::string& name) const {
    for (std::size_t i = lines_.size(); i-- > 0;)
      if (std::count(lines_[i].reads.begin(), lines_[i].reads.end(), name)) return static_cast<int>(i);
    return -1;
  }

  void collect(const std::string& name, int before, std::vector<Line>* again) const {
    if (std::any_of(again->begin(), again->end(), [&](const Line& l) { return l.name == name; })) return;
    again->push_back(lines_[place(name)]);
    for (const std::string& read : lines_[place(name)].reads)
      if (place(read) >= 0 && read != result_ && last_reader(read) < before) collect(read, before, again);
  }

  std::int64_t external_;
  std::string result_;
  std::vector<Line> lines_;
};

Program changed(const Plan& plan, const ValueEntry& e) {
  Program program(plan);
  if (e.choice == ValueChoice::kept) program.make_again(e.name);
  for (const ValueId v : e.copies) program.read_instead(plan.graph.value_name(v), e.name);
  program.drop_unread();
  return program;
}

struct Priced {
  int kept = 0, recomputed = 0, cheaper = 0;
};

void check_prices_alone(const Graph& graph, const PlanOptions& options, Priced* priced) {
  const Plan plan = make_plan(graph, options);
  ASSERT_EQ(Program(plan).most_alive(), plan.lower_bound_bytes) << print(plan.graph);
  const std::vector<ValueEntry> log = unwished_log_of(plan);
  for (const ValueEntry& e : log) {
    const ValuePrice price = price_alone(plan, log, e, options);
    if (e.choice == ValueChoice::elsewhere) {
      EXPECT_EQ(price.obstacle, e.rule);
      continue;
    }
    ASSERT_EQ(price.obstacle, "") << e.name;
    const Program wanted = changed(plan, e);
    ASSERT_EQ(price.live_peak_bytes, wanted.most_alive()) << e.name << "\n" << print(plan.graph);
    ASSERT_NEAR(price.cost_us, wanted.us(), 1e-6) << e.name << "\n" << print(plan.graph);
    EXPECT_GE(price.peak_bytes, price.live_peak_bytes);
    EXPECT_EQ(price.before == kNone, e.choice == ValueChoice::recomputed);
    ++(e.choice == ValueChoice::kept ? priced->kept : priced->recomputed);
    priced->cheaper += price.cost_us < plan.cost_us;
  }
}

TEST(ValuePrices, OfTheOtherChoiceAloneAreThoseOfTheChangedProgram) {
  Priced priced;
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (const double percent : {100.0, 60.0})
      check_prices_alone(test::there_and_back(seed), {.budget_percent = percent, .sharing = Sharing::none}, &priced);
  EXPECT_GT(priced.kept, 50);
  EXPECT_GT(priced.recomputed, 5);
  EXPECT_GT(priced.cheaper, 5);
}

// Every fifth node is to be computed again, and every seventh is to be kept.
Graph marked(Graph graph) {
  for (NodeId n = 0; n < graph.node_count(); ++n)
    graph.nodes[n].origin.wish = n % 5 == 2 ? NodeWish::recompute : n % 7 == 3 ? NodeWish::keep : NodeWish::none;
  return graph;
}

// The plan honours the marks of the program. The price of another choice is computed without these marks.
TEST(ValuePrices, OfTheOtherChoiceAloneHoldForMarkedPrograms) {
  Priced priced;
  for (unsigned seed = 1; seed <= 6; ++seed)
    check_prices_alone(marked(test::there_and_back(seed)), {.sharing = Sharing::none}, &priced);
  EXPECT_GT(priced.kept, 25);
  EXPECT_GT(priced.recomputed, 5);
}

// Views, bytes that are taken over, state, several results: the changed graph can be planned, and keeping takes clones away.
TEST(ValuePrices, OfAnyProgramCanBeTold) {
  int priced = 0;
  for (unsigned seed = 1; seed <= 30; ++seed)
    for (const Graph& graph : {test::RandomProgram(seed).graph(), test::RandomGraph(seed).make(30)}) {
      const PlanOptions options = {.budget_percent = 80};
      const Plan plan = make_plan(graph, options);
      const std::vector<ValueEntry> log = unwished_log_of(plan);
      for (const ValueEntry& e : log) {
        const ValuePrice price = price_alone(plan, log, e, options);
        if (!price.obstacle.empty()) continue;
        ++priced;
        EXPECT_GE(price.peak_bytes, price.live_peak_bytes) << e.name;
        if (price.before != kNone) continue;
        EXPECT_LT(price.recomputed_nodes, plan.recomputed_nodes) << e.name;
      }
    }
  EXPECT_GT(priced, 60);
}

// What `plan` says with the wish on its line.
class PlannedAnew : public ::testing::TestWithParam<bool> {};

TEST_P(PlannedAnew, AreThoseOfThePlanWithTheWish) {
  const Graph graph = GetParam() ? marked(test::chain(6, 100)) : test::chain(6, 100);
  PlanOptions options = {.budget_percent = 75};
  const Plan plan = make_plan(graph, options);
  ASSERT_GT(plan.recomputed_nodes, 0);
  const std::vector<ValueEntry> log = unwished_log_of(plan);
  int keeps = 0, recomputes = 0;
  for (const ValueEntry& e : log) {
    const ValuePrice price = price_anew(graph, plan, e, options);
    if (!price.obstacle.empty()) continue;
    const WishKind kind = e.choice == ValueChoice::recomputed ? WishKind::keep : WishKind::recompute;
    ++(kind == WishKind::keep ? keeps : recomputes);
    EXPECT_EQ(price.wish, (Wish{kind, e.name}));
    const Plan anew = make_plan(graph, {.budget = plan.budget_bytes, .wishes = {{kind, e.name}}, .find_floor = false});
    EXPECT_EQ(price.feasible, anew.feasible);
    EXPECT_EQ(price.peak_bytes, anew.peak_bytes);
    EXPECT_EQ(price.live_peak_bytes, anew.lower_bound_bytes);
    EXPECT_EQ(price.cost_us, anew.cost_us);
    EXPECT_EQ(price.recomputed_nodes, anew.recomputed_nodes);
  }
  EXPECT_GT(keeps, 0);
  EXPECT_GT(recomputes, 0);
}

INSTANTIATE_TEST_SUITE_P(ValuePrices, PlannedAnew, ::testing::Bool(),
                         [](const auto& of) { return std::string(of.param ? "Marked" : "Unmarked"); });

TEST(ValuePrices, AreToldInWords) {
  const Graph graph = test::chain(6, 100);
  const PlanOptions options = {.budget_percent = 70};
  const Plan plan = make_plan(graph, options);
  const std::vector<ValueEntry> log = unwished_log_of(plan);
  const auto again = std::find_if(log.begin(), log.end(), [](const ValueEntry& e) { return e.runs.size() > 1; });
  ASSERT_NE(again, log.end());
  const ValuePrice alone = price_alone(plan, log, *again, options), anew = price_anew(graph, plan, *again, options);
  const std::string text = value_text(plan, *again, &alone, &anew);
  EXPECT_TRUE(mentions(text, "again by node")) << text;
  EXPECT_TRUE(mentions(text, "the other choice, all others fixed: kept from its first run on")) << text;
  EXPECT_TRUE(mentions(text, "planned anew with --keep " + again->name)) << text;
  EXPECT_GT(alone.live_peak_bytes, plan.lower_bound_bytes);
  EXPECT_LT(alone.cost_us, plan.cost_us);
}

}  // namespace
}  // namespace tapedeck
