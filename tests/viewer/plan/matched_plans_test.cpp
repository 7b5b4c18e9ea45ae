// Tests how the values of two plans are matched, and the table of what differs. The oracle reads both plans by the names of
// values alone.
#include <tapedeck/viewer/plan/delta_table.h>
#include <tapedeck/viewer/plan/matched_plans.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

namespace tapedeck::viewer {
namespace {

// A chain of layers whose results backward reads. `hidden` names the results, `bytes` is the size of the third one.
std::string layers(const std::string& hidden, int bytes = 1024) {
  std::string text = "graph f(%x: u8[1024]) {\n";
  const auto name = [&](int i) { return i == 0 ? std::string("%x") : "%" + hidden + std::to_string(i); };
  for (int i = 1; i <= 8; ++i)
    text += "  " + name(i) + ": u8[" + std::to_string(i == 3 ? bytes : 1024) + "] = opaque(" + name(i - 1) + ") {us=1.0}\n";
  text += "  %g9: u8[1024] = opaque(%" + hidden + "8) {us=1.0} [phase=backward]\n";
  for (int i = 8; i >= 1; --i)
    text += "  %g" + std::to_string(i) + ": u8[1024] = opaque(%g" + std::to_string(i + 1) + ", " + name(i) +
            ") {us=1.0} [phase=backward]\n";
  return text + "  return %g1\n}\n";
}

ComparedPlan planned(const std::string& text, double percent = -1) {
  auto captured = std::make_shared<const Graph>(parse(text));
  PlanOptions options;
  options.budget_percent = percent;
  return {"step", PlanModel::of(make_plan(*captured, options)), captured};
}

std::set<std::string> names(const MatchedPlans& plans, PlanChange change) {
  std::set<std::string> found;
  for (const MatchedValue& value : plans.values()) {
    if (value.change != change) continue;
    const int side = value.entry[1] == kNone ? 0 : 1;
    found.insert(
        plans.side(side).model->values().log()[static_cast<std::size_t>(value.entry[static_cast<std::size_t>(side)])].name);
  }
  return found;
}

TEST(MatchedPlans, OfOnePlanWithItselfAreEqual) {
  const ComparedPlan plan = planned(layers("h"), 70);
  const MatchedPlans same(plan, plan);
  EXPECT_TRUE(same.equal());
  EXPECT_EQ(same.count(PlanChange::none), static_cast<std::int64_t>(same.values().size()));
  EXPECT_NE(difference_summary(same, ByteUnit()).find("equal"), std::string::npos);
}

// Kept on the left and recomputed on the right: those whose runs are counted otherwise in the two graphs.
TEST(MatchedPlans, SayWhichValuesAreRecomputedOnOneSideAlone) {
  ComparedPlan left = planned(layers("h")), right = planned(layers("h"), 70);
  right.captured = left.captured;
  const MatchedPlans plans(left, right);
  std::set<std::string> recomputed;
  for (const Node& node : right.model->graph().nodes)
    if (node.origin.clone) recomputed.insert(right.model->values().entry(node.first_output).name);
  ASSERT_FALSE(recomputed.empty());
  EXPECT_EQ(names(plans, PlanChange::choice), recomputed);
  EXPECT_EQ(plans.count(PlanChange::only_left) + plans.count(PlanChange::only_right), 0);
  EXPECT_FALSE(plans.equal());
  for (const MatchedValue& value : plans.values())
    EXPECT_EQ(left.model->values().log()[static_cast<std::size_t>(value.entry[0])].name,
              right.model->values().log()[static_cast<std::size_t>(value.entry[1])].name);
}

TEST(MatchedPlans, FindValuesUnderOtherNames) {
  const MatchedPlans plans(planned(layers("h")), planned(layers("layer")));
  EXPECT_EQ(plans.count(PlanChange::only_left) + plans.count(PlanChange::only_right), 0);
  std::map<std::string, std::string> renamed;
  for (const MatchedValue& value : plans.values())
    if (value.renamed)
      renamed[plans.side(0).model->values().log()[static_cast<std::size_t>(value.entry[0])].name] =
          plans.side(1).model->values().log()[static_cast<std::size_t>(value.entry[1])].name;
  EXPECT_EQ(renamed.size(), 8U);
  for (const auto& [from, to] : renamed) EXPECT_EQ("layer" + from.substr(1), to);
}

TEST(MatchedPlans, OfTwoStepsSayWhatIsOnlyInOneAndWhatHasAnotherType) {
  std::string longer = layers("h", 2048);
  longer.insert(longer.find("  return"), "  %more: u8[64] = opaque(%g1) {us=1.0}\n");
  const MatchedPlans plans(planned(layers("h")), planned(longer));
  EXPECT_TRUE(names(plans, PlanChange::type).count("h3"));
  EXPECT_EQ(names(plans, PlanChange::only_left).size(), 0U);
  // Nobody reads the new value, so a plan without it is right, too.
  for (const std::string& name : names(plans, PlanChange::only_right)) EXPECT_EQ(name, "more");
}

TEST(MatchedPlans, AValueLeadsToItsMatchAndBack) {
  const MatchedPlans plans(planned(layers("h")), planned(layers("layer"), 70));
  const PlanModel &left = *plans.side(0).model, &right = *plans.side(1).model;
  for (ValueId v = 0; v < right.graph().value_count(); ++v) {
    const ValueId match = plans.other(1, v);
    ASSERT_NE(match, kNone) << right.name_of(v);
    EXPECT_EQ(plans.other(0, match), right.values().copies(v).front());
    EXPECT_EQ(left.graph().values[static_cast<std::size_t>(match)].type,
              right.graph().values[static_cast<std::size_t>(v)].type);
  }
  EXPECT_EQ(plans.other(0, kNone), kNone);
}

TEST(DeltaTable, HasARowForEachValueWithTheNumbersOfBothLogs) {
  const MatchedPlans plans(planned(layers("h")), planned(layers("h"), 70));
  const Table table = make_delta_table(plans);
  ASSERT_EQ(static_cast<std::size_t>(table.rows()), plans.values().size());
  const auto number = [&](const char* key, std::int32_t row) { return table.number(delta_layout().column(key), row); };
  double more = 0;
  for (std::int32_t row = 0; row < table.rows(); ++row) {
    const MatchedValue& value = plans.values()[static_cast<std::size_t>(row)];
    const ValueEntry& right = plans.side(1).model->values().log()[static_cast<std::size_t>(value.entry[1])];
    EXPECT_EQ(number("runs_right", row), static_cast<double>(right.runs.size()));
    EXPECT_EQ(number("bytes_left", row), static_cast<double>(right.bytes));
    more += number("us_more", row);
  }
  EXPECT_NEAR(more, plans.side(1).model->plan().cost_us - plans.side(0).model->plan().cost_us, 1e-9);
  EXPECT_GT(more, 0);
  std::ostringstream csv;
  table.write_csv(csv, table.all_rows());
  EXPECT_EQ(csv.str().find("name,change,op,type,bytes_left"), 0U);
}

}  // namespace
}  // namespace tapedeck::viewer
