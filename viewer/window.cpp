// The main window: opening files, asking the worker for plans, and showing the results. window_parts.cpp builds the panels,
// docks, menus and bars. A change of the budget goes this way:
//
//   slider --> set_budget() --> request() --> worker --> poll() --> take() --> session --> panels
#include <tapedeck/viewer/window.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/command_menus.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/settings.h>

#include <QtCore/QMimeData>
#include <QtGui/QCloseEvent>
#include <QtGui/QDragEnterEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr const char* kFilter = "Tapes and graphs (*.tape *.graph);;All files (*)";

// Asks for a file without blocking, and calls `then` with its path.
template <class Then>
QFileDialog* ask_file(QWidget* parent, const char* title, const char* filter, Then then) {
  auto* dialog = new QFileDialog(parent, QString::fromLatin1(title), {}, QString::fromLatin1(filter));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, parent,
                   guarded(parent, [then](const QString& path) { then(path.toStdString()); }));
  dialog->open();
  return dialog;
}

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
  make_menus(*this, [this](QMenu& menu) { fill_recent(menu); });
  make_status_bar();
  dim_.setSingleShot(true);
  dim_.setInterval(150);
  connect(&dim_, &QTimer::timeout, this,
          guarded(this, [this] { session_.set_planning(Planning::waiting, worker_->progress()); }));
  session_.on_budget = [this](std::int64_t bytes) { set_budget({bytes, -1}); };
  session_.on_wishes = [this](const std::vector<Wish>& wishes) { set_wishes(wishes); };
  session_.attach(this);
  if (setup_.remember) restore_layout();
  memory_canvas().setFocus();
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
  Document document = open_document(path, setup_.costs);
  worker_->cancel();
  dim_.stop();
  budget_ = budget;
  error_.clear();
  std::optional<Plan> plan = document.plan;
  wishes_ = WishHistory(document.options.wishes);
  session_.open(std::move(document));
  pose_problem();
  if (plan && !budget.given()) {
    session_.set_asked_budget(plan->budget_bytes);
    budget_ = {plan->budget_bytes, -1};
    session_.show(PlanModel::of(std::move(*plan), session_.document()->options.costs, wishes_.now()));
    if (setup_.prepares) worker_->prepare(problem_);
  } else {
    request();
  }
  if (setup_.remember) remember_recent_file(path);
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

void MainWindow::pose_problem() {
  PlanProblem problem{session_.document()->captured, session_.document()->options};
  problem.options.wishes = wishes_.now();
  problem_ = std::make_shared<const PlanProblem>(std::move(problem));
  session_.set_wishes(wishes_.now());
}

void MainWindow::set_budget(const Budget& budget) {
  budget_ = budget;
  if (budget.percent < 0) session_.set_asked_budget(budget.bytes);
  request();
}

void MainWindow::set_wishes(const std::vector<Wish>& wishes) {
  if (session_.document() == nullptr || wishes == wishes_.now()) return;
  wishes_.set(wishes);
  pose_problem();
  request();
}

bool MainWindow::undo() {
  if (session_.document() == nullptr || !wishes_.undo()) return false;
  pose_problem();
  request();
  return true;
}

bool MainWindow::redo() {
  if (session_.document() == nullptr || !wishes_.redo()) return false;
  pose_problem();
  request();
  return true;
}

std::string MainWindow::tool_line() const {
  if (session_.document() == nullptr) return "";
  return viewer::tool_line(*session_.document(), wishes_.now(), session_.asked_budget());
}

void MainWindow::request() {
  if (session_.document() == nullptr) return;
  worker_->request(problem_, budget_);
  session_.set_planning(Planning::improving, worker_->progress());
  if (!dim_.isActive()) dim_.start();
}

void MainWindow::poll() {
  take(worker_->take());
  if (session_.solving()) session_.set_planning(session_.planning(), worker_->progress());
  if (session_.keep_all() == nullptr)
    if (std::shared_ptr<const PlanModel> model = worker_->keep_all()) session_.set_keep_all(std::move(model));
}

// An error of planning is that of the final answer; the plans before it are shown as they come.
void MainWindow::take(std::optional<PlanWorker::Result> result) {
  if (!result) return;
  dim_.stop();
  error_ = result->error;
  if (result->model && budget_.percent >= 0) session_.set_asked_budget(result->model->plan().budget_bytes);
  session_.set_planning(result->improving ? Planning::improving : Planning::done, worker_->progress());
  if (!result->model)
    plan_changed();
  else if (result->model != session_.shared_model())
    session_.show(result->model);
}

void MainWindow::wait_for_plan() {
  if (session_.solving()) take(worker_->wait());
}

void MainWindow::opened() {
  setWindowTitle(QString::fromStdString(session_.document()->title()) + QStringLiteral(" - Tapedeck"));
  message_->clear();
}

void MainWindow::closed() { setWindowTitle(QStringLiteral("Tapedeck")); }

void MainWindow::plan_changed() {
  show_numbers();
  bar_->refresh();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.isEmpty() || !try_open(urls[0].toLocalFile().toStdString()) || urls.size() < 2) return;
  wait_for_plan();
  compare_with(urls[1].toLocalFile().toStdString());
}

ComparedPlan MainWindow::shown() const { return {session_.document()->title(), session_.shared_model()}; }

void MainWindow::compare_with(const std::string& path) {
  if (session_.model() == nullptr) return;
  try {
    show_compare_window(shown(), load_compared(path), setup_.renderer);
  } catch (const std::exception& error) {
    show_error(this, error.what());
  }
}

void MainWindow::run(const std::vector<const Command*>& commands) {
  for (const Command* command : commands) {
    wait_for_plan();
    command->run(*this);
  }
  wait_for_plan();
}

void MainWindow::ask_open() {
  ask_file(this, "Open", kFilter, [this](const std::string& path) { try_open(path); });
}

void MainWindow::ask_compare() {
  if (session_.model() == nullptr) return;
  ask_file(this, "Compare with", kFilter, [this](const std::string& path) { compare_with(path); });
}

void MainWindow::ask_export() {
  QFileDialog* dialog = ask_file(this, "Export picture", "Pictures (*.png *.svg *.pdf)", [this](const std::string& path) {
    const std::string problem = picture_name_problem(path);
    if (!problem.empty()) return show_error(this, problem);
    export_widget(path, *this, width(), height());
  });
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setFileMode(QFileDialog::AnyFile);
  dialog->setDefaultSuffix(QStringLiteral("png"));
  dialog->selectFile(QStringLiteral("plan.png"));
}

}  // namespace tapedeck::viewer
