// Measurements of the main window: replays in the background, their progress and cancel in the status bar, and what becomes of
// their results. While a replay is timed, the worker plans no budgets that nobody asked for.
#include <tapedeck/viewer/window.h>

#include <tapedeck/viewer/drawing/messages.h>

#include <QtWidgets/QFileDialog>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolButton>

#include <utility>

namespace tapedeck::viewer {

void MainWindow::make_measuring_bar() {
  replays_ = std::make_unique<ReplayTask>(
      [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { poll_replays(); }), Qt::QueuedConnection); });
  measuring_bar_ = new QWidget;
  auto* row = new QHBoxLayout(measuring_bar_);
  row->setContentsMargins(0, 0, 0, 0);
  measuring_share_ = new QProgressBar;
  measuring_share_->setRange(0, 100);
  measuring_share_->setMaximumWidth(120);
  measuring_share_->setFormat(QStringLiteral("%p %"));
  auto* cancel = new QToolButton;
  cancel->setObjectName(QStringLiteral("cancel measuring"));
  cancel->setText(QStringLiteral("Cancel"));
  cancel->setToolTip(QStringLiteral("Stop measuring (Esc)"));
  connect(cancel, &QToolButton::clicked, this, guarded(this, [this] { cancel_measuring(); }));
  row->addWidget(new QLabel(QStringLiteral("measuring…")));
  row->addWidget(measuring_share_);
  row->addWidget(cancel);
  statusBar()->addPermanentWidget(measuring_bar_);
  measuring_bar_->hide();
}

void MainWindow::measure() {
  if (session_.document() == nullptr) return;
  show_panel("curve");
  when_planned([this] { replays_->measure(session_.shared_model(), session_.document()->path); });
}

void MainWindow::measure_curve() {
  if (session_.document() == nullptr) return;
  show_panel("tradeoff");
  when_planned([this] { replays_->measure_curve(problem_, session_.document()->path, session_.model()->plan().budget_bytes); });
}

void MainWindow::take_profile(const std::string& path) {
  if (session_.document() == nullptr) return;
  when_planned([this, path] { replays_->read_profile(session_.shared_model(), path); });
}

void MainWindow::forget_measurements() {
  cancel_measuring();
  session_.set_measurements({});
}

// A measurement is of the final plan, so it waits for the plan that is being made.
void MainWindow::when_planned(std::function<void()> start) {
  next_measurement_ = std::move(start);
  measuring_error_.clear();
  session_.set_measuring(true);
  measuring_share_->setValue(0);
  measuring_bar_->show();
  start_next_measurement();
}

void MainWindow::start_next_measurement() {
  if (!next_measurement_ || session_.solving()) return;
  if (session_.model() == nullptr) return end_measuring();  // no plan could be made, which another message says
  worker_->pause_filling(true);
  std::exchange(next_measurement_, {})();
}

void MainWindow::end_measuring() {
  next_measurement_ = {};
  worker_->pause_filling(false);
  measuring_bar_->hide();
  session_.set_measuring(false);
}

bool MainWindow::cancel_measuring() {
  if (!session_.measuring()) return false;
  replays_->cancel();
  end_measuring();
  return true;
}

void MainWindow::poll_replays() {
  measuring_share_->setValue(static_cast<int>(replays_->progress() * 100));
  take_measured(replays_->take());
}

void MainWindow::take_measured(std::optional<ReplayTask::Result> result) {
  if (!result) return;
  end_measuring();
  if (!result->error.empty()) {
    measuring_error_ = result->error;
    return show_error(this, "Nothing was measured\n\n" + result->error);
  }
  Measurements measured = session_.measurements();
  if (result->run)
    measured.add(std::move(result->run));
  else
    measured.set_points(std::move(result->points));
  session_.set_measurements(std::move(measured));
}

void MainWindow::wait_for_measuring() {
  wait_for_plan();
  if (session_.measuring()) take_measured(replays_->wait());
}

}  // namespace tapedeck::viewer
