// The parts of the main window that are built once: the panels from their table, the controls of the budget, the status bar.
// window_layout.cpp places the panels, and command_menus.cpp builds the menus.
#include <tapedeck/viewer/window.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/words/glossary.h>

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolButton>

#include <array>

namespace tapedeck::viewer {

void MainWindow::make_panels() {
  for (const Panel& panel : all_panels()) {
    OpenPanel open{&panel, panel.picture ? panel.picture(session_) : nullptr};
    if (open.picture) {
      open.widget = open.canvas = new Canvas(*open.picture, setup_.renderer);
      open.picture->set_repaint([canvas = open.canvas] { canvas->refresh(); });
      open.picture->set_wake([canvas = open.canvas] {
        QMetaObject::invokeMethod(canvas, guarded(canvas, [canvas] { canvas->refresh(); }), Qt::QueuedConnection);
      });
    } else {
      open.widget = panel.table(session_);
    }
    panels_.push_back(std::move(open));
  }
}

void MainWindow::make_budget_bar() {
  bar_ = new BudgetBar(
      session_, [this](const Budget& budget) { set_budget(budget); }, this);
  addToolBar(bar_);
}

void MainWindow::make_status_bar() {
  message_ = new QLabel;
  message_->setTextFormat(Qt::PlainText);
  statusBar()->addWidget(message_, 1);
  make_opening_bar();
  make_measuring_bar();
  for (const char* name : {"peak", "lower bound", "floor", "budget", "recompute", "renderer"}) {
    auto* label = new QLabel;
    label->setContentsMargins(4, 0, 4, 0);
    label->setToolTip(tooltip_of(explain_term(name)));
    statusBar()->addPermanentWidget(label);
    numbers_.emplace_back(name, label);
  }
}

void MainWindow::make_opening_bar() {
  opening_bar_ = new QWidget;
  auto* row = new QHBoxLayout(opening_bar_);
  row->setContentsMargins(0, 0, 0, 0);
  auto* busy = new QProgressBar;
  busy->setRange(0, 0);  // how far reading is, is not known
  busy->setMaximumWidth(90);
  busy->setTextVisible(false);
  auto* cancel = new QToolButton;
  cancel->setText(QStringLiteral("Cancel"));
  cancel->setToolTip(QStringLiteral("Do not open this file (Esc)"));
  connect(cancel, &QToolButton::clicked, this, guarded(this, [this] { cancel_opening(); }));
  row->addWidget(busy);
  row->addWidget(cancel);
  statusBar()->addPermanentWidget(opening_bar_);
  opening_bar_->hide();
}

void MainWindow::show_numbers() {
  const PlanModel* model = session_.model();
  const std::string none = "-";
  std::array<std::string, 6> values{none, none, none, none, none, setup_.renderer_text};
  if (model != nullptr) {
    const Plan& plan = model->plan();
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "×%.3f", plan.recompute_cost_ratio());
    const ByteUnit unit = unit_of(plan);
    values[0] = unit.text(plan.peak_bytes);
    values[1] = unit.text(plan.lower_bound_bytes);
    if (plan.floor_bytes > 0) values[2] = unit.text(plan.floor_bytes);
    values[3] = plan.budget_bytes < 0 ? "none" : unit.text(plan.budget_bytes);
    values[4] = ratio;
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    numbers_[i].second->setText(QStringLiteral("<span style='color:%1'>%2</span> %3")
                                    .arg(QString::fromStdString(html_colour(colours::kFaint)),
                                         QString::fromStdString(numbers_[i].first),
                                         QString::fromStdString(values[i]).toHtmlEscaped()));
  std::string problem = error_;
  if (model != nullptr && !model->plan().feasible && problem.empty())
    problem = grouped_numbers(model->plan().infeasible_reason);
  const bool is_problem = session_.opening().empty();
  if (!is_problem) problem = "opening " + session_.opening() + "…";
  message_->setText(QString::fromStdString(problem));
  message_->setToolTip(tooltip_of(problem));
  set_text_colour(*message_, is_problem ? colours::kProblem : colours::kText);
}

}  // namespace tapedeck::viewer
