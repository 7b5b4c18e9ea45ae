// Tests measurements in the window with real events: a replay of a small step by its key, its numbers in every panel and file,
// points of cost over peak, refusals, cancelling, and profiles.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/load_executor.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/measured.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/screenshot.h>

#include <QtGui/QImage>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QToolButton>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <variant>

namespace tapedeck::viewer {
namespace {

constexpr MeasureEffort kQuick = {.warm_up_s = 0, .steps_s = 0, .timelines_s = 0};

// The cnn, planned under 70 % of its memory in the recorded order, which takes half of the time.
const TapeFile& cnn_file() {
  static const TapeFile file = [] {
    TapeFile made = tape_of(record_model(*find_model("cnn"), {.batch = 2}));
    made.plan = make_plan(made.captured, {.budget_percent = 70, .ordering = Ordering::recorded});
    return made;
  }();
  return file;
}

// A window with it.
class ReplayWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    save_tape(path, cnn_file());
    window.replays().set_effort(kQuick);
    window.resize(1280, 720);
    window.open(path);
    window.wait_for_plan();
    window.show();
    activate();
    ASSERT_TRUE(plan().feasible);
    ASSERT_GT(plan().recomputed_nodes, 0);
  }
  void activate() {  // only the active window has shortcuts
    window.activateWindow();
    ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
  }
  const PlanModel& model() { return *window.session().model(); }
  const Plan& plan() { return model().plan(); }
  const MeasuredRun* run() { return window.session().measurements().of_plan(model()); }
  bool measured() {
    return spin_until([&] { return !window.session().measuring(); });
  }
  void measure() {
    press(window, Qt::Key_M, Qt::ControlModifier);
    EXPECT_TRUE(window.session().measuring());
    ASSERT_TRUE(measured());
  }
  static std::string summary_of(MainWindow& w) { return measured_summary(w.session()); }
  void close_dialogs() {
    for (auto* box : window.findChildren<QMessageBox*>()) box->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    activate();
  }
  QString dialog_text() {
    const auto* box = window.findChild<QMessageBox*>();
    return box == nullptr ? QString() : box->text();
  }
  static std::string first_line_with(const std::string& text, const std::string& start) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with(start)) return line;
    return "";
  }

  Folder folder;
  std::string path = folder.file("cnn.tape");
  MainWindow window{{Renderer::soft, "software", false, false}};  // plans nothing unasked
};

// The library alone, with the same values: what was observed is what was planned, and what the window shows.
TEST_F(ReplayWindow, AReplayHoldsWhatThePlanSaysInEveryPanel) {
  EXPECT_EQ(summary_of(window), "");
  measure();
  ASSERT_NE(run(), nullptr) << dialog_text().toStdString();
  TapeFile file = load_tape(path);
  file.plan = plan();
  Executor executor = make_executor(std::move(file), {.threads = 1});
  executor.run();
  EXPECT_EQ(run()->observed_peak_bytes, executor.observed_peak_bytes());
  EXPECT_EQ(executor.observed_peak_bytes(), plan().peak_bytes);
  const std::vector<std::int64_t> planned = live_bytes(plan());
  EXPECT_EQ(run()->most_live, *std::max_element(planned.begin(), planned.end()));
  for (std::size_t n = 0; n < planned.size(); ++n)
    if (run()->live[n] >= 0) {
      EXPECT_EQ(run()->live[n], planned[n]) << n;
    }
  const std::string summary = summary_of(window);
  EXPECT_NE(summary.find("peak " + human_bytes(plan().peak_bytes) + " (0 %)"), std::string::npos) << summary;
  EXPECT_NE(summary.find("most live " + human_bytes(plan().lower_bound_bytes) + " (0 %)"), std::string::npos) << summary;

  // The files: the numbers, and the picture with its line.
  window.write_csv("curve", folder.file("live.csv"));
  const std::string peak = std::to_string(plan().peak_bytes), csv = read(folder.file("live.csv"));
  EXPECT_EQ(first_line_with(csv, "peak").find("peak,,,," + peak + "," + peak + ",0.0000,"), 0u) << csv.substr(0, 400);
  export_picture(folder.file("live.svg"), window.curve(), 1200, 400, 1);
  EXPECT_NE(read(folder.file("live.svg")).find("measured: peak"), std::string::npos);

  // The details of the plan, then of a node.
  window.session().clear_selection();
  EXPECT_TRUE(window.details().toPlainText().contains(QStringLiteral("measured peak")));
  const auto node = static_cast<NodeId>(std::max_element(run()->node_us.begin(), run()->node_us.end(),
                                                         [](double a, double b) { return std::isnan(b) ? false : !(a >= b); }) -
                                        run()->node_us.begin());
  window.session().select_node(node);
  const std::string us = human_us(run()->node_us[static_cast<std::size_t>(node)]);
  EXPECT_TRUE(window.details().toPlainText().contains(QString::fromStdString(us + ", "))) << us;
}

