#include <tapedeck/viewer/budget_bar.h>

#include <tapedeck/viewer/drawing/messages.h>

#include <QtCore/QSignalBlocker>
#include <QtGui/QAction>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tapedeck::viewer {

namespace {

// The choices that the numbers rest on: "strategy: search · order: searched · costs estimated".
std::string basis_of(const Plan& plan) {
  const std::string costs = plan.costs == "estimate" ? "costs estimated" : "costs: " + describe_costs(plan);
  return "strategy: " + plan.strategy + " · order: " + plan.order + " · " + costs;
}

}  // namespace

BudgetBar::BudgetBar(Session& session, std::function<void(const Budget&)> ask, QWidget* parent)
    : QToolBar(QStringLiteral("Budget"), parent), session_(session), ask_(std::move(ask)) {
  setObjectName(QStringLiteral("Budget"));
  setMovable(false);
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setRange(0, kBudgetSteps);
  slider_->setPageStep(kBudgetSteps / 20);
  slider_->setMinimumWidth(160);
  slider_->setAccessibleName(QStringLiteral("memory budget"));
  slider_->setToolTip(QStringLiteral("From the floor, the least peak any strategy reaches, to the peak of keeping everything"));
  percent_box_ = new QDoubleSpinBox;
  percent_box_->setRange(0, 1000);
  percent_box_->setDecimals(1);
  percent_box_->setSuffix(QStringLiteral(" %"));
  percent_box_->setToolTip(QStringLiteral("Percent of the peak of keeping everything"));
  size_box_ = new QDoubleSpinBox;
  size_box_->setRange(0, 1e6);
  use_unit(ByteUnit::of(std::int64_t{1} << 20));
  size_box_->setToolTip(QStringLiteral("The bytes that a replay may hold, in the unit of the pictures"));
  for (QDoubleSpinBox* box : {percent_box_, size_box_}) {
    box->setKeyboardTracking(false);
    box->setMinimumWidth(90);
  }
  no_budget_ = new QToolButton;
  no_budget_->setText(QStringLiteral("No budget"));
  no_budget_->setToolTip(QStringLiteral("Plan without a budget: recompute only what checkpoint() asks for"));
  progress_ = new QProgressBar;
  progress_->setRange(0, 100);
  progress_->setMaximumWidth(90);
  progress_->setTextVisible(false);
  progress_->setToolTip(
      QStringLiteral("The search for the best plan. Until it ends, plans within the budget are shown as they come."));
  costs_ = new QLabel;
  costs_->setTextFormat(Qt::PlainText);
  costs_->setContentsMargins(8, 0, 8, 0);
  for (QWidget* widget : std::initializer_list<QWidget*>{new QLabel(QStringLiteral(" Budget ")), slider_, percent_box_,
                                                         size_box_, no_budget_, progress_, costs_})
    shown_[widget] = addWidget(widget);
  connect(slider_, &QSlider::valueChanged, this, guarded(this, [this](int step) { ask_for(scale_.bytes_at(step)); }));
  connect(percent_box_, &QDoubleSpinBox::valueChanged, this,
          guarded(this, [this](double value) { ask_for(scale_.bytes_of_percent(value)); }));
  connect(size_box_, &QDoubleSpinBox::valueChanged, this,
          guarded(this, [this](double value) { ask_for(std::llround(value * unit_.bytes)); }));
  connect(no_budget_, &QToolButton::clicked, this, guarded(this, [this] { ask_({}); }));
  refresh();
}

void BudgetBar::ask_for(std::int64_t bytes) {
  ask_({bytes, -1});
  show_bytes(bytes);
}

void BudgetBar::show_bytes(std::int64_t bytes) {
  const QSignalBlocker a(slider_), b(percent_box_), c(size_box_);
  if (!slider_->isSliderDown()) slider_->setValue(scale_.step_of(bytes));
  if (!percent_box_->hasFocus()) percent_box_->setValue(scale_.percent_of(bytes));
  if (!size_box_->hasFocus()) size_box_->setValue(static_cast<double>(bytes) / unit_.bytes);
}

// A change of the unit alone asks for no other budget. An unchanged unit leaves alone what is being typed.
void BudgetBar::use_unit(const ByteUnit& unit) {
  if (unit.bytes == unit_.bytes) return;
  unit_ = unit;
  const QSignalBlocker blocker(size_box_);
  size_box_->setDecimals(unit.bytes == 1 ? 0 : 3);
  size_box_->setSuffix(QStringLiteral(" ") + QString::fromLatin1(unit.name));
}

void BudgetBar::refresh() {
  const PlanModel* model = session_.model();
  for (QWidget* widget : std::initializer_list<QWidget*>{slider_, percent_box_, size_box_, no_budget_})
    widget->setEnabled(model != nullptr);
  shown_[progress_]->setVisible(session_.solving());
  progress_->setValue(static_cast<int>(session_.progress() * 100));
  shown_[costs_]->setVisible(model != nullptr);
  if (model == nullptr) {
    scale_ = {};
    return;
  }
  const Plan& plan = model->plan();
  costs_->setText(QString::fromStdString(basis_of(plan)));
  std::string notes = "The strategy that made the choices, the order of nodes, and where microseconds come from.";
  if (session_.document() != nullptr)
    for (const std::string& note : session_.document()->notes) notes += "\n" + note;
  costs_->setToolTip(tooltip_of(notes));
  // The ends of a plan that is being improved are not the last word, so the scale moves only if there is none yet.
  if (!session_.solving() || scale_.keep_all == 0) scale_ = BudgetScale::of(plan);
  use_unit(ByteUnit::of(std::max(plan.peak_bytes, plan.keep_all_peak_bytes)));
  show_bytes(session_.asked_budget() >= 0 ? session_.asked_budget() : scale_.keep_all);
}

}  // namespace tapedeck::viewer
