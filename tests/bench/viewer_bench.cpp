// How fast the viewer follows a hand: pictures while the budget is dragged, the final plan after the release, frames under the
// mouse. Runs without a display.
//
//   QT_QPA_PLATFORM=offscreen viewer_bench FILE.tape...
//   QT_QPA_PLATFORM=offscreen viewer_bench --large FILE...     # does not wait for final plans
//   QT_QPA_PLATFORM=offscreen viewer_bench --large 25000       # a training step of so many layers: 100,001 nodes
//   QT_QPA_PLATFORM=offscreen viewer_bench --frames FILE.tape  # the file holds its plan; nothing works in the background
//   QT_QPA_PLATFORM=offscreen viewer_bench --graph 25000       # the layout of the graph, and frames while it is moved
//
// --frames counts the time of the UI thread itself, too, so that other programs on the machine hardly change the numbers.
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/tests/viewer/plans.h>
#include <tapedeck/tests/viewer/watchdog.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/graph/graph_layout.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/window.h>

#include <QtCore/QElapsedTimer>
#include <QtCore/QTemporaryDir>
#include <QtGui/QMouseEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSlider>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
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

// The milliseconds of a frame: on the clock, and those in which the UI thread worked.
struct FrameTime {
  double clock = 0, work = 0;
};

template <class Frame>
FrameTime timed(Frame&& frame) {
  QElapsedTimer clock;
  clock.start();
  const double before = Watchdog::thread_ms();
  frame();
  const double work = Watchdog::thread_ms() - before;
  return {ms(clock), work};
}

FrameTime median(const std::vector<FrameTime>& of) {
  std::vector<double> clock, work;
  for (const FrameTime& frame : of) {
    clock.push_back(frame.clock);
    work.push_back(frame.work);
  }
  return {median(clock), median(work)};
}

