// The window that watches a running program, by real events.
#include <tapedeck/tests/viewer/live/live_folder.h>
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/live_commands.h>

#include <QtWidgets/QCheckBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTreeWidget>

namespace tapedeck::viewer {
namespace {

class LiveUi : public ::testing::Test {
 protected:
  LiveUi() : folder(base.file("live")), main({Renderer::soft, "software", false, false}) {
    folder.add_texts();
    folder.add_calls(0, 200);
    for (std::uint64_t s = 1; s <= 10; ++s) folder.add(live::StepRecord{s * 20, 1, 100, s});
  }
  void SetUp() override {
    window = make_live_window(main, base.file("live"));
    window->resize(1000, 700);
    window->show();
    window->finish();
    settle(canvas());
  }
  Canvas& canvas() { return static_cast<Canvas&>(*window->canvas()); }
  void show_all() {
    window->finish();
    settle(canvas());
  }
  ImVec2 middle() { return {static_cast<float>(canvas().width()) / 2, static_cast<float>(canvas().height()) / 2}; }
  std::string status() { return window->status()->text().toStdString(); }

  Folder base;
  LiveFolder folder;
  MainWindow main;
  std::unique_ptr<LiveWindow> window;
};

TEST_F(LiveUi, ShowsCallsModulesMemoryAndState) {
  EXPECT_EQ(status().find("train (process 4711) is running · 200 calls · 10 steps"), 0u) << status();
  EXPECT_NE(status().find("peak 200.00 KiB"), std::string::npos);
  const QAbstractItemModel& rows = *window->table()->model();
  ASSERT_EQ(rows.rowCount(), 200);
  EXPECT_EQ(rows.index(3, LiveRows::kOp).data().toString(), "relu");
  EXPECT_EQ(rows.index(3, LiveRows::kModule).data().toString(), "block.0.fc1");
  EXPECT_EQ(rows.index(3, LiveRows::kResult).data().toString(), "f32[64,40]");
  EXPECT_EQ(rows.index(3, LiveRows::kLive).data().toString(), "130.00 KiB");
  EXPECT_EQ(rows.index(3, LiveRows::kSite).data().toString(), "net.cpp:10");
  ASSERT_EQ(window->modules()->topLevelItemCount(), 2);
  EXPECT_EQ(window->modules()->topLevelItem(0)->text(0), "block.0");
}

TEST_F(LiveUi, GrowsByItselfAndFollows) {
  EXPECT_TRUE(window->follows());
  folder.add_calls(200, 1000);
  ASSERT_TRUE(spin_until([&] { return window->table()->model()->rowCount() == 1000; }));
  settle(canvas());
  EXPECT_EQ(window->picture().view().high, 1000);
  const QScrollBar& bar = *window->table()->verticalScrollBar();
  EXPECT_EQ(bar.value(), bar.maximum());
  click_widget(*window->follow_box());
  EXPECT_FALSE(window->follows());
}

TEST_F(LiveUi, TheWheelZoomsAndADragEndsFollowing) {
  const Range before = window->picture().view();
  wheel(canvas(), middle(), 3);
  EXPECT_LT(window->picture().view().size(), before.size() * 0.6);
  EXPECT_EQ(window->picture().view().high, before.high);  // the newest call stays at the edge
  EXPECT_TRUE(window->follows());
  send_mouse(canvas(), QEvent::MouseMove, middle());
  send_mouse(canvas(), QEvent::MouseButtonPress, middle(), Qt::LeftButton);
  settle(canvas());
  QMouseEvent move(QEvent::MouseMove, QPointF(static_cast<double>(middle().x) + 90, static_cast<double>(middle().y)),
                   canvas().mapToGlobal(QPointF(static_cast<double>(middle().x) + 90, static_cast<double>(middle().y))),
                   Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&canvas(), &move);
  settle(canvas());
  EXPECT_LT(window->picture().view().high, before.high);
  EXPECT_FALSE(window->follows());
  EXPECT_FALSE(window->follow_box()->isChecked());
  const Range dragged = window->picture().view();
  folder.add_calls(200, 400);
  show_all();
  EXPECT_EQ(window->picture().view().low, dragged.low);  // what is looked at stays
}

TEST_F(LiveUi, TheButtonAsksForTheNextStep) {
  EXPECT_EQ(window->capture_button()->text(), "Capture next step");
  click_widget(*window->capture_button());
  EXPECT_EQ(folder.request(), "capture\n");
}

TEST_F(LiveUi, KeysCaptureFollowAndFit) {
  window->activateWindow();
  ASSERT_TRUE(spin_until([&] { return window->isActiveWindow(); }));
  press(*window, Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(folder.request(), "capture\n");
  press(*window, Qt::Key_F);
  EXPECT_FALSE(window->follows());
  wheel(canvas(), middle(), 3);
  EXPECT_LT(window->picture().view().size(), 150);
  press(*window, Qt::Key_H);
  EXPECT_TRUE(window->follows());
  show_all();
  EXPECT_EQ(window->picture().view().size(), 200);
}

TEST(LiveUiWithoutSteps, ACaptureLastsUntilItIsEnded) {
  const Folder base;
  const LiveFolder folder(base.file("live"));
  folder.add_texts();
  folder.add_calls(0, 50);
  MainWindow main({Renderer::soft, "software", false, false});
  const std::unique_ptr<LiveWindow> window = make_live_window(main, folder.path());
  window->show();
  window->finish();
  EXPECT_EQ(window->capture_button()->text(), "Begin capture");
  click_widget(*window->capture_button());
  EXPECT_EQ(folder.request(), "begin\n");
  EXPECT_EQ(window->capture_button()->text(), "End capture");
  click_widget(*window->capture_button());
  EXPECT_EQ(folder.request(), "end\n");
  EXPECT_EQ(window->capture_button()->text(), "Begin capture");
}

TEST_F(LiveUi, AClickOnACaptureOpensItAsADocument) {
  std::ofstream(folder.path() + "/capture-1.graph") << training_graph(4);
  folder.add(live::CapturedRecord{1, "", "the next step is being captured"});
  folder.add(live::CapturedRecord{2, "capture-1.graph", "a step"});
  show_all();
  ASSERT_EQ(window->captures()->count(), 2);
  EXPECT_EQ(window->captures()->item(0)->text(), "the next step is being captured");
  const QRect at = window->captures()->visualItemRect(window->captures()->item(1));
  QWidget& list = *window->captures()->viewport();
  for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
    QMouseEvent event(type, at.center(), list.mapToGlobal(at.center()), Qt::LeftButton,
                      type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&list, &event);
  }
  main.wait_for_plan();
  ASSERT_NE(main.session().model(), nullptr);
  EXPECT_TRUE(main.isVisible());
}

TEST_F(LiveUi, SaysThatTheProgramDiedAndKeepsWhatCame) {
  folder.die();
  ASSERT_TRUE(spin_until([&] { return status().find("died") != std::string::npos; }));
  EXPECT_FALSE(window->capture_button()->isEnabled());
  EXPECT_EQ(window->table()->model()->rowCount(), 200);
}

TEST_F(LiveUi, SaysThatTheProgramHasEnded) {
  folder.add(live::EndedRecord{5, "over"});
  folder.die();
  ASSERT_TRUE(spin_until([&] { return status().find("has ended") != std::string::npos; }));
}

TEST_F(LiveUi, SurvivesTheRemovalOfItsFolder) {
  std::filesystem::remove_all(folder.path());
  ASSERT_TRUE(spin_until([&] { return status().find("died") != std::string::npos; }));
  EXPECT_EQ(window->table()->model()->rowCount(), 200);
}

TEST_F(LiveUi, ListsTheProgramsAndEnterWatchesOne) {
  LiveFolder second(base.file("live"), "other");
  second.add_texts();
  second.add_calls(0, 7);
  window->list_programs();
  ASSERT_EQ(window->programs()->topLevelItemCount(), 2);
  EXPECT_FALSE(window->watches());
  QTreeWidget& list = *window->programs();
  for (int i = 0; i < 2; ++i)
    if (list.topLevelItem(i)->text(0) == "other") list.setCurrentItem(list.topLevelItem(i));
  list.setFocus();
  window->activateWindow();
  ASSERT_TRUE(spin_until([&] { return window->isActiveWindow(); }));
  press(list, Qt::Key_Return);
  ASSERT_TRUE(window->watches());
  window->finish();
  EXPECT_EQ(window->table()->model()->rowCount(), 7);
}

TEST_F(LiveUi, AMillionCallsAreShown) {
  for (std::uint64_t i = 200; i < 1'000'200; i += 100'000) folder.add_calls(i, i + 100'000);
  ASSERT_TRUE(spin_until([&] { return window->table()->model()->rowCount() == 1'000'200; }));
  settle(canvas());
  EXPECT_EQ(window->table()->model()->index(1'000'199, LiveRows::kCall).data().toString(), "1,000,199");
}

TEST_F(LiveUi, IsDrawnUnattended) {
  Options options;
  options.live = folder.path();
  options.shot = base.file("live.png");
  options.csv = base.file("live.csv");
  options.width = 800, options.height = 600;
  EXPECT_EQ(take_live_shot(options), kOk);
  EXPECT_EQ(QImage(QString::fromStdString(options.shot)).size(), QSize(800, 600));
  const std::string csv = read(options.csv);
  EXPECT_EQ(
      csv.find(
          "call,us,op,module,results,bytes,live_bytes,phase,thread,file,line\n0,0.0,matmul,block.0.fc1,\"f32[64,40]\",10240,"),
      0u)
      << csv.substr(0, 200);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 201);
}

TEST(LiveOptions, AreRead) {
  const auto parse = [](const std::vector<std::string>& arguments, Options* options) {
    std::string error;
    *options = {};
    return parse_options(arguments, options, &error) ? "" : error;
  };
  Options options;
  EXPECT_EQ(parse({"--live"}, &options), "");
  EXPECT_EQ(options.live, "");
  EXPECT_EQ(parse({"--live", "4711"}, &options), "");
  EXPECT_EQ(options.live, "4711");
  EXPECT_EQ(parse({"--live", "--shot", "a.png"}, &options), "");
  EXPECT_EQ(options.live, "");
  EXPECT_EQ(parse({"--live=/tmp/x", "--export", "a.csv"}, &options), "");
  EXPECT_EQ(options.live, "/tmp/x");
  EXPECT_NE(parse({"a.tape", "--live"}, &options), "");
  EXPECT_NE(parse({"--live", "--panel", "nodes", "--shot", "a.png"}, &options), "");
}

}  // namespace
}  // namespace tapedeck::viewer