// The line of dots ends where the last node ends that had a call, whatever the axis counts.
TEST_F(ReplayWindow, TheMeasuredLineFollowsTheAxisOfTime) {
  measure();
  NodeId last = 0;
  for (NodeId n = 0; n < model().nodes(); ++n)
    if (run()->live[static_cast<std::size_t>(n)] >= 0) last = n;
  for (const TimeUnit unit : {TimeUnit::nodes, TimeUnit::us}) {
    window.set_time_unit(unit);
    const std::shared_ptr<const TimeAxis> axis = model().time_axis(unit);
    ASSERT_EQ(axis->unit(), unit);
    constexpr int kWidth = 1200;
    const VectorPicture picture = picture_vectors(window.curve(), kWidth, 400);
    float dots_end = 0;
    for (const VectorShape& shape : picture.shapes())
      if (const auto* rect = std::get_if<VectorRect>(&shape))
        if (rect->colour.r == colours::kMeasured.r && rect->colour.g == colours::kMeasured.g && rect->box.width() <= 1)
          dots_end = std::max(dots_end, rect->box.x1);
    const double x0 = 60, x1 = kWidth - 62;
    EXPECT_NEAR(static_cast<double>(dots_end), x0 + (x1 - x0) * axis->at(last + 1) / axis->at(model().nodes()), 8);
  }
}

TEST_F(ReplayWindow, TheTableOfNodesHasMeasuredTimesWhenThereAreAny) {
  const int column = layout_of(TableId::nodes).column("measured");
  RowsView* view = window.nodes().table();
  EXPECT_TRUE(view->isColumnHidden(column));
  measure();
  EXPECT_FALSE(view->isColumnHidden(column));
  int shown = 0;
  for (int row = 0; row < view->model()->rowCount(); ++row) {
    const double us = run()->node_us[static_cast<std::size_t>(window.nodes().node_at(row))];
    const QString cell = view->model()->index(row, column).data().toString();
    EXPECT_EQ(cell.isEmpty(), std::isnan(us)) << row;
    if (!std::isnan(us)) {
      EXPECT_EQ(cell.toStdString(), human_us(us)) << row;
    }
    shown += std::isnan(us) ? 0 : 1;
  }
  EXPECT_GT(shown, model().nodes() / 2);
  // The filter knows the column, and another plan of the step has the times of its nodes by name.
  window.nodes().filter()->setFocus();
  type(window, "measured>0");
  EXPECT_LE(view->model()->rowCount(), shown);
  EXPECT_GT(view->model()->rowCount(), 0);
  window.nodes().filter()->clear();
  window.set_budget({});
  window.wait_for_plan();
  EXPECT_EQ(run(), nullptr);
  EXPECT_NE(summary_of(window).find("another plan"), std::string::npos);
  EXPECT_FALSE(view->isColumnHidden(column));
  EXPECT_FALSE(window.session().measured_us().empty());
  find_command("replay.forget")->run(window);
  EXPECT_TRUE(view->isColumnHidden(column));
  EXPECT_EQ(summary_of(window), "");
}