std::vector<FrameTime> hover_frames(Canvas& canvas) {
  std::vector<FrameTime> times;
  for (int i = 0; i < 60; ++i) {
    const QPointF at(100 + i * 11, 200 + i * 3);
    QMouseEvent move(QEvent::MouseMove, at, canvas.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    times.push_back(timed([&] {
      QApplication::sendEvent(&canvas, &move);
      canvas.repaint();
    }));
    spin_until([&] { return canvas.settled(); });
  }
  return times;
}

void open_file(MainWindow& window, const char* path) {
  std::string error;
  window.start_opening(path, {}, [&](const std::string& text) { error = text; });
  spin_until([&] { return window.session().model() != nullptr || !error.empty(); });
  if (!error.empty()) throw FileError(error);
}

std::vector<FrameTime> pan_frames(MainWindow& window) {
  std::vector<FrameTime> times;
  window.session().zoom(0.5, 1);
  for (int i = 0; i < 40; ++i) {
    times.push_back(timed([&] {
      window.session().pan(i < 20 ? 0.02 : -0.02, 0);
      window.memory_canvas().repaint();
      window.curve_canvas().repaint();
    }));
    spin_until([&] { return window.memory_canvas().settled() && window.curve_canvas().settled(); });
  }
  return times;
}

// The longest work at once while nodes all over the schedule are selected.
double select_nodes(MainWindow& window) {
  Watchdog watchdog;
  for (int i = 0; i < 20; ++i) {
    window.session().select_node(window.session().model()->nodes() / 21 * (i + 1));
    for (int turn = 0; turn < 10; ++turn) QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
  }
  window.session().select_node(window.session().model()->peak_node());
  for (int turn = 0; turn < 10; ++turn) QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
  return watchdog.longest_work();
}

// The longest work at once while the tables are sorted and filtered, and their ends are shown.
double use_tables(MainWindow& window) {
  Watchdog watchdog;
  const auto turn = [] {
    for (int i = 0; i < 10; ++i) QCoreApplication::processEvents(QEventLoop::AllEvents, 2);
  };
  for (const char* name : {"nodes", "values"}) {
    window.show_panel(name);
    turn();
    TablePanel& panel = window.table(name);
    for (const char* filter : {"op:opaque", "w99999", ""}) {
      panel.filter()->setText(QString::fromLatin1(filter));
      turn();
    }
    panel.table()->scrollToBottom();
    turn();
    panel.table()->selectAll();
    turn();
    panel.table()->clearSelection();
    for (const Qt::SortOrder order : {Qt::DescendingOrder, Qt::AscendingOrder}) {
      panel.table()->header()->setSortIndicator(layout_of(panel.id()).column("bytes"), order);
      turn();
    }
    std::printf("%s: %.1f ms at once so far\n", name, watchdog.longest_work());
  }
  return watchdog.longest_work();
}

double resident_mb() {
  std::ifstream status("/proc/self/statm");
  double pages = 0, resident = 0;
  status >> pages >> resident;
  return resident * 4096 / 1e6;
}

// A shown window, and a clock that has run since before the window was made.
struct ShownWindow {
  explicit ShownWindow(bool prepares = true) : window({Renderer::soft, "software", false, prepares}) {
    window.resize(1600, 900);
    window.show();
  }
  static QElapsedTimer started() {
    QElapsedTimer clock;
    clock.start();
    return clock;
  }
  QElapsedTimer clock = started();
  MainWindow window;
};

// A file of its own for a number of layers; it is removed at the end.
class LargeFile {
 public:
  explicit LargeFile(const std::string& name) : path_(name) {
    if (name.find_first_not_of("0123456789") != std::string::npos) return;
    folder_ = std::make_unique<QTemporaryDir>();
    path_ = folder_->filePath(QString::fromStdString(name + ".graph")).toStdString();
    std::ofstream(path_) << training_graph(std::stoi(name));
  }
  const std::string& path() const { return path_; }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
  std::string path_;
};

// The tables of a large plan come after its pictures.
void wait_for_tables(MainWindow& window) {
  spin_until([&] { return window.nodes().table()->model()->rowCount() == window.session().model()->nodes(); });
  for (int turn = 0; turn < 20; ++turn) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
}

// A large file: nothing here waits for the final plan, which may take minutes.
void measure_large(const char* name) {
  const LargeFile file(name);
  ShownWindow measured;
  QElapsedTimer& clock = measured.clock;
  MainWindow& window = measured.window;
  QCoreApplication::processEvents();
  const double shown = ms(clock);
  Watchdog watchdog;
  open_file(window, file.path().c_str());
  const double first = ms(clock);
  wait_for_tables(window);
  const double opening = watchdog.longest_work();
  watchdog.restart();
  drag(window, 3);
  const double dragging = watchdog.longest_work();
  wait_for_tables(window);
  const double selecting = select_nodes(window), tables = use_tables(window);
  const double hover = median(hover_frames(window.memory_canvas())).clock, pan = median(pan_frames(window)).clock;
  std::printf("%-28s %7d %8.0f %8.0f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.0f\n", name, window.session().model()->nodes(),
              shown, first, opening, dragging, selecting, tables, hover, pan, resident_mb());
}

// A file that holds its plan, in a window that plans nothing. The file is opened a second time over itself, because the plan
// before is destroyed then.
void measure_frames(const char* path) {
  ShownWindow measured(false);
  MainWindow& window = measured.window;
  spin_until([&] { return window.memory_canvas().settled(); });
  double longest[2], work[2];
  for (int time = 0; time < 2; ++time) {
    Watchdog watchdog;
    open_file(window, path);
    spin_until([&] { return !window.opening() && window.memory_canvas().settled() && window.curve_canvas().settled(); });
    for (int turn = 0; turn < 20; ++turn) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
    longest[time] = watchdog.longest();
    work[time] = watchdog.longest_work();
  }
  const FrameTime hover = median(hover_frames(window.memory_canvas())), pan = median(pan_frames(window));
  std::printf("%-28s %7d %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %8.0f\n", path, window.session().model()->nodes(),
              longest[0], work[0], longest[1], work[1], hover.clock, hover.work, pan.clock, pan.work, resident_mb());
}

int run_frames(char** files) {
  std::printf("%-28s %7s %19s %19s %19s %19s %8s\n", "file", "nodes", "longest opening", "longest again", "hover", "pan",
              "resident");
  std::printf("%-28s %7s %9s %9s %9s %9s %9s %9s %9s %9s %8s\n", "", "", "ms", "of work", "ms", "of work", "ms", "of work",
              "ms", "of work", "MB");
  for (; *files != nullptr; ++files) measure_frames(*files);
  return 0;
}

int run_large(char** files) {
  std::printf("%-28s %7s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "file", "nodes", "window", "first", "opening", "drag",
              "select", "tables", "hover", "pan", "resident");
  std::printf("%-28s %7s %8s %8s %35s %8s %8s %8s\n", "", "", "ms", "plan ms", "most ms of work at once", "ms", "ms", "MB");
  for (; *files != nullptr; ++files) measure_large(*files);
  return 0;
}

// The work of the UI thread, in milliseconds, in a frame while the picture of the graph is moved, in a window of its own.
double graph_pan(MainWindow& window) {
  Canvas& canvas = *window.panel("graph").canvas;
  std::vector<FrameTime> times;
  for (int i = 0; i < 40; ++i) {
    times.push_back(timed([&] {
      window.graph().move_view(i < 20 ? ViewMove::down : ViewMove::up);
      canvas.repaint();
    }));
    spin_until([&] { return canvas.settled(); });
  }
  return median(times).work;
}

void measure_graph(const char* name) {
  const LargeFile file(name);
  ShownWindow measured(false);
  MainWindow& window = measured.window;
  open_file(window, file.path().c_str());
  const Graph& graph = window.session().model()->graph();
  const auto nodes = static_cast<std::size_t>(graph.node_count());
  const double before = Watchdog::thread_ms();
  const ModuleTree tree(graph, std::vector<std::int64_t>(nodes, 64), std::vector<double>(nodes, 1));
  const double tree_ms = Watchdog::thread_ms() - before;
  double layout_ms[2];
  std::size_t boxes = 0, edges = 0;
  for (const bool all : {false, true}) {
    const std::vector<char> open = all ? std::vector<char>(tree.modules().size(), 1) : open_at_first(tree);
    const double start = Watchdog::thread_ms();
    const GraphLayout layout = lay_out_graph(graph, tree, open);
    layout_ms[all] = Watchdog::thread_ms() - start;
    boxes = layout.boxes.size();
    edges = layout.edges.size();
  }
  window.show_panel("graph");
  QWidget& dock = *window.panel("graph").canvas->parentWidget();
  static_cast<QDockWidget&>(dock).setFloating(true);
  dock.resize(1600, 900);
  const auto shown = [&] { return window.graph().settled() && window.panel("graph").canvas->settled(); };
  spin_until(shown);
  const double first_pan = graph_pan(window);
  std::set<std::string> paths;
  for (ModuleId m = 1; m < static_cast<ModuleId>(tree.modules().size()); ++m) paths.insert(tree.path(m));
  window.graph().set_open_modules(paths);
  spin_until(shown);
  window.graph().move_view(ViewMove::fit_all);
  spin_until(shown);
  const double all_pan = graph_pan(window);
  while (window.graph().view().scale() < 0.1) window.graph().move_view(ViewMove::zoom_in);
  spin_until(shown);
  const double near_pan = graph_pan(window);
  std::printf("%-28s %7d %8.0f %8.0f %8.0f %8zu %8zu %8.1f %8.1f %8.1f\n", name, graph.node_count(), tree_ms, layout_ms[0],
              layout_ms[1], boxes, edges, first_pan, all_pan, near_pan);
}

int run_graph(char** files) {
  std::printf("%-28s %7s %8s %8s %8s %8s %8s %8s %8s %8s\n", "file", "nodes", "tree", "layout", "all open", "boxes", "edges",
              "pan", "all open", "nearer");
  std::printf("%-28s %7s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "", "ms", "ms", "ms", "", "", "ms", "ms", "ms");
  for (; *files != nullptr; ++files) measure_graph(*files);
  return 0;
}

void measure(const char* path) {
  ShownWindow measured;
  QElapsedTimer& clock = measured.clock;
  MainWindow& window = measured.window;
  open_file(window, path);
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
  const double hover = median(hover_frames(window.memory_canvas())).clock;
  std::printf("%-28s %6d %8.0f %8.0f %8.0f %8.1f %8.1f %8.0f %8.1f %8.1f\n", path, window.session().model()->nodes(), first,
              prepared, filled, unprepared / 3.0, shown / 3.0, after_release, hover, watchdog.longest());
}

void print_head() {
  std::printf("%-28s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "file", "nodes", "first ms", "final ms", "filled", "new/s",
              "new/s", "release", "hover", "longest");
  std::printf("%-28s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "", "plan", "plan", "ms", "at once", "filled", "ms", "ms",
              "block ms");
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--large") == 0) return run_large(argv + 2);
  if (argc > 1 && std::strcmp(argv[1], "--frames") == 0) return run_frames(argv + 2);
  if (argc > 1 && std::strcmp(argv[1], "--graph") == 0) return run_graph(argv + 2);
  print_head();
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return 0;
}

}  // namespace
}  // namespace tapedeck::viewer

int main(int argc, char** argv) {
  tapedeck::viewer::Application app(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return tapedeck::viewer::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "viewer_bench: %s\n", error.what());
    return 1;
  }
}
