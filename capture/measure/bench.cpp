// Runs steps of an executor in three phases: warm-up, steps timed as a whole, and steps with a timeline. The percentiles come
// from the whole steps; the split into kernels and the rest comes from the timelines, step by step.
#include <tapedeck/capture/measure/bench.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/replay/meter.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tapedeck {

namespace {

using replay::now_ns;

constexpr std::size_t kMostRuns = 2'000'000;  // of tiny steps: more say nothing new
constexpr int kMostTimelines = 500, kFewestTimelines = 3;

class Bench {
 public:
  Bench(Executor& executor, int threads, const BenchOptions& options) : executor_(executor), options_(options) {
    result_.threads = threads;
    result_.steps_per_wait = std::max(options.steps_per_wait, 1);
  }

  BenchResult run() {
    result_.clock_read_ns = measure_clock_read_ns();
    warm_up();
    time_steps();
    if (options_.timelines) split_steps();
    std::sort(result_.run_ns.begin(), result_.run_ns.end());
    std::sort(result_.launch_ns.begin(), result_.launch_ns.end());
    return std::move(result_);
  }

 private:
  std::int64_t step(Timeline* timeline) {
    const std::int64_t begin = now_ns();
    executor_.run(timeline);
    return now_ns() - begin;
  }

  std::int64_t timed_step() {
    result_.run_ns.push_back(step(nullptr));
    return result_.run_ns.back();
  }

  // Steps that are waited for together. Returns their time in all.
  std::int64_t launched_steps() {
    const std::int64_t begin = now_ns();
    for (int i = 0; i < result_.steps_per_wait; ++i) executor_.launch();
    const std::int64_t launched = now_ns();
    executor_.synchronize();
    const std::int64_t end = now_ns();
    result_.launch_ns.push_back((launched - begin) / result_.steps_per_wait);
    result_.run_ns.push_back((end - begin) / result_.steps_per_wait);
    return end - begin;
  }

  bool stopped() {
    result_.interrupted = result_.interrupted || (options_.cancel && options_.cancel->load(std::memory_order_relaxed));
    return result_.interrupted;
  }

  void warm_up() {
    std::int64_t spent = 0, last[3] = {};
    for (int& n = result_.warmup_runs; !stopped(); ++n) {
      if (options_.warmup_runs >= 0 ? n >= options_.warmup_runs : static_cast<double>(spent) >= options_.warmup_s * 1e9) return;
      if (options_.warmup_runs < 0 && options_.until_steady && n >= 3) {
        const auto [low, high] = std::minmax_element(last, last + 3);
        if (static_cast<double>(*high) <= 1.05 * static_cast<double>(*low)) return;
      }
      last[n % 3] = step(nullptr);
      if (n > 0) spent += last[n % 3];
    }
  }

  void time_steps() {
    const double wanted = options_.min_time_s * 1e9;
    double spent = 0;
    while (!stopped() && result_.run_ns.size() < kMostRuns &&
           (spent < wanted || static_cast<int>(result_.run_ns.size()) < options_.min_runs)) {
      spent += static_cast<double>(result_.steps_per_wait > 1 ? launched_steps() : timed_step());
      report(0.8 * spent / std::max(wanted, 1.0));
    }
  }

  void split_steps() {
    const double wanted = options_.min_time_s * 1e9 / (options_.node_times ? 1 : 4);
    std::vector<double> kernels, outside, busy;
    double spent = 0;
    Timeline timeline;
    timeline.slices.reserve(executor_.plan().graph.nodes.size());
    NodeTimes nodes(options_.node_times ? executor_.plan().graph.node_count() : 0, result_.clock_read_ns);
    while (!stopped() && result_.timeline_runs < kMostTimelines &&
           (spent < wanted || result_.timeline_runs < kFewestTimelines)) {
      const std::int64_t took = step(&timeline);
      const KernelTime time = kernel_time(timeline, took, result_.clock_read_ns);
      if (options_.node_times) nodes.add(timeline);
      kernels.push_back(time.kernels_ns);
      outside.push_back(time.outside_ns);
      busy.push_back(time.thread_ns / (time.kernels_ns + time.outside_ns + 1e-9) / result_.threads);
      ++result_.timeline_runs;
      spent += static_cast<double>(took);
      report(0.8 + 0.2 * spent / std::max(wanted, 1.0));
    }
    result_.kernels_ns = kernels.empty() ? 0 : median(kernels);
    result_.outside_ns = outside.empty() ? 0 : median(outside);
    result_.thread_busy = busy.empty() ? 0 : median(busy);
    if (options_.node_times && result_.timeline_runs > 0) result_.node_us = nodes.in_us();
  }

  void report(double fraction) {
    if (options_.progress) options_.progress(std::min(fraction, 1.0));
  }

  Executor& executor_;
  const BenchOptions& options_;
  BenchResult result_;
};

}  // namespace

BenchResult bench(Executor& executor, int threads, const BenchOptions& options) {
  return Bench(executor, threads, options).run();
}

std::int64_t percentile(const std::vector<std::int64_t>& ascending, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(ascending.size()));
  return ascending[static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(ascending.size()))) - 1];
}

namespace {

// REQUIRES: not empty.
double lower_quartile(std::vector<double> numbers) {
  const auto quarter = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 4);
  std::nth_element(numbers.begin(), quarter, numbers.end());
  return *quarter;
}

}  // namespace

void NodeTimes::add(const Timeline& step) {
  for (const Slice& s : step.slices) {
    if (s.node == kNone) continue;
    const double ns = static_cast<double>(s.end_ns - s.start_ns) - clock_read_ns_;
    ns_[static_cast<std::size_t>(s.node)].push_back(std::max(ns, 0.0));
  }
}

std::vector<double> NodeTimes::in_us() const {
  std::vector<double> us;
  us.reserve(ns_.size());
  for (const std::vector<double>& of_node : ns_) us.push_back(of_node.empty() ? -1 : lower_quartile(of_node) / 1000);
  return us;
}

KernelTime kernel_time(const Timeline& timeline, std::int64_t step_ns, double clock_read_ns) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  KernelTime time;
  for (const Slice& s : timeline.slices) {
    if (s.node == kNone) continue;
    spans.emplace_back(s.start_ns, s.end_ns);
    time.thread_ns += std::max(0.0, static_cast<double>(s.end_ns - s.start_ns) - clock_read_ns);
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t covered = 0, until = -1;
  double stretches = 0;
  for (const auto& [start, end] : spans) {
    if (start > until) ++stretches;
    covered += std::max<std::int64_t>(0, end - std::max(start, until));
    until = std::max(until, end);
  }
  time.kernels_ns = std::max(0.0, static_cast<double>(covered) - stretches * clock_read_ns);
  time.outside_ns = std::max(0.0, static_cast<double>(step_ns - covered) - stretches * clock_read_ns);
  return time;
}

}  // namespace tapedeck
