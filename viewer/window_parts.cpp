// The parts of the main window that are built once: panels and docks from the table of panels, menus, the controls of the
// budget, the status bar. Also the settings that the viewer keeps between runs: the layout and the recent files.
#include <tapedeck/viewer/window.h>

#include <tapedeck/viewer/messages.h>
#include <tapedeck/viewer/model/glossary.h>

#include <QtCore/QSettings>
#include <QtCore/QSignalBlocker>
#include <QtGui/QAction>
#include <QtGui/QCloseEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QSlider>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>

#include <algorithm>
#include <array>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr int kMostRecent = 9;

QSettings settings() { return QSettings(QStringLiteral("tapedeck"), QStringLiteral("viewer")); }

}  // namespace

void MainWindow::make_panels() {
  for (const Panel& panel : all_panels()) {
    OpenPanel open{&panel, panel.picture ? panel.picture(session_) : nullptr};
    if (open.picture) {
      open.widget = open.canvas = new Canvas(*open.picture, setup_.renderer);
      open.picture->set_repaint([canvas = open.canvas] { canvas->refresh(); });
    } else {
      open.widget = panel.table(session_);
    }
    panels_.push_back(std::move(open));
  }
}

void MainWindow::make_docks() {
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);  // the curve stays as wide as the memory plan above it
  QList<QDockWidget*> below, beside;
  QList<int> below_heights, beside_widths, beside_heights;
  for (OpenPanel& open : panels_) {
    const Panel& panel = *open.panel;
    if (panel.place == PanelPlace::centre) {
      setCentralWidget(open.widget);
      continue;
    }
    open.dock = new QDockWidget(QString::fromLatin1(panel.title), this);
    open.dock->setObjectName(QString::fromLatin1(panel.title));
    open.dock->setWidget(open.widget);
    addDockWidget(panel.place == PanelPlace::below ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, open.dock);
    if (panel.place == PanelPlace::behind) {
      tabifyDockWidget(beside.last(), open.dock);
      beside.last()->raise();
    } else if (panel.place == PanelPlace::below) {
      below << open.dock;
      below_heights << panel.height;
    } else {
      beside << open.dock;
      beside_widths << panel.width;
      beside_heights << panel.height;
    }
  }
  resizeDocks(beside, beside_widths, Qt::Horizontal);
  resizeDocks(beside, beside_heights, Qt::Vertical);
  resizeDocks(below, below_heights, Qt::Vertical);
  first_layout_ = saveState();
}

void MainWindow::make_menus() {
  const auto add = [this](QMenu* menu, const char* text, const QKeySequence& keys, auto&& act) {
    QAction* action = menu->addAction(QString::fromUtf8(text));
    action->setShortcut(keys);
    connect(action, &QAction::triggered, this, guarded(this, act));
    return action;
  };
  QMenu* file = menuBar()->addMenu(QStringLiteral("&File"));
  add(file, "&Open…", QKeySequence::Open, [this] { ask_open(); });
  recent_menu_ = file->addMenu(QStringLiteral("Open &recent"));
  connect(recent_menu_, &QMenu::aboutToShow, this, guarded(this, [this] { fill_recent(); }));
  add(file, "&Compare with…", QKeySequence(QStringLiteral("Ctrl+D")), [this] { ask_compare(); });
  add(file, "&Export PNG…", QKeySequence(QStringLiteral("Ctrl+E")), [this] { ask_export(); });
  file->addSeparator();
  add(file, "&Quit", QKeySequence::Quit, [this] { close(); });

  QMenu* view = menuBar()->addMenu(QStringLiteral("&View"));
  add(view, "Fit &all", QKeySequence(QStringLiteral("H")), [this] { session_.fit_all(); });
  add(view, "Centre, then &fit selection", QKeySequence(QStringLiteral("F")), [this] { session_.fit_selection(); });
  add(view, "&Clear selection", QKeySequence(QStringLiteral("Esc")), [this] { session_.clear_selection(); });
  view->addSeparator();
  for (const OpenPanel& open : panels_)
    if (open.dock) view->addAction(open.dock->toggleViewAction());
  add(view, "&Reset layout", {}, [this] { restoreState(first_layout_); });

  QMenu* go = menuBar()->addMenu(QStringLiteral("&Go"));
  add(go, "&Next node", QKeySequence(QStringLiteral(".")), [this] { session_.step_node(1); });
  add(go, "&Previous node", QKeySequence(QStringLiteral(",")), [this] { session_.step_node(-1); });
  add(go, "P&roducer of the first operand", QKeySequence(QStringLiteral("[")), [this] { session_.follow(false); });
  add(go, "First &reader", QKeySequence(QStringLiteral("]")), [this] { session_.follow(true); });
  add(go, "The &peak", QKeySequence(QStringLiteral("P")), [this] {
    if (session_.model() != nullptr) session_.select_node(session_.model()->peak_node());
  });
  add(go, "&Filter nodes", QKeySequence::Find, [this] { nodes().filter()->setFocus(); });

  QMenu* help = menuBar()->addMenu(QStringLiteral("&Help"));
  add(help, "&Keys", QKeySequence(QStringLiteral("F1")), [this] { show_keys(); });
}

