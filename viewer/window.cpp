// The main window: opening files, asking the worker for plans, and showing the results. window_parts.cpp builds the panels,
// docks, menus and bars. A change of the budget goes this way:
//
//   slider --> ask_for() --> request() --> worker --> poll() --> take() --> session --> panels
#include <tapedeck/viewer/window.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/messages.h>

#include <QtCore/QMimeData>
#include <QtCore/QSignalBlocker>
#include <QtGui/QCloseEvent>
#include <QtGui/QDragEnterEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr const char* kFilter = "Tapes and graphs (*.tape *.graph);;All files (*)";

}  // namespace

MainWindow::MainWindow(const Setup& setup) : setup_(setup) {
  setWindowTitle(QStringLiteral("Tapedeck"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  make_panels();
  worker_ = std::make_unique<PlanWorker>(
      [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { poll(); }), Qt::QueuedConnection); });
  make_budget_bar();
  make_docks();
  make_menus();
  make_status_bar();
  coalesce_.setSingleShot(true);
  coalesce_.setInterval(30);
  connect(&coalesce_, &QTimer::timeout, this, guarded(this, [this] { request(); }));
  session_.attach(this);
  if (setup_.remember) restore_layout();
  plan_changed();
}

MainWindow::~MainWindow() {
  worker_.reset();
  session_.detach(this);
  for (const OpenPanel& open : panels_)
    if (open.picture) open.picture->set_repaint({});
  // The panels detach from the session and the canvases draw its pictures, so they must be destroyed before the session.
  for (const OpenPanel& open : panels_) delete open.dock;
  delete takeCentralWidget();
}

const MainWindow::OpenPanel& MainWindow::panel(const std::string& name) const {
  return *std::find_if(panels_.begin(), panels_.end(), [&](const OpenPanel& open) { return open.panel->name == name; });
}

void MainWindow::open(const std::string& path, const Budget& budget) {
  Document document = open_document(path);
  worker_->cancel();
  coalesce_.stop();
  budget_ = budget;
  error_.clear();
  std::optional<Plan> plan = document.plan;
  session_.open(std::move(document));
  if (plan && !budget.given()) {
    session_.show(PlanModel::of(std::move(*plan)));
  } else {
    request();
  }
  if (setup_.remember) remember_recent(path);
}

bool MainWindow::try_open(const std::string& path) {
  try {
    open(path);
    return true;
  } catch (const std::exception& error) {
    show_error(this, "Cannot open " + path + "\n\n" + error.what());
    return false;
  }
}

void MainWindow::set_budget(const Budget& budget) {
  budget_ = budget;
  coalesce_.start();
}

void MainWindow::ask_for(std::int64_t bytes) {
  set_budget(Budget{bytes, -1});
  const QSignalBlocker a(slider_), b(percent_box_), c(size_box_);
  slider_->setValue(scale_.step_of(bytes));
  if (!percent_box_->hasFocus()) percent_box_->setValue(scale_.percent_of(bytes));
  if (!size_box_->hasFocus()) size_box_->setValue(static_cast<double>(bytes) / 1048576.0);
}

void MainWindow::request() {
  if (session_.document() == nullptr) return;
  PlanOptions options;
  options.budget = budget_.bytes;
  options.budget_percent = budget_.percent;
  if (session_.document()->plan) options.level = session_.document()->plan->level;
  worker_->request(session_.document()->captured, options);
  session_.set_solving(true, 0);
}

void MainWindow::poll() {
  take(worker_->take());
  if (worker_->busy()) session_.set_solving(true, worker_->progress());
}

void MainWindow::take(std::optional<PlanWorker::Result> result) {
  if (!result) return;
  error_ = result->error;
  session_.set_solving(false);
  if (result->model)
    session_.show(result->model);
  else
    plan_changed();
}

void MainWindow::wait_for_plan() {
  if (coalesce_.isActive()) {
    coalesce_.stop();
    request();
  }
  if (session_.solving()) take(worker_->wait());
}

bool MainWindow::export_png(const std::string& path) { return grab().save(QString::fromStdString(path), "PNG"); }

void MainWindow::opened() {
  setWindowTitle(QString::fromStdString(session_.document()->title()) + QStringLiteral(" - Tapedeck"));
  message_->clear();
}

void MainWindow::closed() { setWindowTitle(QStringLiteral("Tapedeck")); }

void MainWindow::plan_changed() {
  show_numbers();
  show_budget();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.isEmpty() || !try_open(urls[0].toLocalFile().toStdString()) || urls.size() < 2) return;
  wait_for_plan();
  try {
    show_compare_window(shown(), load_compared(urls[1].toLocalFile().toStdString()), setup_.renderer);
  } catch (const std::exception& error) {
    show_error(this, error.what());
  }
}

ComparedPlan MainWindow::shown() const { return {session_.document()->title(), session_.shared_model()}; }

void MainWindow::ask_open() {
  const QString path = QFileDialog::getOpenFileName(this, QStringLiteral("Open"), {}, QString::fromLatin1(kFilter));
  if (!path.isEmpty()) try_open(path.toStdString());
}

void MainWindow::ask_compare() {
  if (session_.model() == nullptr) return;
  const QString path = QFileDialog::getOpenFileName(this, QStringLiteral("Compare with"), {}, QString::fromLatin1(kFilter));
  if (path.isEmpty()) return;
  try {
    show_compare_window(shown(), load_compared(path.toStdString()), setup_.renderer);
  } catch (const std::exception& error) {
    show_error(this, error.what());
  }
}

void MainWindow::ask_export() {
  const QString path = QFileDialog::getSaveFileName(this, QStringLiteral("Export PNG"), QStringLiteral("plan.png"),
                                                    QStringLiteral("PNG (*.png)"));
  if (!path.isEmpty() && !export_png(path.toStdString())) show_error(this, "Cannot write " + path.toStdString());
}

}  // namespace tapedeck::viewer
