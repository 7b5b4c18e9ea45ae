// A walk of a person through the window, with real events: open resnet50, drag the budget to half, find the value that costs
// most to recompute, force it kept, see the new curve and price, undo, export the picture.
#include <tapedeck/tests/viewer/ui_window.h>
#include <tapedeck/tests/viewer/walked_model.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <tapedeck/viewer/export_picture.h>

#include <QtGui/QImage>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTextBrowser>

#include <algorithm>
#include <string>

namespace tapedeck::viewer {
namespace {

TEST(Walk, HalfTheMemoryOfResnet50AndOneValueKept) {
  const Folder folder;
  const std::string path = folder.file("step.tape");
  TapeFile file = tape_of(record_model(*find_model(kWalkedModel), {.abstract = true}));
  // Further plans keep the recorded order, too, which halves the time of the searches.
  file.plan = make_plan(file.captured, {.ordering = Ordering::recorded, .find_floor = false});
  save_tape(path, file);
  MainWindow window{{Renderer::soft, "software", false, false}};  // plans only what is asked for: the walk waits for plans
  window.resize(1600, 900);
  window.show();
  window.activateWindow();
  window.open(path);
  window.wait_for_plan();
  const std::int64_t keep_all = window.session().model()->plan().keep_all_peak_bytes;

  // The line of the budget is dragged to half in the picture of live bytes. The line follows at once.
  Canvas& curve = window.curve_canvas();
  settle(curve);
  send_mouse(curve, QEvent::MouseMove, window.curve().place_of_bytes(window.session().model()->plan().peak_bytes));
  send_mouse(curve, QEvent::MouseButtonPress, window.curve().place_of_bytes(window.session().model()->plan().peak_bytes),
             Qt::LeftButton);
  settle(curve);
  for (int percent = 95; percent >= 50; percent -= 5) {
    send_mouse(curve, QEvent::MouseMove, window.curve().place_of_bytes(keep_all * percent / 100));
    settle(curve);
    EXPECT_NEAR(static_cast<double>(window.session().asked_budget()), static_cast<double>(keep_all) * percent / 100,
                static_cast<double>(keep_all) / 40);
  }
  send_mouse(curve, QEvent::MouseButtonRelease, window.curve().place_of_bytes(keep_all / 2), Qt::LeftButton);
  window.wait_for_plan();
  const Plan half = window.session().model()->plan();
  ASSERT_TRUE(half.feasible);
  EXPECT_LE(half.peak_bytes, half.budget_bytes);
  EXPECT_GT(half.recomputed_nodes, 0);

  // The first row of the table is the value whose further runs cost most.
  window.show_panel("recompute");
  QTreeView* table = window.recompute().table().table();
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, 0));
  ASSERT_TRUE(spin_until([&] { return window.recompute().settled(); }));
  const ValueId v = window.session().selection().value;
  const std::string name = window.session().model()->values().entry(v).name;
  for (const ValueEntry& e : window.session().model()->values().log())
    EXPECT_LE(e.again_us(), window.session().model()->values().entry(v).again_us());
  const double price = window.recompute().prices().anew->cost_us;

  // It is kept, and the new plan costs what the price said.
  click_widget(*window.recompute().keep_button());
  window.wait_for_plan();
  const Plan& kept = window.session().model()->plan();
  EXPECT_EQ(window.session().model()->values().entry(window.session().selection().value).name, name);
  EXPECT_EQ(window.session().model()->values().entry(window.session().selection().value).choice, ValueChoice::kept);
  EXPECT_DOUBLE_EQ(kept.cost_us, price);
  EXPECT_LE(kept.peak_bytes, kept.budget_bytes);
  EXPECT_EQ(kept.budget_bytes, half.budget_bytes);

  // Undone by a key, it is as before.
  press(window, Qt::Key_Z, Qt::ControlModifier);
  window.wait_for_plan();
  EXPECT_EQ(window.session().model()->plan().cost_us, half.cost_us);
  EXPECT_EQ(window.session().model()->plan().peak_bytes, half.peak_bytes);

  const std::string picture = folder.file("half.png");
  export_widget(picture, window, window.width(), window.height());
  EXPECT_EQ(QImage(QString::fromStdString(picture)).size(), window.size());
}

}  // namespace
}  // namespace tapedeck::viewer
