// The JSON answers. Keys are only ever added, never renamed.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/measure/bench.h>
#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/largest_batch.h>
#include <tapedeck/capture/planner/tradeoff.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/eager_difference.h>
#include <tapedeck/capture/replay/elements.h>
#include <tapedeck/capture/replay/tensor_difference.h>
#include <tapedeck/capture/replay/tensor_statistics.h>
#include <tapedeck/capture/sizes/dim_table.h>
#include <tapedeck/capture/tool/reports/device_report.h>
#include <tapedeck/capture/tool/reports/graph_summary.h>
#include <tapedeck/capture/tool/reports/plan_explain.h>
#include <tapedeck/capture/tool/reports/profile_table.h>
#include <tapedeck/capture/tool/reports/roofline_report.h>
#include <tapedeck/capture/tool/reports/shown_value.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::tool {

// The values of a scalar output, one for each step that computed it.
struct ScalarLog {
  std::string name;
  std::vector<std::int64_t> steps;  // from 1
  std::vector<double> values;
};

// What --monitor saw of one value in one step.
struct MonitoredValue {
  std::int64_t step = 0;  // from 1
  NodeId node = kNone;    // of the planned graph
  std::string name, op;
  Type type;
  TensorStatistics statistics;
};

// One value that --expect compared.
struct ExpectedCheck {
  std::string name, file;
  TensorDifference difference;
};

struct ReplaySummary {
  std::string device;
  std::optional<DeviceUse> on_device;
  int threads = 0;
  std::int64_t steps = 0;
  bool interrupted = false;  // Ctrl-C ended a --loop: the numbers are of the steps before it, and no file was written
  std::int64_t planned_peak_bytes = 0;
  std::int64_t observed_peak_bytes = 0;
  std::int64_t resident_peak_bytes = -1;  // of the process, until the last step; -1: not known
  double median_ms = 0, min_ms = 0, max_ms = 0;
  std::optional<bool> equal_to_eager;
  std::optional<ProfileTable> profile;
  std::string first_difference;                    // name of the first output or state value that differs
  std::int64_t differing_step = 0;                 // the step in which it differs, from 1
  std::optional<NodeDifference> differing_node;    // of that step, if it was found again
  std::vector<double> step_ms;                     // of each step
  std::vector<std::pair<Phase, double>> phase_ms;  // of the last step, with --phase
  std::string until;                               // the value behind which the last step stopped; empty: it did not
  std::vector<ScalarLog> scalars;
  std::vector<MonitoredValue> monitored;
  std::optional<ShownStop> stop;   // where the last step stopped, if it was told to stop somewhere
  std::vector<ShownValue> values;  // of --value, there
  std::int64_t kept_bytes = 0;     // copies that the last step kept for them
  std::optional<std::vector<ExpectedCheck>> expected;
  std::vector<std::string> written;  // files of values

  bool as_expected() const;  // neither eager execution nor --expect differs
};

// One row of `bench`: a file or model at one thread count.
struct BenchRow {
  std::string name;
  std::int64_t nodes = 0, segments = 0;
  BenchResult result;
  std::int64_t planned_peak_bytes = 0, observed_peak_bytes = 0;
  double speedup = 0;    // against the first row of the same name
  int plan_threads = 1;  // the plan was made for this many
  std::string costs;     // the source of costs of the plan
  std::optional<RooflineAnswer> roofline = {};
  std::optional<DeviceUse> on_device = {};
};

struct ModelSummary {
  Model model;
  std::vector<std::pair<std::string, std::string>> defaults;  // of the options it takes
  std::int64_t parameters = 0;                                // elements that training updates
  std::int64_t nodes = 0;                                     // of one training step
  double flops = 0;                                           // of the forward pass at batch 1
};

struct DeviceLine {
  std::string name;
  bool available = false;
  std::string detail;
  std::optional<kernels::cuda::DeviceProperties> gpu = {};
};

