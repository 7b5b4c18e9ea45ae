// The start page and the tour of the main window. The page lies over the panels while no file is open, or while a person wants
// it.
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/guided_tour.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/start/start_page.h>
#include <tapedeck/viewer/window.h>

#include <QtCore/QDir>
#include <QtCore/QStandardPaths>
#include <QtGui/QResizeEvent>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QStatusBar>

namespace tapedeck::viewer {

namespace {

std::string recordings_folder() {
  const QString data = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation);
  return QDir(data).filePath(QStringLiteral("tapedeck/recordings")).toStdString();
}

}  // namespace

StartPage& MainWindow::start_page() {
  if (start_ == nullptr) make_start_page();
  return *start_;
}

void MainWindow::make_start_page() {
  const auto open = [this](const std::string& path, const Budget& budget, bool tours) {
    start_opening(path, budget);
    opening_->tours = tours;
  };
  start_ = new StartPage({open, [this] { ask_open(); }, [this] { return setup_.remember ? recent_files() : QStringList(); },
                          [](const std::string& path) { forget_recent_file(path); },
                          [this] { find_command("live.watch")->run(*this); }, recordings_folder, [this] { begin_tour(); }},
                         this);
  for (QLineEdit* field : start_->findChildren<QLineEdit*>()) field->setAcceptDrops(false);
  start_->hide();
}

void MainWindow::place_start_page() {
  const int top = menuBar()->height();
  start_->setGeometry(0, top, width(), height() - top - statusBar()->height());
}

void MainWindow::show_start_page(bool on) {
  if (!on) {
    if (start_ != nullptr) start_->hide();
    return memory_canvas().setFocus();
  }
  StartPage& page = start_page();
  page.refresh();
  place_start_page();
  page.raise();
  page.show();
  page.setFocus();
}

void MainWindow::begin_tour() {
  show_start_page(false);
  if (session_.document() != nullptr) return tour_->begin(tour_steps(*this));
  show_start_page(true);
  start_page().open_sample(true);
}

bool MainWindow::start_page_is_shown() const { return start_ != nullptr && start_->isVisibleTo(this); }

bool MainWindow::cancel_recording() { return start_ != nullptr && start_->cancel(); }

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (start_ != nullptr) place_start_page();
}

}  // namespace tapedeck::viewer
