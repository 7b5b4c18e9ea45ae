// Measures the time of a step, and the share of it that kernels take. `tapedeck bench` prints the result.
//
// Steps are timed whole, without a timeline, from the call of run() to its return: these times give the percentiles. Then some
// steps run with a timeline, and the timelines give the split. At any moment of such a step either a kernel runs on some thread
// or none does:
//
//     in kernels = the time during which at least one kernel runs (on one thread: the sum of the slices)
//     outside    = the rest of the step: dispatch, hand-over between threads, the entry and the exit of run()
//
// Each stretch of kernel time holds the cost of one reading of the clock, and so does each gap; both are subtracted, measured
// on the machine at hand. The other costs of a timeline (storing slices, work of the processor that no longer overlaps) count
// as outside. So this figure is too high by about 50 ns a node: nothing for nodes of microseconds, much for a step of a few
// tiny nodes.
//
// The split is made within each step and the median of each part over the steps is reported, so that a step that is slow as a
// whole does not look like overhead. With several threads a gap on one of them hides behind a kernel on another; `thread_busy`
// shows that: the part of all threads' time that their own kernel calls take (threads that help inside another's kernel count
// as idle).
#pragma once

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct BenchOptions {
  int warmup_runs = -1;      // exactly so many steps before those that count; -1: by time
  double warmup_s = 0.5;     // behind the first step, in which kernel libraries set themselves up (100 ms for a perceptron)
  bool until_steady = true;  // by time: no longer than it takes until three steps in a row agree within 5 %
  double min_time_s = 1;     // time steps until they took this long together; those with a timeline take a quarter of it more
  int min_runs = 3;
  int steps_per_wait = 1;   // of the timed steps: so many are launched, then they are waited for; more than one is for devices
  bool timelines = true;    // false: no steps with a timeline, so no split; a device runs them without its graphs
  bool node_times = false;  // fill BenchResult::node_us; steps with a timeline then take as long as the others
  const std::atomic<bool>* cancel = nullptr;  // checked between steps; what has been measured by then is the result
  std::function<void(double)> progress = {};  // 0..1, from the calling thread
};

struct BenchResult {
  int threads = 1;
  int warmup_runs = 0;
  int steps_per_wait = 1;
  std::vector<std::int64_t> run_ns;     // of the timed steps, ascending; of several per wait, the mean of these
  std::vector<std::int64_t> launch_ns;  // of several per wait: the time of the host in one launch, ascending
  int timeline_runs = 0;
  double kernels_ns = 0, outside_ns = 0;  // of a step; 0 if timeline_runs is
  double thread_busy = 0;                 // 0..1
  double clock_read_ns = 0;
  bool interrupted = false;
  // By node of the plan, if it was asked for: the microseconds in its kernel call (NodeTimes). Empty without a step that had a
  // timeline.
  std::vector<double> node_us = {};

  double outside_share() const { return kernels_ns + outside_ns > 0 ? outside_ns / (kernels_ns + outside_ns) : 0; }
};

// REQUIRES: the executor has its inputs and state. State changes as in any other step. Throws what run() throws.
BenchResult bench(Executor& executor, int threads, const BenchOptions& options = {});

// Nearest rank: the smallest measured value that `percent` of all values do not exceed; so of few values the 99th is the
// largest. REQUIRES: ascending, not empty, 0 < percent <= 100.
std::int64_t percentile(const std::vector<std::int64_t>& ascending, double percent);

// The split of one step that took step_ns in all.
struct KernelTime {
  double kernels_ns = 0, outside_ns = 0;
  double thread_ns = 0;  // of all kernel calls, side by side
};
KernelTime kernel_time(const Timeline& timeline, std::int64_t step_ns, double clock_read_ns);

// The times of single nodes in several steps of one plan. The time of a node is the lower quartile over the steps, because
// other programs on the machine can only add time, and few steps of a large model stay undisturbed.
class NodeTimes {
 public:
  NodeTimes(std::int32_t nodes, double clock_read_ns) : ns_(static_cast<std::size_t>(nodes)), clock_read_ns_(clock_read_ns) {}
  void add(const Timeline& step);     // REQUIRES: of this plan
  std::vector<double> in_us() const;  // by node, without the cost of the clock; -1 for nodes that never ran

 private:
  std::vector<std::vector<double>> ns_;
  double clock_read_ns_;
};

}  // namespace TAPEDECK_API
