// Tests the inspector with real events: its transport, what it says of values that are there and of those that are gone, and
// that the step ends with its plan. The oracle is a replay that keeps every value.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/planning/replay_values.h>

#include <gtest/gtest.h>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>

#include <cmath>
#include <string>

namespace tapedeck::viewer {
namespace {

class InspectorWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.set_budget({-1, 60});
    window.wait_for_plan();
    window.show_panel("inspector");
    QCoreApplication::processEvents();
  }
  InspectorPanel& panel() { return window.inspector(); }
  void settle_step() {
    ASSERT_TRUE(spin_until([&] { return panel().settled(); }));
  }
  void click_on(QPushButton& button) {
    click_widget(button);
    settle_step();
  }
  const LookedAt& seen() { return panel().at().seen; }
  NodeId maker(const std::string& name) { return graph().values[value(name)].node; }

  // The value in a step that keeps everything.
  Tensor kept(const std::string& name) {
    const Plan plan = make_plan(parse(training_graph(16)), {.strategy = Strategy::none});
    Executor executor(plan);
    const ReplayValues values = replay_values(window.session().document()->path, plan.graph);
    set_values(&executor, values);
    executor.run_to(name);
    return executor.value(name);
  }
  void expect_same(const std::string& name) {
    ASSERT_EQ(seen().error, "");
    const Tensor oracle = kept(name);
    const TensorStatistics s = statistics(oracle);
    EXPECT_EQ(seen().statistics.mean, s.mean) << name;
    EXPECT_EQ(seen().statistics.min, s.min) << name;
    EXPECT_EQ(seen().statistics.max, s.max) << name;
    EXPECT_EQ(seen().histogram.counts, histogram(oracle, static_cast<int>(seen().histogram.counts.size())).counts) << name;
  }
};

TEST_F(InspectorWindow, StepsAndGoesBackAndFollows) {
  EXPECT_FALSE(panel().has_step());
  for (int n = 1; n <= 3; ++n) {
    click_on(panel().button(StepMove::next));
    EXPECT_EQ(panel().at().done, n);
    EXPECT_EQ(window.session().selection().node, panel().at().behind);
    EXPECT_EQ(seen().value, window.session().selection().value);
    EXPECT_EQ(seen().error, "");
  }
  const NodeId third = panel().at().behind;
  click_on(panel().button(StepMove::back));
  EXPECT_EQ(panel().at().done, 2);
  EXPECT_NE(panel().at().behind, third);
  click_on(panel().button(StepMove::next));
  EXPECT_EQ(panel().at().behind, third);
}

TEST_F(InspectorWindow, AValueWhoseBytesAreGoneIsComputedAgain) {
  click_on(panel().play_button());
  EXPECT_EQ(panel().at().done, graph().node_count());
  EXPECT_TRUE(panel().headline().text().startsWith(QStringLiteral("At the end: all ")));
  int gone = 0;
  for (const std::string name : {"h1", "h3", "h5", "h9"}) {
    window.session().select_value(value(name));
    settle_step();
    expect_same(name);
    gone += seen().nodes_again > 0;
    EXPECT_EQ(panel().card().toPlainText().contains(QStringLiteral("its bytes are gone")), seen().nodes_again > 0);
  }
  EXPECT_GT(gone, 0);
}

TEST_F(InspectorWindow, RunsToTheSelectionAndBackToIt) {
  window.session().select_value(value("h7"));
  click_on(panel().button(StepMove::to_node));
  EXPECT_EQ(panel().at().behind, maker("h7"));
  expect_same("h7");
  window.session().select_value(value("h3"));
  click_on(panel().button(StepMove::to_node));
  EXPECT_EQ(panel().at().behind, maker("h3"));
  expect_same("h3");
  window.session().select_value(value("h9"));
  settle_step();
  EXPECT_NE(seen().error, "");  // not computed yet
  EXPECT_TRUE(panel().card().toPlainText().contains(QString::fromStdString(seen().error).left(20)));
  EXPECT_TRUE(panel().picture().map_area().isEmpty());
}

