#include <tapedeck/viewer/screenshot.h>

#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/theme.h>
#include <tapedeck/viewer/window.h>

#include <QtGui/QImageWriter>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>

#include <cstdio>

namespace tapedeck::viewer {

namespace {

QImage grabbed(QWidget& widget, int width, int height) {
  widget.setAttribute(Qt::WA_DontShowOnScreen, widget.isWindow());
  widget.resize(width, height);
  widget.show();
  // A few rounds of events let layouts settle and canvases draw their last frames.
  for (int i = 0; i < 6; ++i) QCoreApplication::processEvents();
  QImage image(width, height, QImage::Format_RGB32);
  image.fill(widget.palette().color(QPalette::Window));
  widget.render(&image);
  return image;
}

QImage drawn(const Options& options, MainWindow& window) {
  if (options.panel.empty()) return grabbed(window, options.width, options.height);
  const MainWindow::OpenPanel& open = window.panel(options.panel);
  if (open.picture) return render_picture(*open.picture, options.width, options.height, look_in_use().scale);
  QWidget* panel = open.widget;
  // The panel leaves its dock, so that it can have any size. It returns to the dock, which destroys it.
  QWidget* dock = panel->parentWidget();
  panel->setParent(nullptr);
  const QImage image = grabbed(*panel, options.width, options.height);
  panel->setParent(dock);
  return image;
}

int save(const QImage& image, const std::string& path) {
  QImageWriter writer(QString::fromStdString(path), "png");
  if (writer.write(image.convertToFormat(QImage::Format_RGB32))) return kOk;
  std::fprintf(stderr, "tapedeck-viewer: cannot write %s: %s\n", path.c_str(), writer.errorString().toUtf8().constData());
  return kBadFile;
}

int finish(int saved, const Plan& plan) {
  if (saved != kOk || plan.feasible || plan.budget_bytes < 0) return saved;
  std::fprintf(stderr, "tapedeck-viewer: %s\n", plan.infeasible_reason.c_str());
  return kInfeasible;
}

}  // namespace

int take_shot(const Options& options) {
  try {
    if (!options.compare.empty()) {
      const ComparedPlan left = load_compared(options.file), right = load_compared(options.compare, options.budget);
      ComparePicture picture(left, right);
      return finish(save(render_picture(picture, options.width, options.height, look_in_use().scale), options.shot),
                    right.model->plan());
    }
    MainWindow::Setup setup;
    setup.renderer = choose_renderer(options.renderer == Renderer::gl ? Renderer::gl : Renderer::soft, &setup.renderer_text);
    setup.remember = false;
    setup.prepares = false;
    setup.costs = options.costs;
    MainWindow window(setup);
    window.open(options.file, options.budget);
    window.wait_for_plan();
    if (!window.error().empty()) {
      std::fprintf(stderr, "tapedeck-viewer: %s: %s\n", options.file.c_str(), window.error().c_str());
      return kBadFile;
    }
    if (!options.run.empty()) {
      grabbed(window, options.width, options.height);  // a command may need the size and the focus of a shown window
      window.run(options.run);
    }
    if (!options.panel.empty()) window.finish(options.panel);
    if (!options.csv.empty()) window.write_csv(options.panel, options.csv);
    const int saved = options.shot.empty() ? kOk : save(drawn(options, window), options.shot);
    return finish(saved, window.session().model()->plan());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tapedeck-viewer: %s\n", error.what());
    return kBadFile;
  }
}

}  // namespace tapedeck::viewer