// A library of NVIDIA that kernels use if it is there.
struct LibraryLine {
  std::string name;
  bool found = false;
  std::string why;  // if not
};

// The error of costs for one file: quantiles of |ln(cost / measured)| over its nodes.
struct CostError {
  std::string source;  // estimate, calibrated, profile
  double median = 0, p90 = 0;
  double total_ratio = 0;  // all costs to all measured
};
struct CostCheck {
  std::string file;
  std::int32_t nodes = 0;  // that were compared: measured nodes with a known cost
  double step_us = 0;
  std::vector<CostError> errors;
};

// The result of `offsets`.
struct OffsetsSummary {
  std::int64_t buffers = 0, lower_bound = 0, peak = 0;
  std::int64_t proven_bound =
      0;  // no placement ends lower: the lower bound, or the peak if the search excluded everything below
  std::int64_t capacity = -1;
  bool optimal = false, interrupted = false;
  double seconds = 0;
  std::int64_t work = 0;
  int arenas = 1;
};

// An error that ends a command.
struct Failure {
  int code = 0;  // the exit code
  std::string message;
  std::string kind = {};  // the class of the error, "FileError"; empty if it is none of this library
  std::string file = {};  // the place of the user's call, which captures store; empty and 0 if it is not known
  int line = 0;
  std::optional<InfeasiblePlanError> infeasible = {};
};
std::string error_report(const std::string& command, const Failure& failure);  // `command` is empty if the line names none

// plan_report.cpp. `explain` adds one object for its topic; `background` is the same as for explained().
std::string plan_report(const Plan& plan, const std::string& explain, const PlanBackground& background);
std::string replay_report(const ReplaySummary& summary);                         // replay_report.cpp
std::string replay_text(const std::string& path, const ReplaySummary& summary);  // replay_report.cpp
std::string bench_report(const std::vector<BenchRow>& rows, double total_s, bool interrupted,
                         const std::string& device);  // bench_report.cpp
std::string info_report(const std::string& path, const TapeFile& file, const DimTable& dims, const GraphSummary& summary);
std::string calibrate_report(const std::string& path, const Calibration& calibration);  // cost_report.cpp
std::string cost_check_report(const std::vector<CostCheck>& files);                     // cost_report.cpp
std::string offsets_report(const OffsetsSummary& summary);                              // offsets_report.cpp
std::string sweep_report(const Tradeoff& found);                                        // sweep_report.cpp
std::string maxbatch_report(const std::string& subject, const BatchQuestion& question, const LargestBatch& found);
std::string record_report(const std::string& path, const Captured& captured);
std::string gradient_report(const Graph& graph, NodeId nodes_before, const std::vector<std::string>& wrt,
                            const std::vector<ValueId>& gradients, const std::string& text);
std::string print_report(const std::string& text);
std::string opt_report(const std::vector<PassRecord>& records, const std::string& text);  // pass_report.cpp
std::string passes_report(const std::vector<const Pass*>& passes);                        // pass_report.cpp
std::string reduce_report(const Graph& before, const Graph& after, std::int64_t checks, bool interrupted,
                          const std::string& text);  // pass_report.cpp
std::string export_report(const std::string& format, const Graph& graph, const std::string& path, const std::string& text);
std::string export_onnx_report(const Graph& graph, const std::string& path, const OnnxExport& result);
std::string new_report(const std::string& project, const std::string& folder, const std::vector<std::string>& files);
std::string verify_report(const std::string& path, const std::vector<std::string>& problems);
std::string models_report(const std::vector<ModelSummary>& models);
std::string ops_report(const std::vector<const Op*>& ops);  // op_report.cpp
std::string settings_report(const std::vector<SettingDoc>& settings);
std::string devices_report(const std::vector<DeviceLine>& devices, const std::vector<LibraryLine>& libraries);

}  // namespace tapedeck::tool