void MainWindow::make_budget_bar() {
  QToolBar* bar = addToolBar(QStringLiteral("Budget"));
  bar->setObjectName(QStringLiteral("Budget"));
  bar->setMovable(false);
  auto* label = new QLabel(QStringLiteral(" Budget "));
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setRange(0, kBudgetSteps);
  slider_->setPageStep(kBudgetSteps / 20);
  slider_->setMinimumWidth(280);
  slider_->setAccessibleName(QStringLiteral("memory budget"));
  slider_->setToolTip(QStringLiteral("From the floor, the least peak any strategy reaches, to the peak of keeping everything"));
  percent_box_ = new QDoubleSpinBox;
  percent_box_->setRange(0, 1000);
  percent_box_->setDecimals(1);
  percent_box_->setSuffix(QStringLiteral(" %"));
  percent_box_->setToolTip(QStringLiteral("Percent of the peak of keeping everything"));
  size_box_ = new QDoubleSpinBox;
  size_box_->setRange(0, 1e9);
  size_box_->setDecimals(3);
  size_box_->setSuffix(QStringLiteral(" MiB"));
  for (QDoubleSpinBox* box : {percent_box_, size_box_}) {
    box->setKeyboardTracking(false);
    box->setMinimumWidth(110);
  }
  no_budget_ = new QToolButton;
  no_budget_->setText(QStringLiteral("No budget"));
  no_budget_->setToolTip(QStringLiteral("Plan without a budget: recompute only what checkpoint() asks for"));
  progress_ = new QProgressBar;
  progress_->setRange(0, 100);
  progress_->setMaximumWidth(140);
  progress_->setTextVisible(false);
  for (QWidget* widget : std::initializer_list<QWidget*>{label, slider_, percent_box_, size_box_, no_budget_, progress_})
    bar->addWidget(widget);
  connect(slider_, &QSlider::valueChanged, this, guarded(this, [this](int step) { ask_for(scale_.bytes_at(step)); }));
  connect(percent_box_, &QDoubleSpinBox::valueChanged, this,
          guarded(this, [this](double value) { ask_for(scale_.bytes_of_percent(value)); }));
  connect(size_box_, &QDoubleSpinBox::valueChanged, this,
          guarded(this, [this](double value) { ask_for(std::llround(value * 1048576.0)); }));
  connect(no_budget_, &QToolButton::clicked, this, guarded(this, [this] { set_budget({}); }));
}

void MainWindow::make_status_bar() {
  message_ = new QLabel;
  message_->setTextFormat(Qt::PlainText);
  statusBar()->addWidget(message_, 1);
  for (const char* name : {"peak", "lower bound", "floor", "budget", "recompute", "renderer"}) {
    auto* label = new QLabel;
    label->setContentsMargins(8, 0, 8, 0);
    label->setToolTip(tooltip_of(explain_term(name)));
    statusBar()->addPermanentWidget(label);
    numbers_.emplace_back(name, label);
  }
}

