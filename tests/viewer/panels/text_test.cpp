// Tests the panel of the graph text with real events: clicks on words, on steps and on folds, keys, selections elsewhere.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/panels/text.h>

#include <gtest/gtest.h>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTreeWidget>

#include <string>

namespace tapedeck::viewer {
namespace {

class TextWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window.set_budget({-1, 60});
    window.wait_for_plan();
    window.show_panel("text");
    settle_text();
  }
  TextPanel& panel() { return window.text(); }
  CodeView& code() { return panel().code(); }
  void settle_text() {
    ASSERT_TRUE(spin_until([&] { return panel().settled(); }));
    QCoreApplication::processEvents();
  }
  std::string line(std::int32_t row) {
    return std::string(code().rows().line(code().rows().rows()[static_cast<std::size_t>(row)]));
  }
  std::int32_t row_with(const std::string& start) {
    for (std::int32_t row = 0; row < code().rows().count(); ++row)
      if (code().rows().rows()[static_cast<std::size_t>(row)].folded == 0 && line(row).find(start) != std::string::npos)
        return row;
    return -1;
  }
  void send(QEvent::Type type, const QPoint& at) {
    QMouseEvent event(type, QPointF(at), code().viewport()->mapToGlobal(QPointF(at)),
                      type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton,
                      type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(code().viewport(), &event);
  }
  void click_at(const QPoint& at) {
    send(QEvent::MouseMove, at);
    send(QEvent::MouseButtonPress, at);
    send(QEvent::MouseButtonRelease, at);
  }
  void click_step(int step) {
    QTreeWidget& steps = panel().steps();
    steps.scrollToItem(steps.topLevelItem(step));
    const QPointF at = steps.visualItemRect(steps.topLevelItem(step)).center();
    for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
      QMouseEvent event(type, at, steps.viewport()->mapToGlobal(at), Qt::LeftButton,
                        type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
      QApplication::sendEvent(steps.viewport(), &event);
    }
  }
  int last() { return panel().steps().topLevelItemCount() - 1; }
  bool is_in_view(std::int32_t row) {
    return row >= code().first_row_in_view() && row < code().first_row_in_view() + code().rows_in_view();
  }
};

TEST_F(TextWindow, ShowsTheTextOfThePlan) {
  EXPECT_EQ(panel().step(), last());
  EXPECT_EQ(code().rows().after()->text(), print(graph()));
  EXPECT_FALSE(panel().shows_changes());
  EXPECT_TRUE(panel().headline().text().startsWith(QStringLiteral("plan: ")));
}

TEST_F(TextWindow, AClickOnAWordSelectsItsValueEverywhere) {
  const std::int32_t row = row_with("  %h5:");
  code().go_to_row(row);
  const std::int32_t first = code().first_row_in_view();
  click_at(code().middle_of(row, "%h4"));  // an operand
  expect_selected_everywhere(value("h4"));
  EXPECT_EQ(code().first_row_in_view(), first) << "the text stays where it was clicked";
  click_at(code().middle_of(row, "opaque"));  // anything else is the node of the line
  expect_selected_everywhere(value("h5"));
  const std::int32_t header = row_with("%w3: f32");
  code().go_to_row(header);
  click_at(code().middle_of(header, "%w3"));
  EXPECT_EQ(window.session().selection().value, value("w3"));
}

TEST_F(TextWindow, ASelectionElsewhereIsScrolledToAndHoveringIsNot) {
  code().go_to_row(0);
  window.session().select_value(value("u0"));
  EXPECT_TRUE(is_in_view(row_with("  %u0:")));
  code().verticalScrollBar()->setValue(0);
  window.session().hover(value("u1"));
  EXPECT_EQ(code().first_row_in_view(), 0);
  window.session().select_value(value("h16"));
  EXPECT_TRUE(is_in_view(row_with("  %h16:")));
}

TEST_F(TextWindow, HoveringAWordHoversItsValue) {
  const std::int32_t row = row_with("  %h5:");
  code().go_to_row(row);
  send(QEvent::MouseMove, code().middle_of(row, "%h4"));
  EXPECT_EQ(window.session().selection().hovered, value("h4"));
  send(QEvent::MouseMove, code().middle_of(row, "opaque"));
  EXPECT_EQ(window.session().selection().hovered, kNone);
  const QString help = code().explain({"%h4", WordKind::value, code().rows().after()->line_of(0), false});
  EXPECT_TRUE(help.contains(QStringLiteral("f32[256,64]"))) << help.toStdString();
  EXPECT_FALSE(code().explain({"opaque", WordKind::op, 3, false}).isEmpty());
}

TEST_F(TextWindow, AClickOnAStepShowsWhatItChanged) {
  click_step(last());
  EXPECT_TRUE(panel().shows_changes());
  const StepText& plan = panel().texts().back();
  ASSERT_TRUE(plan.diff);
  std::int32_t added = 0;
  for (const TextRow& row : code().rows().rows()) added += row.kind == LineKind::added;
  EXPECT_EQ(added, plan.diff->added);
  EXPECT_GT(added, 0);  // clones
  EXPECT_EQ(panel().steps().topLevelItem(last())->text(1).toStdString(), won_nodes(plan.record));

  // A fold opens by a click; the lines are then those of the text.
  std::int32_t fold = 0;
  while (code().rows().rows()[static_cast<std::size_t>(fold)].folded == 0) ++fold;
  const std::int32_t count = code().rows().count(), folded = code().rows().rows()[static_cast<std::size_t>(fold)].folded;
  code().go_to_row(fold);
  click_at(code().middle_of(fold, ""));
  EXPECT_EQ(code().rows().count(), count + folded - 1);

  click_step(0);
  EXPECT_EQ(code().rows().after()->text(), print(*window.session().document()->captured));
}

TEST_F(TextWindow, KeysGoThroughTheChanges) {
  panel().show_changes(true);
  const std::int32_t first = code().current_row();
  ASSERT_GE(first, 0);
  press(window, Qt::Key_F8);
  const std::int32_t second = code().current_row();
  EXPECT_GT(second, first);
  EXPECT_TRUE(is_in_view(second));
  press(window, Qt::Key_F8, Qt::ShiftModifier);
  EXPECT_EQ(code().current_row(), first);
}

TEST_F(TextWindow, TextIsFoundAsLettersAreTyped) {
  code().setFocus();
  press(window, Qt::Key_F, Qt::ControlModifier);
  EXPECT_EQ(window.focusWidget(), &panel().find_field());
  type(window, "layer7");
  const auto expected = code().rows().find("layer7");
  EXPECT_GE(expected.size(), 3u);
  EXPECT_EQ(code().current_row(), expected[0]);
  press(window, Qt::Key_Return);
  EXPECT_EQ(code().current_row(), expected[1]);
  press(window, Qt::Key_Return, Qt::ShiftModifier);
  press(window, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(code().current_row(), expected.back());
  EXPECT_TRUE(is_in_view(expected.back()));
  type(window, "!");
  EXPECT_EQ(code().find_count(), 0);
}

TEST_F(TextWindow, AnotherPlanBringsAnotherText) {
  window.set_budget({-1, 100});
  window.wait_for_plan();
  settle_text();
  EXPECT_EQ(code().rows().after()->text(), print(graph()));
  window.session().close();
  EXPECT_EQ(code().rows().count(), 0);
  EXPECT_EQ(panel().step(), -1);
}

TEST_F(TextWindow, TheStepsAreWrittenAsCsv) {
  const std::string path = folder.file("steps.csv");
  window.write_csv("text", path);
  EXPECT_EQ(read(path), steps_csv(panel().texts()));
}

// A loop has lines of its own graph: their names are not those of the plan, and a click selects the loop.
TEST_F(TextWindow, ALineInALoopSelectsTheLoop) {
  window.open(folder.write("loop.graph", R"(graph g(%x: f32[4]) {
  %s: f32[4] = scan(%x) {carried=1, trips=3} (%i: i64[], %a: f32[4]) {
    %b: f32[4] = exp(%a)
    return %b
  }
  %b: f32[4] = neg(%s)
  return %b
}
)"));
  window.wait_for_plan();
  settle_text();
  const std::int32_t row = row_with("    %b:");
  ASSERT_GE(row, 0);
  click_at(code().middle_of(row, "%b"));
  EXPECT_EQ(window.session().selection().node, graph().values[static_cast<std::size_t>(value("s"))].node);
}

}  // namespace
}  // namespace tapedeck::viewer
