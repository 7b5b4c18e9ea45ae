// Takes the tour with real events: each step asks for something, a person does it, and the card sees it.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/start/start_page.h>
#include <tapedeck/viewer/start/tour.h>

#include <tapedeck/capture/file/record_tape.h>

#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>

#include <algorithm>
#include <functional>
#include <vector>

namespace tapedeck::viewer {
namespace {

QRect card_of(const Tour& tour) { return {tour.pos(), tour.size()}; }

// A window without a file.
class TourFromTheStartPage : public ::testing::Test {
 protected:
  TourFromTheStartPage() : window(setup()) {
    window.resize(1280, 720);
    activate();
  }
  static MainWindow::Setup setup() {
    MainWindow::Setup setup{Renderer::soft, "software", false, false};
    setup.starts = true;
    return setup;
  }
  void activate() {
    window.show();
    window.activateWindow();
    ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
  }
  void ask_for_the_tour() {
    click_widget(*window.start_page().findChild<QPushButton*>(QStringLiteral("tour")));
    EXPECT_TRUE(window.start_page().busy());
    EXPECT_FALSE(window.tour().runs());
  }
  QString task() { return window.tour().findChildren<QLabel*>()[2]->text(); }

  // ---- what the person does at each step ----
  void click_a_value() {
    settle(window.memory_canvas());
    const std::vector<ValueEntry>& log = window.session().model()->values().log();
    const auto largest = std::max_element(log.begin(), log.end(), [](const ValueEntry& a, const ValueEntry& b) {
      return (a.choice == ValueChoice::kept ? a.bytes : 0) < (b.choice == ValueChoice::kept ? b.bytes : 0);
    });
    const auto place = window.memory().place_of(largest->copies.front());
    ASSERT_TRUE(place) << largest->name;
    click(window.memory_canvas(), *place);
  }
  void lower_the_budget() {
    window.slider().setFocus();
    press(window.slider(), Qt::Key_PageDown);
    window.wait_for_plan();
  }
  void keep_the_value() {
    const ValueId v = window.session().selection().value;
    ASSERT_NE(v, kNone);
    EXPECT_EQ(window.session().model()->values().entry(v).choice, ValueChoice::recomputed);
    press(window, Qt::Key_K);
    window.wait_for_plan();
  }
  void compare() { press(window, Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier); }
  void leave_the_comparison() {
    ASSERT_TRUE(spin_until([] { return is_compared(find_compare()); }));
    find_compare()->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    activate();
  }
  void measure() {
    press(window, Qt::Key_M, Qt::ControlModifier);
    window.wait_for_measuring();
    EXPECT_EQ(window.measuring_error(), "");
  }

  MainWindow window;
};

TEST_F(TourFromTheStartPage, BeginsWithTheSample) {
  ask_for_the_tour();
  ASSERT_TRUE(spin_until([&] { return window.tour().runs(); }));
  EXPECT_FALSE(window.start_page_is_shown());
  EXPECT_EQ(window.budget().percent, 60);
}

TEST_F(TourFromTheStartPage, SeesEachTaskOnceItIsDone) {
  const Folder folder;
  save_tape(folder.file("step.tape"), record_tape("cnn", small_options(*find_model("cnn"))));
  window.open(folder.file("step.tape"), {-1, 85});
  window.wait_for_plan();
  find_command("help.tour")->run(window);
  Tour& tour = window.tour();
  const std::vector<std::function<void()>> tasks = {
      [&] { click_a_value(); },
      [&] { lower_the_budget(); },
      [&] { keep_the_value(); },
      [&] { compare(); },
      [&] { measure(); },
      [&] { press(window, Qt::Key_F5); },
      [&] { press(window, Qt::Key_L); },
      [&] { press(window, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier); },
  };
  ASSERT_EQ(tour.count(), static_cast<int>(tasks.size()));
  for (int i = 0; i < tour.count(); ++i) {
    ASSERT_EQ(tour.step(), i);
    EXPECT_FALSE(tour.task_is_done()) << i;
    EXPECT_TRUE(task().startsWith(QStringLiteral("Try it: "))) << task().toStdString();
    tasks[static_cast<std::size_t>(i)]();
    ASSERT_TRUE(spin_until([&] { return tour.task_is_done(); })) << i;
    EXPECT_TRUE(task().startsWith(QStringLiteral("✓ Done: "))) << task().toStdString();
    if (find_compare() != nullptr) leave_the_comparison();
    click_widget(tour.next_button());
  }
  EXPECT_FALSE(tour.runs());
  EXPECT_FALSE(tour.isVisible());
  EXPECT_FALSE(tour.frame().isVisible());
}

TEST_F(TourFromTheStartPage, DoesNotBeginWithAFileThatSomebodyOpensInstead) {
  const Folder folder;
  ask_for_the_tour();
  EXPECT_TRUE(window.start_page().cancel());
  window.start_opening(folder.write("step.graph", training_graph(4)));
  window.wait_for_plan();
  EXPECT_FALSE(window.tour().runs());
}

// The tour of a file that is open.
class TourWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    find_command("help.tour")->run(window);
  }
  Tour& tour() { return window.tour(); }
};

TEST_F(TourWindow, StepsAreShownInTheirPlacesAndCanBeSkipped) {
  for (int i = 0; i < tour().count(); ++i) {
    ASSERT_EQ(tour().step(), i);
    if (const QWidget* target = tour().target()) {
      EXPECT_TRUE(target->isVisible()) << i;
      EXPECT_EQ(tour().frame().geometry(), QRect(target->mapTo(&window, QPoint(0, 0)), target->size())) << i;
    }
    EXPECT_EQ(tour().back_button().isEnabled(), i > 0);
    click_widget(tour().next_button());
  }
  EXPECT_FALSE(tour().runs());
  window.begin_tour();
  click_widget(tour().next_button());
  click_widget(tour().back_button());
  EXPECT_EQ(tour().step(), 0);
  click_widget(tour().end_button());
  EXPECT_FALSE(tour().runs());
}

TEST_F(TourWindow, EscapeEndsItOnceNothingIsSelected) {
  window.session().select_value(value("h5"));
  ASSERT_NE(window.session().selection().value, kNone);
  press(window, Qt::Key_Escape);
  EXPECT_TRUE(tour().runs());
  EXPECT_EQ(window.session().selection().value, kNone);
  press(window, Qt::Key_Escape);
  EXPECT_FALSE(tour().runs());
}

TEST_F(TourWindow, TheCardFollowsTheWindow) {
  for (const QSize size : {QSize(800, 600), QSize(1920, 1080)}) {
    window.resize(size);
    QCoreApplication::processEvents();
    for (int i = 0; i < tour().count(); ++i) {
      tour().go(i);
      EXPECT_TRUE(window.rect().contains(card_of(tour()))) << i << " at " << size.width();
    }
  }
}

TEST_F(TourWindow, AnotherFileEndsIt) {
  window.open(folder.write("other.graph", training_graph(4)));
  EXPECT_FALSE(tour().runs());
}

}  // namespace
}  // namespace tapedeck::viewer
