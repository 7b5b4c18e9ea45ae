// The main window: opening files, asking the worker for plans, and showing the results. window_parts.cpp builds the panels,
// docks, menus and bars. A change of the budget goes this way:
//
//   slider --> set_budget() --> request() --> worker --> poll() --> take() --> session --> panels
#include <tapedeck/viewer/window.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/command_menus.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/planning/default_source.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/start/start_page.h>
#include <tapedeck/viewer/start/tour.h>

#include <QtCore/QMimeData>
#include <QtCore/QUrl>
#include <QtGui/QCloseEvent>
#include <QtGui/QDragEnterEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QStatusBar>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr const char* kFilter = "Tapes and graphs (*.tape *.graph);;All files (*)";

// Asks for a file without blocking, and calls `then` with its path.
template <class Then>
QFileDialog* ask_file(QWidget* parent, const std::string& title, const char* filter, Then then) {
  auto* dialog = new QFileDialog(parent, QString::fromStdString(title), {}, QString::fromLatin1(filter));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, parent,
                   guarded(parent, [then](const QString& path) { then(path.toStdString()); }));
  dialog->open();
  return dialog;
}

// The same for a file to write. A name without an ending is that of a PNG file.
template <class Then>
void ask_save(QWidget* parent, const std::string& title, const char* filter, const std::string& proposed, Then then) {
  QFileDialog* dialog = ask_file(parent, title, filter, then);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setFileMode(QFileDialog::AnyFile);
  dialog->setDefaultSuffix(QStringLiteral("png"));
  dialog->selectFile(QString::fromStdString(proposed));
}

std::vector<std::string> local_files(const QMimeData& data) {
  std::vector<std::string> files;
  for (const QUrl& url : data.urls())
    if (url.isLocalFile()) files.push_back(url.toLocalFile().toStdString());
  return files;
}

}  // namespace

MainWindow::MainWindow(const Setup& setup) : setup_(setup) {
  setWindowTitle(QStringLiteral("Tapedeck"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  make_panels();
  worker_ = std::make_unique<PlanWorker>(
      [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { poll(); }), Qt::QueuedConnection); }, default_source(),
      setup_.prepares);
  loader_ = std::make_unique<DocumentLoader>(
      [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { poll_loader(); }), Qt::QueuedConnection); });
  make_budget_bar();
  make_docks();
  make_menus(
      *this, [this](QMenu& menu) { fill_recent(menu); }, [this](QMenu& menu) { keeper_->fill_bookmarks(menu); });
  make_status_bar();
  for (QLineEdit* field : findChildren<QLineEdit*>()) field->setAcceptDrops(false);  // a dropped file is for the window
  dim_.setSingleShot(true);
  dim_.setInterval(150);
  connect(&dim_, &QTimer::timeout, this,
          guarded(this, [this] { session_.set_planning(Planning::waiting, worker_->progress()); }));
  session_.on_budget = [this](std::int64_t bytes) { set_budget({bytes, -1}); };
  session_.on_wishes = [this](const std::vector<Wish>& wishes) { set_wishes(wishes); };
  details().on_region = [this](NodeId n, int region) {
    show_panel("graph");
    graph().enter(n, region);
  };
  session_.attach(this);
  keeper_ = std::make_unique<SessionKeeper>(*this, setup_.sessions);
  if (setup_.remember) {
    restore_layout();
    session_.set_colour_by(remembered_colour_by());
    session_.set_time_unit(remembered_time_unit());
  }
  memory_canvas().setFocus();
  plan_changed();
  tour_ = new Tour(*this);
  show_start_page(setup_.starts);
}

MainWindow::~MainWindow() {
  delete std::exchange(start_, nullptr);  // joins the thread that makes a file
  replays_.reset();
  loader_.reset();
  worker_.reset();
  session_.detach(this);
  for (const OpenPanel& open : panels_) {
    if (!open.picture) continue;
    open.picture->set_repaint({});
    open.picture->stop();
  }
  // The panels detach from the session and the canvases draw its pictures, so they must be destroyed before the session.
  for (const OpenPanel& open : panels_) delete open.dock;
  delete takeCentralWidget();
}

const MainWindow::OpenPanel& MainWindow::panel(const std::string& name) const {
  return *std::find_if(panels_.begin(), panels_.end(), [&](const OpenPanel& open) { return open.panel->name == name; });
}

void MainWindow::open(const std::string& path, const Budget& budget) {
  keeper_->leave();
  LoadedFile file = load_file({path, setup_.costs, budget, false, keeper_->places_to_read(path)});
  cancel_opening();
  show_document(std::move(file));
}

