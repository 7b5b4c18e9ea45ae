// How fast the viewer follows a hand: pictures while the budget is dragged, the final plan after the release, frames under the
// mouse. Runs without a display.
//
//   QT_QPA_PLATFORM=offscreen viewer_bench FILE.tape...
#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/window.h>

#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>
#include <QtGui/QMouseEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QSlider>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace tapedeck::viewer {
namespace {

double ms(const QElapsedTimer& clock) { return static_cast<double>(clock.nsecsElapsed()) / 1e6; }

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of.empty() ? 0 : of[of.size() / 2];
}

void spin_until(const std::function<bool()>& done) {
  while (!done()) QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 20);
}

// The longest time between two passes of the event loop while it runs.
class Watchdog {
 public:
  Watchdog() {
    clock_.start();
    timer_.setInterval(1);
    QObject::connect(&timer_, &QTimer::timeout, [this] {
      longest_ = std::max(longest_, ms(clock_));
      clock_.restart();
    });
    timer_.start();
  }
  double longest() const { return longest_; }

 private:
  QTimer timer_;
  QElapsedTimer clock_;
  double longest_ = 0;
};

// Moves the slider 60 times a second for `seconds`, there and back. Returns the number of different plans that were shown.
int drag(MainWindow& window, double seconds) {
  QElapsedTimer clock;
  clock.start();
  int shown = 0;
  std::uint64_t last = window.session().model()->serial();
  const int moves = static_cast<int>(seconds * 60);
  for (int i = 0; i < moves; ++i) {
    const int way = i * 2 * 800 / moves;  // 0 to 1600
    window.slider().setValue(100 + (way < 800 ? 800 - way : way - 800));
    while (ms(clock) < (i + 1) * 1000.0 / 60) {
      QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
      if (window.session().model()->serial() == last) continue;
      last = window.session().model()->serial();
      ++shown;
    }
  }
  return shown;
}

std::vector<double> hover_frames(Canvas& canvas) {
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) {
    const QPointF at(100 + i * 11, 200 + i * 3);
    QMouseEvent move(QEvent::MouseMove, at, canvas.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QElapsedTimer clock;
    clock.start();
    QApplication::sendEvent(&canvas, &move);
    canvas.repaint();
    times.push_back(ms(clock));
    spin_until([&] { return canvas.settled(); });
  }
  return times;
}

void measure(const char* path) {
  MainWindow::Setup setup;
  setup.remember = false;
  QElapsedTimer clock;
  clock.start();
  MainWindow window(setup);
  window.resize(1600, 900);
  window.show();
  window.open(path);
  spin_until([&] { return window.session().model() != nullptr; });
  const double first = ms(clock);
  Watchdog watchdog;
  const int unprepared = drag(window, 3);  // the search is still being prepared
  spin_until([&] { return !window.session().solving(); });
  const double prepared = ms(clock);
  spin_until([&] { return !window.worker().fills(); });
  const double filled = ms(clock);
  const int shown = drag(window, 3);
  QElapsedTimer release;
  release.start();
  window.slider().setValue(377);
  spin_until([&] { return !window.session().solving(); });
  const double after_release = ms(release);
  const double hover = median(hover_frames(window.memory_canvas()));
  std::printf("%-28s %6d %8.0f %8.0f %8.0f %8.1f %8.1f %8.0f %8.1f %8.1f\n", path, window.session().model()->nodes(), first,
              prepared, filled, unprepared / 3.0, shown / 3.0, after_release, hover, watchdog.longest());
}

}  // namespace
}  // namespace tapedeck::viewer

int main(int argc, char** argv) {
  tapedeck::viewer::Application app(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%-28s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "file", "nodes", "first ms", "final ms", "filled", "new/s",
              "new/s", "release", "hover", "longest");
  std::printf("%-28s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "", "plan", "plan", "ms", "at once", "filled", "ms", "ms",
              "block ms");
  try {
    for (int i = 1; i < argc; ++i) tapedeck::viewer::measure(argv[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "viewer_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
