// Every number that the viewer shows of a plan is the number of the command-line tool: for ten files with plans of many kinds
// and for three sources of costs, the tool is asked with the line that the viewer gives.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/words/format.h>

#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QProcess>
#include <QtCore/QRegularExpression>
#include <QtWidgets/QLabel>
#include <QtWidgets/QStatusBar>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

using Words = std::vector<std::string>;

// A sanitizer makes the tool ten times slower, and finds nothing in the last files that it does not find in the first.
#ifdef TAPEDECK_SANITIZED
constexpr std::size_t kStride = 4;
#else
constexpr std::size_t kStride = 1;
#endif

// Small files, of which some can be planned within this share of their memory, and some cannot.
constexpr double kPercent = 85;

// Runs the tool and returns what it prints.
QByteArray run_tool(const Words& words, int exit_code = 0) {
  QStringList arguments;
  for (std::size_t i = 1; i < words.size(); ++i) arguments << QString::fromStdString(words[i]);
  QProcess process;
  process.start(QStringLiteral(TAPEDECK_TOOL), arguments);
  EXPECT_TRUE(process.waitForFinished(120'000));
  EXPECT_EQ(process.exitCode(), exit_code) << process.readAllStandardError().toStdString();
  return process.readAllStandardOutput();
}

struct Case {
  const char* name;
  const char* model;
  Words sizes, plan;  // further words of `record` and of `plan -o`; no words of plan: the file holds no plan
};

const std::vector<Case> kCases = {
    {"mlp", "mlp", {}, {}},
    {"lenet", "lenet", {}, {}},
    {"cell", "rnn_cell", {"--batch", "2048"}, {}},
    {"narrow", "mlp_attention", {"--batch", "64", "--seq", "2", "--layers", "1", "--width", "16"}, {}},
    {"attention", "mlp_attention", {"--batch", "64", "--seq", "2", "--layers", "2"}, {}},
    {"threads", "lenet", {"--batch", "8"}, {"--budget", "98%", "--threads", "2", "--parallel-peak", "1.3"}},
    {"recorded",
     "mlp_attention",
     {"--batch", "64", "--seq", "2", "--layers", "1", "--width", "16"},
     {"--order", "recorded", "--strategy", "greedy", "--budget", "90%"}},
    {"chunks", "rnn_cell", {"--batch", "8"}, {"--chunk", "65536", "--align", "256"}},
    {"wishes", "lenet", {"--batch", "4"}, {"--keep", "*conv*", "--recompute", "op:relu"}},
    {"plain", "mlp", {"--batch", "8"}, {"--level", "0", "--segment-us", "10", "--split-phases"}},
};

// The file of the case, with a profile, and with its plan if it has one.
std::string make_file(const Folder& folder, const Case& c) {
  const std::string recorded = folder.file(std::string(c.name) + "-recorded.tape"),
                    path = folder.file(std::string(c.name) + ".tape");
  Words record = {"tapedeck", "record", c.model, "-q", "-o", recorded};
  record.insert(record.end(), c.sizes.begin(), c.sizes.end());
  run_tool(record);
  run_tool({"tapedeck", "replay", recorded, "--profile", "--steps", "5", "--save", path});
  if (c.plan.empty()) return path;
  Words plan = {"tapedeck", "plan", path, "-o", path, "--costs", "estimate"};
  plan.insert(plan.end(), c.plan.begin(), c.plan.end());
  run_tool(plan);
  return path;
}

// Rates as if they were measured here, so that plans by them differ from plans by estimates.
std::string make_calibration(const Folder& folder) {
  Calibration calibration;
  calibration.machine = machine_name();
  calibration.program = TAPEDECK_VERSION;
  for (const char* op : {"matmul", "conv2d", "relu", "add", "mul"})
    calibration.ops[op] = {1, 0.7, 1.3e-4, 2e-5 * static_cast<double>(op[0] - 'a' + 1), 1e-6, 5};
  save_calibration(folder.file("calibration.json"), calibration);
  return folder.file("calibration.json");
}

std::string shown(const MainWindow& window, const std::string& name) {
  for (const QLabel* label : window.statusBar()->findChildren<QLabel*>()) {
    QString text = label->text();
    text.remove(QRegularExpression(QStringLiteral("<[^>]*>")));
    if (text.startsWith(QString::fromStdString(name) + QLatin1Char(' ')))
      return text.mid(static_cast<qsizetype>(name.size()) + 1).toStdString();
  }
  return "(not shown)";
}

void expect_same(MainWindow& window) {
  const Plan& plan = window.session().model()->plan();
  Words words = tool_words(*window.session().document(), window.session().wishes(), plan.budget_bytes);
  words.push_back("--json");
  const QJsonObject told = QJsonDocument::fromJson(run_tool(words, plan.feasible ? 0 : 4)).object();
  const auto bytes = [&](const char* key) { return static_cast<std::int64_t>(told[QLatin1String(key)].toDouble(-7)); };
  EXPECT_EQ(plan.peak_bytes, bytes("peak_bytes"));
  EXPECT_EQ(plan.lower_bound_bytes, bytes("lower_bound_bytes"));
  EXPECT_EQ(plan.floor_bytes, bytes("floor_bytes"));
  EXPECT_EQ(plan.keep_all_peak_bytes, bytes("keep_all_peak_bytes"));
  EXPECT_EQ(plan.arena_bytes, bytes("arena_bytes"));
  EXPECT_EQ(plan.external_bytes, bytes("external_bytes"));
  EXPECT_EQ(plan.nodes, bytes("nodes"));
  EXPECT_EQ(plan.recomputed_nodes, bytes("recomputed_nodes"));
  EXPECT_EQ(static_cast<std::int64_t>(plan.segments.size()), bytes("segments"));
  EXPECT_DOUBLE_EQ(plan.cost_us, told[QLatin1String("cost_us")].toDouble());
  EXPECT_DOUBLE_EQ(plan.recompute_cost_ratio(), told[QLatin1String("recompute_cost_ratio")].toDouble());
  EXPECT_EQ(plan.costs, told[QLatin1String("costs")].toString().toStdString());
  EXPECT_EQ(plan.order, told[QLatin1String("order")].toString().toStdString());
  EXPECT_EQ(plan.strategy, told[QLatin1String("strategy")].toString().toStdString());
  const ByteUnit unit = ByteUnit::of(std::max(bytes("peak_bytes"), bytes("keep_all_peak_bytes")));
  EXPECT_EQ(shown(window, "peak"), unit.text(bytes("peak_bytes")));
  EXPECT_EQ(shown(window, "floor"), unit.text(bytes("floor_bytes")));
  EXPECT_EQ(shown(window, "lower bound"), unit.text(bytes("lower_bound_bytes")));
}

TEST(SameNumbers, AsTheToolForTenFilesAndThreeSourcesOfCosts) {
  const Folder folder;
  const std::string before = std::getenv("TAPEDECK_CALIBRATION") != nullptr ? std::getenv("TAPEDECK_CALIBRATION") : "off";
  setenv("TAPEDECK_CALIBRATION", make_calibration(folder).c_str(), 1);
  int feasible = 0;
  for (std::size_t i = 0; i < kCases.size(); i += kStride) {
    const Case& c = kCases[i];
    const std::string path = make_file(folder, c);
    for (const CostSource costs : {CostSource::estimate, CostSource::calibrated, CostSource::profile}) {
      SCOPED_TRACE(std::string(c.name) + ", costs " + cost_source_name(costs));
      MainWindow::Setup setup;
      setup.remember = false;
      setup.prepares = false;  // only the plans whose numbers are compared
      setup.costs = costs;
      MainWindow window(setup);
      window.open(path, {-1, kPercent});
      window.wait_for_plan();
      ASSERT_EQ(window.error(), "");
      EXPECT_EQ(window.session().model()->plan().costs, cost_source_name(costs));
      expect_same(window);
      feasible += window.session().model()->plan().feasible ? 1 : 0;
      if (costs != CostSource::profile) continue;
      window.set_budget({});  // sliding away and back changes nothing
      window.wait_for_plan();
      expect_same(window);
    }
  }
  EXPECT_GE(feasible, 3);
  setenv("TAPEDECK_CALIBRATION", before.c_str(), 1);
}

}  // namespace
}  // namespace tapedeck::viewer
