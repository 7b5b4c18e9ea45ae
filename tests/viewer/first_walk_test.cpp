// The walk of somebody who opens the program for the first time, with real events: from the start page record resnet50, take
// half of its memory, keep one value, compare with the plan before, replay, see planned and measured agree, look at a freed
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

#include <cmath>
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

// A value that the plan recomputes.
ValueId recomputed(const MainWindow& window) {
  for (const ValueEntry& e : window.session().model()->values().log())
    if (e.choice == ValueChoice::recomputed) return e.copies.front();
  return kNone;
}

TEST(FirstWalk, FromTheStartPageToAFreedActivation) {
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

  // Half of the memory: the keys of the slider.
  const std::int64_t keep_all = window.session().model()->plan().keep_all_peak_bytes;
  window.slider().setFocus();
  const std::int64_t floor = window.session().model()->plan().floor_bytes;
  const std::int64_t wanted = std::max(keep_all / 2, floor + (keep_all - floor) / 4);
  for (int i = 0; i < kBudgetSteps && (window.budget().bytes < 0 || window.budget().bytes > wanted); ++i)
    press(window.slider(), Qt::Key_PageDown);
  window.wait_for_plan();
  const std::shared_ptr<const PlanModel> half = window.session().shared_model();
  ASSERT_TRUE(half->plan().feasible);
  ASSERT_GT(half->plan().recomputed_nodes, 0);

  // One value is kept by its key.
  const ValueId v = recomputed(window);
  ASSERT_NE(v, kNone);
  const std::string name = half->values().entry(v).name;
  window.memory_canvas().setFocus();
  window.session().select_value(v);
  press(window, Qt::Key_K);
  window.wait_for_plan();
  const std::shared_ptr<const PlanModel> kept = window.session().shared_model();
  ASSERT_NE(kept, half);

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

  // Planned and measured agree.
  press(window, Qt::Key_M, Qt::ControlModifier);
  window.wait_for_measuring();
  ASSERT_EQ(window.measuring_error(), "");
  const MeasuredRun* run = window.session().measurements().of_plan(*kept);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->observed_peak_bytes, kept->plan().peak_bytes);

  // A value whose bytes are gone at the end is computed again.
  window.show_panel("inspector");
  press(window, Qt::Key_F5);
  InspectorPanel& inspector = window.inspector();
  ASSERT_TRUE(spin_until([&] { return inspector.settled(); }));
  EXPECT_EQ(inspector.at().done, kept->nodes());
  for (const ValueEntry& e : kept->values().log()) {
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