TEST_F(InspectorWindow, WithoutFollowTheSelectionStays) {
  window.session().select_value(value("h2"));
  click_widget(panel().follows());
  click_on(panel().button(StepMove::next));
  EXPECT_EQ(window.session().selection().value, value("h2"));
  EXPECT_EQ(seen().value, value("h2"));
}

TEST_F(InspectorWindow, KeysMoveTheStep) {
  press(window.memory_canvas(), Qt::Key_F10);
  settle_step();
  EXPECT_EQ(panel().at().done, 1);
  press(window.memory_canvas(), Qt::Key_F10, Qt::ShiftModifier);
  settle_step();
  EXPECT_EQ(panel().at().done, 0);
  EXPECT_TRUE(panel().headline().text().startsWith(QStringLiteral("Before the first of ")));
  press(window.memory_canvas(), Qt::Key_F5);
  settle_step();
  EXPECT_EQ(panel().at().done, graph().node_count());
  press(window.memory_canvas(), Qt::Key_F5, Qt::ShiftModifier);
  EXPECT_FALSE(panel().has_step());
}

TEST_F(InspectorWindow, MovesThatComeWhileTheStepRunsFollowIt) {
  for (int n = 0; n < 2; ++n) click_widget(panel().button(StepMove::next));  // the second comes before the first has ended
  settle_step();
  EXPECT_EQ(panel().at().done, 2);
}

TEST_F(InspectorWindow, TheStepEndsWithItsPlan) {
  click_on(panel().button(StepMove::next));
  ASSERT_TRUE(panel().has_step());
  window.set_budget({-1, 80});
  window.wait_for_plan();
  EXPECT_FALSE(panel().has_step());
  EXPECT_TRUE(panel().headline().text().contains(QStringLiteral("another plan")));
  click_on(panel().button(StepMove::next));
  EXPECT_EQ(panel().at().done, 1);
}

TEST_F(InspectorWindow, StopsAtTheFirstNaN) {
  const std::string text =
      "graph g(%x: f32[4]) { %a: f32[4] = abs(%x) %b: f32[4] = neg(%a) %c: f32[4] = log(%b) %d: f32[4] = exp(%c) return %d }";
  window.open(folder.write("nan.graph", text));
  window.wait_for_plan();
  settle_step();
  click_widget(panel().stops_at_nan());
  click_on(panel().play_button());
  EXPECT_EQ(panel().at().behind, maker("c"));
  EXPECT_EQ(panel().at().stop.reason, StopReason::not_finite);
  EXPECT_TRUE(panel().headline().text().contains(QStringLiteral("Stopped at a NaN")));
  EXPECT_EQ(seen().statistics.nan, 4);
}

TEST_F(InspectorWindow, StopsAtNames) {
  QLineEdit& field = panel().stops_at();
  field.setFocus();
  type(field, "h5");
  press(field, Qt::Key_Return);
  settle_step();
  EXPECT_EQ(panel().at().behind, maker("h5"));
  EXPECT_EQ(panel().at().stop.reason, StopReason::name);
  field.setText(QStringLiteral("no such name"));
  click_on(panel().play_button());
  EXPECT_NE(panel().at().error, "");
  EXPECT_EQ(panel().headline().text().toStdString(), panel().at().error);
  EXPECT_EQ(panel().at().behind, maker("h5"));  // the step stays where it is
}

TEST_F(InspectorWindow, ThePictureSaysWhatIsUnderTheMouse) {
  window.session().select_value(value("h4"));
  click_on(panel().button(StepMove::to_node));
  ValuePicture& picture = panel().picture();
  ASSERT_FALSE(picture.map_area().isEmpty());
  ASSERT_FALSE(picture.histogram_area().isEmpty());
  EXPECT_TRUE(picture.text_at(picture.map_area().topLeft()).startsWith(QStringLiteral("row 0, column 0")));
  EXPECT_TRUE(picture.text_at(picture.histogram_area().center()).contains(QStringLiteral("elements from ")));
  EXPECT_EQ(picture.text_at({picture.width() / 2, 0}), QString());
}

}  // namespace
}  // namespace tapedeck::viewer
