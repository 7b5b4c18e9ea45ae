// The walks of a person through the window, with real events. They are one test, because the searches of resnet50 take most of
// its time: from the start page record it, drag the budget to half, find the value that costs most to recompute, force it kept,
// see the new curve and price, compare with the plan before, undo, replay, see planned and measured agree, look at a freed
// activation, export the picture.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/ui_window.h>
#include <tapedeck/tests/viewer/walked_model.h>

#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/start/start_page.h>

#include <QtGui/QImage>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

namespace tapedeck::viewer {
namespace {

void record_from_start_page(MainWindow& window, const std::string& path) {
  StartPage& page = window.start_page();
  page.models().setCurrentText(QString::fromLatin1(kWalkedModel));
  page.size("batch").setValue(8);
  if (page.size("image").isVisibleTo(&page)) page.size("image").setValue(64);
  if (page.size("width").isVisibleTo(&page)) page.size("width").setValue(8);
  page.file().setText(QString::fromStdString(path));
  click_widget(*page.findChild<QPushButton*>(QStringLiteral("record")));
  page.wait();
  ASSERT_TRUE(window.opening()) << page.message().toStdString();
  window.wait_for_plan();
}

// Drags the line of the budget by the mouse, in the picture of live bytes, from the peak to `wanted` bytes.
void drag_budget(MainWindow& window, std::int64_t keep_all, std::int64_t wanted) {
  Canvas& curve = window.curve_canvas();
  settle(curve);
  const ImVec2 line = window.curve().place_of_bytes(window.session().model()->plan().peak_bytes);
  send_mouse(curve, QEvent::MouseMove, line);
  send_mouse(curve, QEvent::MouseButtonPress, line, Qt::LeftButton);
  settle(curve);
  for (int percent = 95; keep_all * percent / 100 > wanted; percent -= 5) {
    send_mouse(curve, QEvent::MouseMove, window.curve().place_of_bytes(keep_all * percent / 100));
    settle(curve);
    EXPECT_NEAR(static_cast<double>(window.session().asked_budget()), static_cast<double>(keep_all) * percent / 100,
                static_cast<double>(keep_all) / 40);
  }
  send_mouse(curve, QEvent::MouseMove, window.curve().place_of_bytes(wanted));
  send_mouse(curve, QEvent::MouseButtonRelease, window.curve().place_of_bytes(wanted), Qt::LeftButton);
  window.wait_for_plan();
}

TEST(Walk, FromTheStartPageOverHalfTheMemoryToAFreedActivation) {
  const Folder folder;
  MainWindow::Setup setup{Renderer::soft, "software", false, false};
  setup.starts = true;
  MainWindow window(setup);
  window.resize(1600, 900);
  window.show();
  window.activateWindow();
  ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
  record_from_start_page(window, folder.file("step.tape"));
  ASSERT_FALSE(window.start_page_is_shown());

  // The line of the budget is dragged to half in the picture of live bytes. The line follows at once.
  const std::int64_t keep_all = window.session().model()->plan().keep_all_peak_bytes;
  const std::int64_t floor = window.session().model()->plan().floor_bytes;
  drag_budget(window, keep_all, std::max(keep_all / 2, floor + (keep_all - floor) / 4));
  const std::shared_ptr<const PlanModel> half = window.session().shared_model();
  ASSERT_TRUE(half->plan().feasible);
  EXPECT_LE(half->plan().peak_bytes, half->plan().budget_bytes);
  ASSERT_GT(half->plan().recomputed_nodes, 0);

  // The first row of the table is the value whose further runs cost most.
  window.show_panel("recompute");
  RowsView* table = window.recompute().table().table();
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, 0));
  ASSERT_TRUE(spin_until([&] { return window.recompute().settled(); }));
  const ValueId v = window.session().selection().value;
  const std::string name = half->values().entry(v).name;
  for (const ValueEntry& e : half->values().log()) EXPECT_LE(e.again_us(), half->values().entry(v).again_us());
  const double price = window.recompute().prices().anew->cost_us;

  // It is kept, and the new plan costs what the price said.
  click_widget(*window.recompute().keep_button());
  window.wait_for_plan();
  const std::shared_ptr<const PlanModel> kept = window.session().shared_model();
  ASSERT_NE(kept, half);
  EXPECT_EQ(kept->values().entry(window.session().selection().value).name, name);
  EXPECT_EQ(kept->values().entry(window.session().selection().value).choice, ValueChoice::kept);
  EXPECT_DOUBLE_EQ(kept->plan().cost_us, price);
  EXPECT_LE(kept->plan().peak_bytes, kept->plan().budget_bytes);
  EXPECT_EQ(kept->plan().budget_bytes, half->plan().budget_bytes);

  // The comparison with the plan before says so.
  press(window, Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(spin_until([] { return is_compared(find_compare()); }));
  const MatchedPlans& plans = compare_picture(*find_compare()).plans();
  EXPECT_EQ(plans.side(0).model, half);
  EXPECT_EQ(plans.side(1).model, kept);
  EXPECT_EQ(kept->values().entry(plans.other(0, v)).choice, ValueChoice::kept);
  find_compare()->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  window.activateWindow();
  ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));

  // Undone by a key, it is as before.
  press(window, Qt::Key_Z, Qt::ControlModifier);
  window.wait_for_plan();
  EXPECT_EQ(window.session().model()->plan().cost_us, half->plan().cost_us);
  EXPECT_EQ(window.session().model()->plan().peak_bytes, half->plan().peak_bytes);

  // Planned and measured agree.
  const std::shared_ptr<const PlanModel> shown = window.session().shared_model();
  press(window, Qt::Key_M, Qt::ControlModifier);
  window.wait_for_measuring();
  ASSERT_EQ(window.measuring_error(), "");
  const MeasuredRun* run = window.session().measurements().of_plan(*shown);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->observed_peak_bytes, shown->plan().peak_bytes);

  // A value whose bytes are gone at the end is computed again.
  window.show_panel("inspector");
  press(window, Qt::Key_F5);
  InspectorPanel& inspector = window.inspector();
  ASSERT_TRUE(spin_until([&] { return inspector.settled(); }));
  EXPECT_EQ(inspector.at().done, shown->nodes());
  for (const ValueEntry& e : shown->values().log()) {
    if (e.reason != Reason::saved || e.readers.empty()) continue;
    window.session().select_value(e.copies.front());
    ASSERT_TRUE(spin_until([&] { return inspector.settled(); }));
    if (inspector.at().seen.nodes_again > 0) break;
  }
  EXPECT_GT(inspector.at().seen.nodes_again, 0);
  EXPECT_EQ(inspector.at().seen.error, "");
  EXPECT_TRUE(std::isfinite(inspector.at().seen.statistics.mean));

  const std::string picture = folder.file("end.png");
  export_widget(picture, window, window.width(), window.height());
  EXPECT_EQ(QImage(QString::fromStdString(picture)).size(), window.size());
}

}  // namespace
}  // namespace tapedeck::viewer
