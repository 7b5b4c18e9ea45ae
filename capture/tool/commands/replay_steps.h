// The steps of one replay: inputs that change from step to step, the scalars of each step as they come, monitors, and a last
// step that may end early.
#pragma once

#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/value_files.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/replay/executor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct StepOptions {
  std::int64_t steps = 1;
  double loop_s = 0;                  // > 0: steps until this time is over, and at least one
  std::string until;                  // stop the last step behind this value, or the node of this number; empty: no
  bool stop_at_nan = false;           // stop it behind the first node that makes NaN
  bool stop_at_infinity = false;      // ... or an infinity
  std::vector<std::string> values;    // look at these values where the last step stops
  std::optional<Phase> phase;         // stop the last step at the end of this phase
  std::vector<std::string> monitors;  // patterns
  bool monitor_inputs = false;        // monitors show the operands of nodes too
  bool prints_lines = true;           // one for each step, to stdout
  bool reads_ahead = false;           // the inputs of a step are read while a device runs the step before it
  std::function<Timeline*(bool is_last)> timeline = {};                    // for each step; null: none
  std::function<void(const std::vector<Tensor>& inputs)> after_step = {};  // with the inputs of the step
};

class ReplaySteps {
 public:
  // REQUIRES: inputs and state of the executor are those of `start`, and both outlive this. Throws UsageError for a value that
  // the plan does not have and for a pattern that matches nothing, before anything runs.
  ReplaySteps(Executor* executor, const Start& start, StepOptions options);

  // Fills in the times, the scalars and what the monitors saw. Throws Cancelled after Ctrl-C.
  void run(ReplaySummary* summary);

  // The values that the last step shows: `values`, else the value of `until`, else the outputs. After a step that ended early,
  // those outputs that have been computed.
  std::vector<NamedTensor> values() const;
  // Their names and types, known before anything runs.
  const std::vector<NamedType>& shown() const { return shown_; }

 private:
  bool stops_early() const { return stops_in_order() || options_.phase.has_value(); }
  bool stops_in_order() const { return !options_.until.empty() || options_.stop_at_nan || options_.stop_at_infinity; }
  void find_shown();
  void watch();
  void note(const Monitored& m);
  void feed(std::int64_t step);
  void run_step(bool is_last, const RunOptions& how, ReplaySummary* summary);
  void run_beside_reading(std::int64_t next);
  void run_to_stop(ReplaySummary* summary);
  void show_values(ReplaySummary* summary) const;
  void run_phases(const RunOptions& how, ReplaySummary* summary);
  std::string stopped_text(std::int64_t step) const;
  std::optional<Tensor> read(const std::string& name) const;
  void tell(std::int64_t step, ReplaySummary* summary);

  Executor& executor_;
  const Start& start_;
  StepOptions options_;
  std::vector<NamedType> shown_;
  NodeId last_node_ = kNone;          // of `until`: the node behind which the last step stops
  std::vector<Tensor> inputs_;        // of the step that runs next
  std::int64_t fed_ = 0;              // the inputs of the executor are those of this step
  std::exception_ptr unread_;         // why the inputs of the next step cannot be read
  std::vector<MonitoredValue> seen_;  // in the step
};

}  // namespace tapedeck::tool
