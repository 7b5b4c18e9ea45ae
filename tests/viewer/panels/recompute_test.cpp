// Tests the panel of recomputation with real clicks: what it says of a value equals the library's log and prices, and its
// buttons are wishes.
#include <tapedeck/tests/viewer/plans.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/viewer/planning/default_source.h>
#include <tapedeck/viewer/window.h>

#include <gtest/gtest.h>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>

#include <algorithm>
#include <atomic>
#include <string>

namespace tapedeck::viewer {
namespace {

class Recompute : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.show_panel("recompute");
    window.set_budget({-1, 60});
    window.wait_for_plan();
    settle_panel();
  }
  void settle_panel() {
    ASSERT_TRUE(spin_until([&] { return window.recompute().settled(); }));
  }
  const Plan& plan() { return window.session().model()->plan(); }
  const std::vector<ValueEntry>& log() { return window.session().model()->values().log(); }
  const ValueEntry& selected() { return window.session().model()->values().entry(window.session().selection().value); }
  std::string first_given_up() { return plan().decisions.at(0).value; }
  std::string card() { return window.recompute().card()->toPlainText().toStdString(); }
  bool is_recomputed(const std::string& name) {
    for (const ValueEntry& e : log())
      if (e.name == name) return e.choice == ValueChoice::recomputed;
    return false;
  }
};

TEST_F(Recompute, SaysWhatTheLibrarySays) {
  window.session().select_value(value(first_given_up()));
  settle_panel();
  const ValueEntry& entry = find_entry(log(), plan(), first_given_up());
  EXPECT_EQ(entry.choice, ValueChoice::recomputed);
  EXPECT_NE(card().find(entry.rule), std::string::npos) << card();
  EXPECT_NE(card().find("2 times"), std::string::npos) << card();
  PlanOptions options;
  const ValuePrice alone = price_alone(plan(), log(), entry, options);
  const ValuePrice anew = price_anew(*window.session().document()->captured, plan(), entry, options);
  const ValuePrices& shown = window.recompute().prices();
  ASSERT_TRUE(shown.alone && shown.anew);
  EXPECT_EQ(shown.alone->cost_us, alone.cost_us);
  EXPECT_EQ(shown.alone->peak_bytes, alone.peak_bytes);
  EXPECT_EQ(shown.anew->cost_us, anew.cost_us);
  EXPECT_EQ(shown.anew->peak_bytes, anew.peak_bytes);
}

// Counts the full searches that begin while it lives.
class CountedSearches {
 public:
  CountedSearches() {
    default_source() = [this](const PlanProblem& problem, const SourceWork& work) {
      if (work.effort == SearchEffort::full) ++full_;
      return before_(problem, work);
    };
  }
  ~CountedSearches() { default_source() = before_; }
  int full() const { return full_; }

 private:
  const MakeSource before_ = default_source();
  std::atomic<int> full_{0};
};

// A price takes a search, so it waits until a person can see it.
TEST_F(Recompute, AHiddenPanelAsksForNoPrices) {
  const CountedSearches searches;
  window.show_panel("details");  // in the same place
  window.session().select_value(value(first_given_up()));
  settle_all();
  for (int turn = 0; turn < 10; ++turn) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
  EXPECT_FALSE(window.recompute().settled());
  EXPECT_EQ(searches.full(), 0);
  window.show_panel("recompute");
  settle_panel();
  EXPECT_EQ(window.recompute().prices().name, first_given_up());
  EXPECT_NE(card().find("%" + first_given_up()), std::string::npos) << card();
  EXPECT_EQ(searches.full(), 1);
  // Hidden and shown again, it still knows them.
  window.show_panel("details");
  window.session().hover(value("h3"));
  window.show_panel("recompute");
  EXPECT_TRUE(window.recompute().settled());
  EXPECT_EQ(searches.full(), 1);
}

// The price of a wish and the plan of the wish come from one search.
TEST_F(Recompute, AWishWhosePriceIsKnownIsNotSearchedAgain) {
  const std::string name = first_given_up();
  window.session().select_value(value(name));
  settle_panel();
  const double price = window.recompute().prices().anew->cost_us;
  window.recompute().hide();  // the new plan would be priced at once
  const CountedSearches searches;
  click_widget(*window.recompute().keep_button());
  window.wait_for_plan();
  EXPECT_EQ(searches.full(), 0);
  EXPECT_FALSE(is_recomputed(name));
  EXPECT_EQ(plan().cost_us, price);
  // The search goes on to answer other budgets.
  const std::int64_t lower = plan().floor_bytes;
  window.set_budget({lower, -1});
  window.wait_for_plan();
  EXPECT_EQ(plan().budget_bytes, lower);
  EXPECT_TRUE(plan().feasible);
  EXPECT_FALSE(is_recomputed(name));
}

// The walk of a person who does not want to pay for a value: find the dearest, keep it, see the new plan, take it back.
TEST_F(Recompute, TheDearestValueIsKeptByAClick) {
  RowsView* table = window.recompute().table().table();
  ASSERT_GT(table->model()->rowCount(), 0);
  table->setCurrentIndex(table->model()->index(0, 0));  // sorted by what the further runs cost
  settle_panel();
  const std::string name = selected().name;
  double dearest = 0;
  for (const ValueEntry& e : log()) dearest = std::max(dearest, e.again_us());
  EXPECT_EQ(selected().again_us(), dearest);
  const double cost = plan().cost_us;
  const double expected = window.recompute().prices().anew->cost_us;

  click_widget(*window.recompute().keep_button());
  window.wait_for_plan();
  settle_panel();
  EXPECT_FALSE(is_recomputed(name));
  EXPECT_EQ(plan().cost_us, expected);  // what the price said
  EXPECT_TRUE(window.recompute().keep_button()->isChecked());
  EXPECT_LE(plan().peak_bytes, plan().budget_bytes);

  EXPECT_TRUE(window.undo());
  window.wait_for_plan();
  settle_panel();
  EXPECT_EQ(plan().cost_us, cost);
  EXPECT_FALSE(window.recompute().keep_button()->isChecked());
}

TEST_F(Recompute, AWishToRecomputeAndMayAgain) {
  std::string kept;
  for (const ValueEntry& e : log())
    if (e.choice == ValueChoice::kept && !e.runs.empty() && e.readers.size() > 1 && e.name[0] == 'h') kept = e.name;
  ASSERT_FALSE(kept.empty());
  window.session().select_value(value(kept));
  settle_panel();
  click_widget(*window.recompute().recompute_button());
  window.wait_for_plan();
  settle_panel();
  EXPECT_TRUE(is_recomputed(kept));
  click_widget(*window.recompute().may_button());
  window.wait_for_plan();
  EXPECT_TRUE(window.session().wishes().empty());
}

}  // namespace
}  // namespace tapedeck::viewer