void MainWindow::show_document(LoadedFile file) {
  cancel_measuring();
  keeper_->leave();
  worker_->cancel();
  dim_.stop();
  budget_ = file.asked;
  error_.clear();
  wishes_ = WishHistory(file.session.saved ? file.session.saved->wishes : file.document.options.wishes);
  session_.open(std::move(file.document));
  problems_.clear();
  pose_problem();
  session_.set_asked_budget(budget_.bytes);
  keeper_->enter(std::move(file.session), std::move(file.plan_mark));
  if (file.model) {
    session_.show(std::move(file.model));
    keeper_->plan_is_final();
    if (setup_.prepares) worker_->prepare(problem_, session_.shared_model());
  } else {
    request();
  }
  if (setup_.remember) remember_recent_file(session_.document()->path);
  if (!setup_.profile.empty()) take_profile(std::exchange(setup_.profile, {}));
}

void MainWindow::start_opening(const std::string& path, const Budget& budget, Failed failed) {
  compares_next_.clear();
  keeper_->leave();  // the file may be the open one
  start_loading({{path, setup_.costs, budget, false, keeper_->places_to_read(path)}, false, std::move(failed)});
}

void MainWindow::start_comparing(const std::string& path) {
  if (session_.model() != nullptr) start_loading({{path, setup_.costs, {}, true}, true, {}});
}

void MainWindow::start_loading(Opening opening) {
  session_.set_opening(base_name(opening.request.path));
  opening_bar_->show();
  loader_->start(opening.request);
  opening_ = std::move(opening);
}

bool MainWindow::cancel_opening() {
  if (!opening_) return false;
  loader_->cancel();
  compares_next_.clear();
  end_opening();
  return true;
}

void MainWindow::end_opening() {
  opening_.reset();
  opening_bar_->hide();
  session_.set_opening("");
}

void MainWindow::poll_loader() { take_loaded(loader_->take()); }

void MainWindow::take_loaded(std::optional<DocumentLoader::Result> result) {
  if (!result || !opening_) return;
  const Opening opening = std::move(*opening_);
  end_opening();
  if (!result->file) {
    compares_next_.clear();
    const std::string error = "Cannot open " + opening.request.path + "\n\n" + result->error;
    if (!opening.failed) return show_error(this, error);
    return opening.failed(result->error);
  }
  if (!opening.compares) {
    show_document(std::move(*result->file));
    if (opening.tours) begin_tour();
    return;
  }
  if (session_.model() != nullptr)
    show_compare_window(shown(), {result->file->document.title(), result->file->model, result->file->document.captured},
                        setup_.renderer, {session_.colour_by(), session_.time_unit()});
}

// Equal wishes are the same problem, whose search the worker may still have.
void MainWindow::pose_problem() {
  const auto same = [&](const auto& problem) { return problem->options.wishes == wishes_.now(); };
  const auto known = std::find_if(problems_.begin(), problems_.end(), same);
  if (known != problems_.end()) {
    problem_ = *known;
  } else if (std::unique_ptr<PreparedSearch> priced = recompute().take_search(wishes_.now())) {
    problem_ = priced->problem;
    problems_.push_back(problem_);
    worker_->adopt(std::move(priced));
  } else {
    PlanProblem problem{session_.document()->captured, session_.document()->options};
    problem.options.wishes = wishes_.now();
    problem_ = std::make_shared<const PlanProblem>(std::move(problem));
    problems_.push_back(problem_);
  }
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
  session_.note_complete();
  if (session_.solving()) session_.set_planning(session_.planning(), worker_->progress());
  session_.set_known(worker_->known());
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
  if (!session_.solving()) start_next_measurement();
  if (result->model && !result->improving) keeper_->plan_is_final();
  if (!session_.solving() && !opening_ && !compares_next_.empty()) start_comparing(std::exchange(compares_next_, {}));
}

void MainWindow::wait_for_plan() {
  if (opening_) take_loaded(loader_->wait());
  if (!session_.solving()) return;
  take(worker_->wait());
  if (!setup_.prepares) outline_keep_all();
}

// In a window, the plan that keeps everything is among the first that the worker makes while nobody waits.
void MainWindow::outline_keep_all() {
  if (session_.model() == nullptr || session_.keep_all() != nullptr || !error_.empty()) return;
  const Plan& plan = session_.model()->plan();
  if (plan.recomputed_nodes == 0 && plan.peak_bytes == plan.keep_all_peak_bytes)
    return session_.set_keep_all(session_.shared_model());
  worker_->request(problem_, {session_.model()->plan().keep_all_peak_bytes, -1});
  if (std::optional<PlanWorker::Result> result = worker_->wait(); result && result->model)
    session_.set_keep_all(std::move(result->model));
}

void MainWindow::finish(const std::string& name) {
  const OpenPanel& open = panel(name);
  if (open.picture) open.picture->finish();
  if (auto* table = dynamic_cast<TablePanel*>(open.widget)) table->finish();
  if (open.widget == &recompute()) recompute().finish();
  if (open.widget == &details()) details().finish();
  if (open.widget == &text()) text().finish();
  if (open.widget == &inspector()) inspector().finish();
}

