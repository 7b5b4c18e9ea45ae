// The parts of the main window that are built once: the panels from their table, the controls of the budget, the status bar.
// window_layout.cpp places the panels, and command_menus.cpp builds the menus.
#include <tapedeck/viewer/window.h>

#include <tapedeck/viewer/messages.h>

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QSlider>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>

#include <array>
#include <cmath>

namespace tapedeck::viewer {

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
    label->setContentsMargins(4, 0, 4, 0);
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
    numbers_[i].second->setText(QStringLiteral("<span style='color:%1'>%2</span> %3")
                                    .arg(QString::fromStdString(html_colour(colours::kFaint)),
                                         QString::fromStdString(numbers_[i].first),
                                         QString::fromStdString(values[i]).toHtmlEscaped()));
  std::string problem = error_;
  if (model != nullptr && !model->plan().feasible && problem.empty()) problem = model->plan().infeasible_reason;
  message_->setText(QString::fromStdString(problem));
  message_->setToolTip(tooltip_of(problem));
  message_->setStyleSheet(QStringLiteral("color: ") + QString::fromStdString(html_colour(colours::kProblem)));
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

}  // namespace tapedeck::viewer