void MainWindow::show_numbers() {
  const PlanModel* model = session_.model();
  const std::string none = "-";
  std::array<std::string, 6> values{none, none, none, none, none, setup_.renderer_text};
  if (model != nullptr) {
    const Plan& plan = model->plan();
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "×%.3f", plan.recompute_cost_ratio());
    values[0] = human_bytes(plan.peak_bytes);
    values[1] = human_bytes(plan.lower_bound_bytes);
    values[2] = human_bytes(plan.floor_bytes);
    values[3] = plan.budget_bytes < 0 ? "none" : human_bytes(plan.budget_bytes);
    values[4] = ratio;
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    numbers_[i].second->setText(
        QStringLiteral("<span style='color:#929baa'>%1</span> %2")
            .arg(QString::fromStdString(numbers_[i].first), QString::fromStdString(values[i]).toHtmlEscaped()));
  std::string problem = error_;
  if (model != nullptr && !model->plan().feasible && problem.empty()) problem = model->plan().infeasible_reason;
  message_->setText(QString::fromStdString(problem));
  message_->setToolTip(tooltip_of(problem));
  message_->setStyleSheet(QStringLiteral("color: #ff5c5c"));
}

void MainWindow::show_budget() {
  const PlanModel* model = session_.model();
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, percent_box_, size_box_, no_budget_})
    widget->setEnabled(model != nullptr);
  progress_->setVisible(session_.solving());
  progress_->setValue(static_cast<int>(session_.progress() * 100));
  if (model == nullptr || session_.solving() || coalesce_.isActive()) return;  // the controls are newer than the plan
  const Plan& plan = model->plan();
  scale_ = BudgetScale::of(plan);
  const std::int64_t budget = plan.budget_bytes >= 0 ? plan.budget_bytes : scale_.keep_all;
  const QSignalBlocker a(slider_), b(percent_box_), c(size_box_);
  slider_->setValue(scale_.step_of(budget));
  if (!percent_box_->hasFocus()) percent_box_->setValue(scale_.percent_of(budget));
  if (!size_box_->hasFocus()) size_box_->setValue(static_cast<double>(budget) / 1048576.0);
}

void MainWindow::restore_layout() {
  const QSettings stored = settings();
  restoreGeometry(stored.value(QStringLiteral("geometry")).toByteArray());
  restoreState(stored.value(QStringLiteral("layout")).toByteArray());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (setup_.remember) {
    QSettings stored = settings();
    stored.setValue(QStringLiteral("geometry"), saveGeometry());
    stored.setValue(QStringLiteral("layout"), saveState());
  }
  QMainWindow::closeEvent(event);
}

void MainWindow::remember_recent(const std::string& path) {
  QSettings stored = settings();
  QStringList recent = stored.value(QStringLiteral("recent")).toStringList();
  const QString added = QString::fromStdString(path);
  recent.removeAll(added);
  recent.prepend(added);
  while (recent.size() > kMostRecent) recent.removeLast();
  stored.setValue(QStringLiteral("recent"), recent);
}

void MainWindow::fill_recent() {
  recent_menu_->clear();
  const QStringList recent = settings().value(QStringLiteral("recent")).toStringList();
  for (const QString& path : recent) {
    QAction* action = recent_menu_->addAction(path);
    connect(action, &QAction::triggered, this, guarded(this, [this, path] { try_open(path.toStdString()); }));
  }
  if (recent.isEmpty()) recent_menu_->addAction(QStringLiteral("(none)"))->setEnabled(false);
}

void MainWindow::show_keys() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, QStringLiteral("Keys"), {}, QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  QString rows;
  const auto row = [&](const QString& key, const QString& what) {
    rows += QStringLiteral("<tr><td style='padding-right:18px'><b>%1</b></td><td>%2</td></tr>")
                .arg(key.toHtmlEscaped(), what.toHtmlEscaped());
  };
  row(QStringLiteral("Wheel"), QStringLiteral("zoom time at the cursor (Ctrl: finely)"));
  row(QStringLiteral("Shift+wheel, A D, arrows"), QStringLiteral("pan"));
  row(QStringLiteral("Alt+wheel"), QStringLiteral("zoom addresses"));
  row(QStringLiteral("W S, + -"), QStringLiteral("zoom time"));
  row(QStringLiteral("Drag"), QStringLiteral("pan; click selects, double click fits all"));
  for (QMenu* menu : menuBar()->findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly))
    for (QAction* action : menu->actions())
      if (!action->shortcut().isEmpty())
        row(action->shortcut().toString(QKeySequence::NativeText), action->text().remove(QLatin1Char('&')));
  box->setText(QStringLiteral("<table>%1</table>").arg(rows));
  box->open();
}

}  // namespace tapedeck::viewer