void MainWindow::write_csv(const std::string& name, const std::string& path) {
  const OpenPanel& open = panel(name);
  if (open.picture) return open.picture->write_csv(path);
  if (open.widget == &text()) return text().write_csv(path);
  if (open.widget == &recompute()) return recompute().table().write_csv(path);
  if (open.widget == &details()) return details().write_csv(path);
  if (open.widget == &inspector()) return inspector().write_csv(path);
  table(name).write_csv(path);
}

void MainWindow::opened() {
  show_start_page(false);
  setWindowTitle(QString::fromStdString(session_.document()->title()) + QStringLiteral(" - Tapedeck"));
  message_->clear();
}

void MainWindow::closed() {
  setWindowTitle(QStringLiteral("Tapedeck"));
  tour_->end();
  final_plan_.reset();
  plan_before_.reset();
}

void MainWindow::note_final_plan() {
  if (session_.solving() || session_.shared_model() == nullptr || session_.shared_model() == final_plan_) return;
  plan_before_ = std::exchange(final_plan_, session_.shared_model());
}

void MainWindow::plan_changed() {
  note_final_plan();
  show_numbers();
  bar_->refresh();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (!local_files(*event->mimeData()).empty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const std::vector<std::string> files = local_files(*event->mimeData());
  if (files.empty()) return;
  start_opening(files[0]);
  if (files.size() > 1) compares_next_ = files[1];
  event->acceptProposedAction();
}

ComparedPlan MainWindow::shown() const {
  return {session_.document()->title(), session_.shared_model(), session_.document()->captured};
}

void MainWindow::run(const std::vector<const Command*>& commands) {
  for (const Command* command : commands) {
    wait_for_plan();
    command->run(*this);
    wait_for_measuring();
    inspector().finish();
  }
}

void MainWindow::ask_open() {
  ask_file(this, "Open", kFilter, [this](const std::string& path) { start_opening(path); });
}

void MainWindow::ask_compare() {
  if (session_.model() != nullptr) {
    ask_file(this, "Compare with", kFilter, [this](const std::string& path) { start_comparing(path); });
    return;
  }
  ask_file(this, "Compare: the file on the left", kFilter, [this](const std::string& left) {
    ask_file(this, "Compare: the file on the right", kFilter, [this, left](const std::string& right) {
      start_opening(left);
      compares_next_ = right;
    });
  });
}

void MainWindow::compare_with_before() {
  if (!plan_before_ || session_.model() == nullptr)
    return say("No plan was shown before this one: change the budget or a wish first.");
  const auto title = [&](const char* when, const Plan& plan) {
    const std::string budget = plan.budget_bytes < 0 ? "no budget" : "budget " + unit_of(plan).text(plan.budget_bytes);
    return session_.document()->title() + " · " + when + ", " + budget;
  };
  ComparedPlan before{title("before", plan_before_->plan()), plan_before_, session_.document()->captured};
  ComparedPlan now = shown();
  now.title = title("now", now.model->plan());
  show_compare_window(std::move(before), std::move(now), setup_.renderer, {session_.colour_by(), session_.time_unit()});
}

void MainWindow::say(const std::string& sentence) { statusBar()->showMessage(QString::fromStdString(sentence), 8000); }

void MainWindow::ask_profile() {
  if (session_.model() == nullptr) return;
  ask_file(this, "Take the profile of", "Tapes (*.tape);;All files (*)",
           [this](const std::string& path) { take_profile(path); });
}

void MainWindow::ask_export() {
  const auto write = [this](const std::string& path) {
    const std::string problem = picture_name_problem(path);
    if (!problem.empty()) return show_error(this, problem);
    export_widget(path, *this, width(), height());
  };
  ask_save(this, "Export picture", "Pictures (*.png *.svg *.pdf)", "plan.png", write);
}

void MainWindow::ask_export_panel() {
  const auto focused =
      std::find_if(panels_.begin(), panels_.end(), [&](const OpenPanel& open) { return panel_has_keys(open.panel->name); });
  const Panel& panel = *(focused == panels_.end() ? this->panel("memory") : *focused).panel;
  const auto write = [this, name = std::string(panel.name)](const std::string& path) {
    if (path.ends_with(".csv")) return write_csv(name, path);
    const std::string problem = picture_name_problem(path);
    if (!problem.empty()) return show_error(this, problem + "; tables as .csv");
    QWidget& widget = *this->panel(name).widget;
    export_widget(path, widget, widget.width(), widget.height());
  };
  ask_save(this, "Export panel " + std::string(panel.title), "Pictures and tables (*.png *.svg *.pdf *.csv)",
           std::string(panel.name) + ".png", write);
}

}  // namespace tapedeck::viewer
