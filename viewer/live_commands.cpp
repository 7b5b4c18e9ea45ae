#include <tapedeck/viewer/live_commands.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/window.h>

#include <tapedeck/engine/ir/error.h>

#include <QtWidgets/QApplication>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace tapedeck::viewer {

namespace {

LiveWindow::Setup setup_for(Renderer renderer, std::string base, std::function<void(const std::string&)> open_file) {
  LiveWindow::Setup setup;
  setup.base = std::move(base);
  setup.make_canvas = [renderer](Picture& picture, QWidget* parent) -> QWidget* {
    auto* canvas = new Canvas(picture, renderer, parent);
    canvas->setMinimumHeight(160);
    return canvas;
  };
  setup.refresh = [](QWidget& canvas) { static_cast<Canvas&>(canvas).refresh(); };
  setup.open_file = std::move(open_file);
  return setup;
}

bool parse_process(const std::string& text, std::int64_t* process) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *process);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool is_folder_of_program(const std::string& folder) {
  live::ProgramInfo info;
  return live::read_info(live::open_folder(folder).get(), &info);
}

}  // namespace

std::string find_live_folder(const std::string& wanted, std::string* base) {
  std::int64_t process = 0;
  if (parse_process(wanted, &process)) {
    for (const live::RunningProgram& p : live::running_programs())
      if (p.info.process == process) return p.folder;
    throw UsageError("no process " + wanted + " writes a live view; start it with TAPEDECK_VIEW=1");
  }
  if (!wanted.empty() && is_folder_of_program(wanted)) return wanted;
  *base = wanted;
  const std::vector<live::RunningProgram> programs = live::running_programs(wanted);
  return programs.size() == 1 ? programs[0].folder : "";
}

LiveWindow* live_window_of(const MainWindow& window) {
  for (QObject* child : window.children())
    if (auto* live = dynamic_cast<LiveWindow*>(child)) return live;
  return nullptr;
}

LiveWindow& show_live_window(MainWindow& window) {
  LiveWindow* live = live_window_of(window);
  if (live == nullptr) {
    live = new LiveWindow(setup_for(window.renderer(), "", [&window](const std::string& path) { window.start_opening(path); }),
                          &window);
    live->setAttribute(Qt::WA_DeleteOnClose);
    live->resize(1200, 800);
  }
  live->show();
  live->raise();
  live->activateWindow();
  return *live;
}

std::unique_ptr<LiveWindow> make_live_window(MainWindow& window, const std::string& wanted) {
  std::string base;
  const std::string folder = find_live_folder(wanted, &base);
  auto live = std::make_unique<LiveWindow>(setup_for(window.renderer(), base, [&window](const std::string& path) {
    window.show();
    window.start_opening(path);
  }));
  if (!folder.empty()) live->watch(folder);
  return live;
}

int take_live_shot(const Options& options) {
  try {
    std::string base;
    const std::string folder = find_live_folder(*options.live, &base);
    LiveWindow window(setup_for(Renderer::soft, base, [](const std::string&) {}));
    if (!folder.empty()) window.watch(folder);
    if (folder.empty() && !options.csv.empty()) throw UsageError("--export needs one program: give its process or its folder");
    window.setAttribute(Qt::WA_DontShowOnScreen);
    window.resize(options.width, options.height);
    window.show();
    for (int i = 0; i < 6; ++i) QCoreApplication::processEvents();
    window.finish();
    for (int i = 0; i < 6; ++i) QCoreApplication::processEvents();
    if (!options.csv.empty()) write_live_csv(LiveSource::View(window.source()).tape(), options.csv);
    if (!options.shot.empty()) export_widget(options.shot, window, options.width, options.height);
    return kOk;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kBadFile;
  }
}

}  // namespace tapedeck::viewer
