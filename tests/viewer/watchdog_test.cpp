// A large file is opened, its budget dragged and its values selected, while a watchdog looks for work of the UI thread that a
// person would feel. The bound is far above what the viewer needs, and counts only the time in which the thread worked, so that
// a busy machine does not fail the test.
#include <tapedeck/tests/viewer/ui_window.h>
#include <tapedeck/tests/viewer/watchdog.h>

#include <cstdio>

namespace tapedeck::viewer {
namespace {

// Milliseconds. Work of seconds is to be found, on machines of any speed, and under sanitizers.
#ifdef TAPEDECK_SANITIZED
constexpr double kBound = 500;
#else
constexpr double kBound = 100;
#endif
constexpr double kMostWait = 4000;  // on the clock: a thread that waits for a plan would wait longer
constexpr int kLayers = 5000;       // 20,001 nodes

void spin_for(int ms) {
  QElapsedTimer clock;
  clock.start();
  while (clock.elapsed() < ms) QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
}

void drag_budget(MainWindow& window) {
  for (int i = 0; i < 30; ++i) {
    window.slider().setValue(900 - 20 * i);
    spin_for(16);
  }
}

void select_and_zoom(MainWindow& window) {
  Session& session = window.session();
  for (int i = 0; i < 10; ++i) {
    session.select_node(session.model()->nodes() / 11 * (i + 1));
    session.zoom(0.7, 1);
    spin_for(10);
  }
  session.select_node(session.model()->peak_node());
  spin_for(10);
  session.clear_selection();
  session.fit_all();
  spin_for(10);
}

TEST(Responsive, ALargeFileNeverBlocksTheUiThreadForLong) {
  Folder folder;
  const std::string path = folder.write("large.graph", training_graph(kLayers));
  MainWindow window{{Renderer::soft, "software", false}};
  window.resize(1600, 900);
  window.show();
  QCoreApplication::processEvents();
  Watchdog watchdog(kBound);
  const auto step = [&](const char* name, const auto& work) {
    watchdog.restart();
    work();
    std::printf("%s: the longest block is %.0f ms of work\n", name, watchdog.longest_work());
    EXPECT_EQ(watchdog.blocks(), 0) << name << ": blocks of more than " << kBound << " ms of work; the longest has "
                                    << watchdog.longest_work() << " ms";
    EXPECT_LT(watchdog.longest(), kMostWait) << name;
  };
  step("opening", [&] {
    window.start_opening(path);
    ASSERT_TRUE(spin_until([&] { return window.session().model() != nullptr; }));
  });
  ASSERT_EQ(window.session().document()->captured->node_count(), 4 * kLayers + 1);
  step("dragging", [&] { drag_budget(window); });
  step("selecting", [&] { select_and_zoom(window); });
}

}  // namespace
}  // namespace tapedeck::viewer