// The line of dots over the planned curve changes the picture, and nothing else does.
TEST_F(ReplayWindow, TheLineIsDrawnOverThePlannedCurve) {
  const QImage before = render_picture(window.curve(), 900, 400);
  measure();
  const QImage after = render_picture(window.curve(), 900, 400);
  const QRgb colour = qRgb(colours::kMeasured.r, colours::kMeasured.g, colours::kMeasured.b);
  int drawn = 0, other = 0;
  for (int y = 48; y < 350; ++y)
    for (int x = 70; x < 830; ++x) {
      drawn += (after.pixel(x, y) | 0xff000000) == colour && before.pixel(x, y) != after.pixel(x, y) ? 1 : 0;
      other += (after.pixel(x, y) | 0xff000000) != colour && before.pixel(x, y) != after.pixel(x, y) ? 1 : 0;
    }
  EXPECT_GT(drawn, 300);
  EXPECT_LT(other, drawn / 10);
}

TEST_F(ReplayWindow, PointsOfCostOverPeakAreMeasuredDrawnListedAndWritten) {
  press(window, Qt::Key_M, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(measured());
  const std::vector<MeasuredPoint> points = window.session().measurements().points();
  ASSERT_GE(points.size(), 3u) << dialog_text().toStdString();
  const auto shown = std::find_if(points.begin(), points.end(),
                                  [&](const MeasuredPoint& p) { return p.planned_peak_bytes == plan().peak_bytes; });
  EXPECT_NE(shown, points.end());  // the plan in the window is among them
  for (const MeasuredPoint& p : points) {
    EXPECT_EQ(p.observed_peak_bytes, p.planned_peak_bytes);
    if (&p != &points.front()) continue;
    PlanOptions how = window.session().document()->options;
    how.budget = p.budget;
    const Plan alone = make_plan(*window.session().document()->captured, how);
    EXPECT_EQ(alone.peak_bytes, p.planned_peak_bytes);
    EXPECT_DOUBLE_EQ(alone.recompute_cost_ratio(), p.planned_ratio);
  }
  // A click on a measured point takes its budget.
  Canvas& canvas = *window.panel("tradeoff").canvas;
  settle(canvas);
  const MeasuredPoint& wanted = points.front();
  click(canvas, window.tradeoff().place_of(wanted.observed_peak_bytes, wanted.ratio()));
  window.wait_for_plan();
  EXPECT_EQ(plan().peak_bytes, wanted.planned_peak_bytes);

  window.write_csv("tradeoff", folder.file("t.csv"));
  const std::string csv = read(folder.file("t.csv"));
  for (const MeasuredPoint& p : points) {
    const std::string numbers = "," + std::to_string(p.budget) + "," + std::to_string(p.planned_peak_bytes) + ",";
    EXPECT_NE(csv.find(numbers), std::string::npos);
  }
  EXPECT_EQ(csv.find("strategy,budget_bytes,peak_bytes,cost_ratio,bound_ratio,measured_peak_bytes,measured_us,measured_ratio,"
                     "deviation_percent\n"),
            0u);
  export_picture(folder.file("t.svg"), window.tradeoff(), 1200, 600, 1);
  EXPECT_NE(read(folder.file("t.svg")).find("off by"), std::string::npos);
}

TEST_F(ReplayWindow, EscAndTheButtonCancel) {
  window.replays().set_effort(
      {.warm_up_s = 60, .steps_s = 60, .timelines_s = 60, .least_steps = 100000, .most_steps = 10000000});
  auto* button = window.findChild<QToolButton*>(QStringLiteral("cancel measuring"));
  ASSERT_NE(button, nullptr);
  for (const bool by_key : {true, false}) {
    press(window, Qt::Key_M, Qt::ControlModifier);
    ASSERT_TRUE(spin_until([&] { return button->isVisible() && window.replays().progress() > 0; }));
    if (by_key)
      press(window, Qt::Key_Escape);
    else
      click_widget(*button);
    EXPECT_FALSE(window.session().measuring());
    EXPECT_FALSE(button->isVisible());
    EXPECT_TRUE(window.session().measurements().empty());
  }
  window.replays().set_effort(kQuick);
  measure();
  EXPECT_NE(run(), nullptr);
}

// A replay waits for the plan that is being made, and is of that plan.
TEST_F(ReplayWindow, AReplayWaitsForThePlan) {
  window.set_budget({-1, 90});
  EXPECT_TRUE(window.session().solving());
  press(window, Qt::Key_M, Qt::ControlModifier);
  ASSERT_TRUE(measured());
  EXPECT_FALSE(window.session().solving());
  ASSERT_NE(run(), nullptr);
  EXPECT_EQ(run()->observed_peak_bytes, plan().peak_bytes);
}

TEST_F(ReplayWindow, WhatCannotBeReplayedSaysWhy) {
  window.set_budget({1000, -1});
  window.wait_for_plan();
  ASSERT_FALSE(plan().feasible);
  press(window, Qt::Key_M, Qt::ControlModifier);
  ASSERT_TRUE(measured());
  EXPECT_TRUE(window.session().measurements().empty());
  EXPECT_NE(window.measuring_error().find("does not fit its budget"), std::string::npos) << window.measuring_error();
  EXPECT_TRUE(dialog_text().contains(QStringLiteral("does not fit its budget")));
  close_dialogs();

  // More memory than any machine has.
  window.open(folder.write("huge.graph",
                           "graph huge(%x: f32[1000000,1000000]) {\n  %y: f32[1000000,1000000] = exp(%x)\n  return %y\n}\n"));
  window.wait_for_plan();
  press(window, Qt::Key_M, Qt::ControlModifier);
  ASSERT_TRUE(measured());
  EXPECT_NE(window.measuring_error().find("needs "), std::string::npos) << window.measuring_error();
  EXPECT_NE(window.measuring_error().find("are available here"), std::string::npos) << window.measuring_error();
  close_dialogs();

  // Another document forgets what was measured, and drops what is being measured.
  window.open(path);
  window.wait_for_plan();
  measure();
  EXPECT_FALSE(window.session().measurements().empty());
  press(window, Qt::Key_M, Qt::ControlModifier);
  window.open(path);
  EXPECT_FALSE(window.session().measuring());
  EXPECT_TRUE(window.session().measurements().empty());
}

TEST_F(ReplayWindow, AProfileGivesTimesAndAPeak) {
  measure();
  TapeFile file = load_tape(path);
  file.profile = run()->times;
  file.profile->peak_bytes = plan().peak_bytes + 64;
  file.plan = plan();
  const std::string profiled = folder.file("profiled.tape");
  save_tape(profiled, file);
  Options options;
  options.file = profiled;
  options.profile = profiled;
  options.panel = "curve";
  options.csv = folder.file("p.csv");
  options.shot = folder.file("p.svg");
  ASSERT_EQ(take_shot(options), kOk);
  EXPECT_NE(read(options.shot).find("the profile of profiled.tape: peak"), std::string::npos);
  int times = 0;
  std::istringstream lines(read(options.csv));
  for (std::string line; std::getline(lines, line);) times += line.starts_with("node,") && !line.ends_with(",,") ? 1 : 0;
  EXPECT_GT(times, static_cast<int>(file.profile->nodes.size()) / 2);

  options.profile = path;  // it has none
  EXPECT_EQ(take_shot(options), kBadFile);
}

// Without a window: a replay from the command line, and the two files.
TEST_F(ReplayWindow, TheCommandRunsUnattended) {
  Options options;
  std::string error;
  ASSERT_TRUE(parse_options({path, "--run", "replay.measure", "--panel", "curve", "--shot", folder.file("u.svg"), "--export",
                             folder.file("u.csv"), "--profile", path},
                            &options, &error))
      << error;
  EXPECT_EQ(options.profile, path);
  options.profile.clear();
  EXPECT_EQ(take_shot(options), kOk);
  EXPECT_NE(read(options.shot).find("measured: peak"), std::string::npos);
  EXPECT_EQ(first_line_with(read(options.csv), "peak").find("peak,,,,"), 0u);
  EXPECT_NE(first_line_with(read(options.csv), "peak").find(",0.0000,"), std::string::npos);
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--profile", "a.tape"}, {"a", "--profile"}}) {
    options = {};
    EXPECT_FALSE(parse_options(bad, &options, &error));
  }
}

}  // namespace
}  // namespace tapedeck::viewer
