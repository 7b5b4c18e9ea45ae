// The program tapedeck-viewer. usage_text() in options.cpp describes its command line.
#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/live_commands.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/signals.h>
#include <tapedeck/viewer/window.h>

#include <QtWidgets/QApplication>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

using namespace tapedeck::viewer;

namespace {

// Unattended rendering needs no display, unless the command line asks for OpenGL.
void choose_platform(const Options& options) {
  if (!options.unattended() || !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) return;
  const bool display = !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
  if (!display || options.renderer != Renderer::gl) qputenv("QT_QPA_PLATFORM", "offscreen");
}

// Drops Qt's warnings about the offscreen platform, which mean nothing to a script.
void quiet(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type == QtCriticalMsg || type == QtFatalMsg) std::fprintf(stderr, "tapedeck-viewer: %s\n", text.toUtf8().constData());
}

bool has_display(const std::vector<std::string>& arguments) {
  for (const char* name : {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"})
    if (!qEnvironmentVariableIsEmpty(name)) return true;
  for (const std::string& argument : arguments)
    if (argument == "-platform") return true;
  return false;
}

// The look that the command line asks for, else the look that the person chose last. A picture depends on the command line
// only.
Look look_of(const Options& options) {
  Look look = options.shot.empty() ? remembered_look() : Look();
  if (options.theme) look.theme = *options.theme;
  if (options.scale > 0) look.scale = options.scale;
  return look;
}

// The last window that closes ends exec(). One that --run has closed already cannot.
bool any_window_is_open() {
  const QWidgetList windows = QApplication::topLevelWidgets();
  return std::any_of(windows.begin(), windows.end(), [](const QWidget* window) { return window->isVisible(); });
}

int run(QApplication& app, const Options& options) {
  if (options.unattended()) return options.live ? take_live_shot(options) : take_shot(options);
  close_on_signals(app);
  MainWindow::Setup setup;
  setup.renderer = choose_renderer(options.renderer, &setup.renderer_text);
  setup.costs = options.costs;
  setup.profile = options.profile;
  setup.sessions = options.sessions();
  setup.starts = options.file.empty();
  if (!options.compare.empty()) {
    const CompareLook look = options.look_after_run({remembered_colour_by(), remembered_time_unit()});
    show_compare_window(load_compared(options.file), load_compared(options.compare, options.budget), setup.renderer, look,
                        options.width, options.height);
    return app.exec();
  }
  MainWindow window(setup);
  window.resize(options.width, options.height);
  if (options.live) {
    const std::unique_ptr<LiveWindow> live = make_live_window(window, *options.live);
    live->resize(options.width, options.height);
    live->show();
    return app.exec();
  }
  window.show();
  int failed = kOk;
  if (!options.file.empty())
    window.start_opening(options.file, options.budget, [&](const std::string& error) {
      std::fprintf(stderr, "tapedeck-viewer: %s\n", error.c_str());
      failed = kBadFile;
      app.exit(failed);
    });
  if (!options.run.empty()) window.run(options.run);
  return failed != kOk || !any_window_is_open() ? failed : app.exec();
}

}  // namespace

int main(int argc, char** argv) {
  qunsetenv("TAPEDECK_VIEW");  // the viewer watches others
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Options options;
  std::string problem;
  if (!parse_options(arguments, &options, &problem)) {
    std::fprintf(stderr, "tapedeck-viewer: %s\nTry tapedeck-viewer --help.\n", problem.c_str());
    return kUsage;
  }
  if (options.help) return std::fputs(usage_text().c_str(), stdout) < 0 ? kExecution : kOk;
  if (options.commands) return std::fputs(command_list().c_str(), stdout) < 0 ? kExecution : kOk;
  if (options.version)
    return std::printf("tapedeck-viewer %s (Qt %s, Dear ImGui %s)\n", TAPEDECK_VERSION, qVersion(), IMGUI_VERSION) < 0
               ? kExecution
               : kOk;
  choose_platform(options);
  if (options.unattended()) qInstallMessageHandler(quiet);
  if (!has_display(arguments)) {
    std::fputs("tapedeck-viewer: no display; --shot FILE.png|svg|pdf and --export FILE.csv work without one\n", stderr);
    return kExecution;
  }
  prepare_opengl();
  Application app(argc, argv);
  apply_look(app, look_of(options));
  try {
    return run(app, options);
  } catch (const tapedeck::Error& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kBadFile;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kExecution;
  }
}
