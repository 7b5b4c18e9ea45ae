// Every zoo model's training step, planned: how far the peak is above the bound, what the order of nodes and the sharing of
// bytes win over the tape as recorded, and what planning costs beside capturing.
//
//   zoo_plan_bench [--only NAME] [--batch 1,32] [--threads N] [--no-capture] [--no-rest]
//
// Steps are recorded by types alone at every batch, which takes no memory.
//   naive     the recorded order, and no two values share bytes but by being dead
//   peak      planned as for a captured step: without the search for the floor, which nobody asked for, and with as much search
//   as the step is
//             worth; `/bound` is of that plan, `plan ms` what it took
//   at rest   a plan that has the time, as `tapedeck plan` makes it (--no-rest: the same plan): `ours` and `arena` compare it
//   with `naive` par.      planned for N threads: its peak beside the peak for one, and the simulated time beside that of bytes
//   placed tightly chunks    the arena in chunks of a quarter of the peak: the peak beside that of one block, how many chunks,
//   and the time of planning first     a process of its own captures the step, running it and freezing it (Captured::ms), and
//   plans what it captured, each for the first
//             time: what a person waits for, start-up of the libraries counted. Where it fits (kMostBytes, kMostSeconds;
//             --no-capture: nowhere)
//   warm      the same, medians of three in this process, in which all has run before
#include <tapedeck/tapedeck.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;
using Clock = std::chrono::steady_clock;

struct Asked {
  std::string only;
  std::vector<std::int64_t> batches = {1, 32};
  int threads = 2;
  bool capture = true, rest = true;
};

// What a step may need to be recorded for real: bytes in the recorded order, and time by the cost model.
constexpr std::int64_t kMostBytes = std::int64_t{6} << 30;
constexpr double kMostSeconds = 20;
constexpr double kAimedShare = 0.05;  // of capturing, for planning

struct Means {  // geometric
  double log_sum = 0;
  int n = 0;
  void add(double ratio) { log_sum += std::log(ratio), ++n; }
  double mean() const { return n ? std::exp(log_sum / n) : 1.0; }
};

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

struct Timed {
  Plan plan;
  double ms = 0;
};

Timed planned(const Graph& graph, const PlanOptions& options, int times = 1) {
  Timed result;
  std::vector<double> ms;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    result.plan = make_plan(graph, options);
    ms.push_back(ms_since(start));
  }
  std::nth_element(ms.begin(), ms.begin() + times / 2, ms.end());
  result.ms = ms[static_cast<std::size_t>(times) / 2];
  return result;
}

double capture_ms(const Model& model, ModelOptions options) {
  options.abstract = false;
  double ms[3];
  for (double& one : ms) one = record_model(model, options).ms;
  std::sort(std::begin(ms), std::end(ms));
  return ms[1];
}

PlanOptions in_a_hurry() {
  PlanOptions options;
  options.find_floor = false;
  return options;
}

ModelOptions of_batch(const Model& model, std::int64_t batch) {
  ModelOptions how;
  if (std::find(model.options.begin(), model.options.end(), "batch") != model.options.end()) how.batch = batch;
  return how;
}

struct First {
  double capture_ms = 0, plan_ms = 0;
};

// In the process that --first starts.
int print_first(const std::string& name, std::int64_t batch) {
  const Model* model = find_model(name);
  if (!model) return 2;
  const Captured step = record_model(*model, of_batch(*model, batch));
  fmt::print("{} {}\n", step.ms, planned(step.graph, in_a_hurry()).ms);
  return 0;
}

First first_in_a_process(const std::string& model, std::int64_t batch) {
  First first;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::FILE* child = popen(fmt::format("'{}' --first {} {}", self, model, batch).c_str(), "r");
  const bool read = child && std::fscanf(child, "%lf %lf", &first.capture_ms, &first.plan_ms) == 2;
  if (!child || pclose(child) != 0 || !read) {
    fmt::print(stderr, "zoo_plan_bench: {} could not be captured by a process of its own\n", model);
    std::exit(1);
  }
  return first;
}

double ratio(std::int64_t a, std::int64_t b) { return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 1.0; }

// Planning beside capturing.
struct Shares {
  Means share;
  double plan_ms = 0, capture_ms = 0;
  int within = 0;  // kAimedShare

  std::string add(double plan, double capture) {
    share.add(plan / capture);
    plan_ms += plan;
    capture_ms += capture;
    within += plan <= kAimedShare * capture;
    return fmt::format(" {:>8.1f} {:>8.0f} {:>6.2f} %", plan, capture, 100 * plan / capture);
  }

  void print(const char* what) const {
    if (share.n == 0) return;
    fmt::print(
        "planning / capturing, {}: within {:.0f} % for {} of {}, geometric mean {:.2f} %, in all {:.0f} of {:.0f} ms, {:.2f} "
        "%\n",
        what, 100 * kAimedShare, within, share.n, 100 * share.mean(), plan_ms, capture_ms, 100 * plan_ms / capture_ms);
  }
};

struct Totals {
  Means gap, rested, won, share, chunked;
  Shares first, warm;
  double worst_gap = 1, worst_rested = 1, worst_parallel = 1, worst_chunked = 0;
};

void bench(const Model& model, std::int64_t batch, const Asked& asked, Totals* totals) {
  ModelOptions how = of_batch(model, batch);
  how.abstract = true;
  const Graph graph = record_model(model, how).graph;

  const PlanOptions options = in_a_hurry();
  const Timed ours = planned(graph, options, 3);
  const Timed rested = asked.rest ? planned(graph, {}) : ours;
  PlanOptions naive = options;
  naive.place_work = 100'000;  // all the search for offsets that it may want
  naive.ordering = Ordering::recorded;
  naive.sharing = Sharing::none;
  const Plan without = planned(graph, naive).plan;
  PlanOptions quarters = options;
  quarters.chunk_bytes = std::max<std::int64_t>(ours.plan.peak_bytes / 4, 1);
  const Timed chunked = planned(graph, quarters);
  PlanOptions parallel = options;
  parallel.threads = asked.threads;
  const Plan wide = planned(graph, parallel).plan;

  const double gap = ratio(ours.plan.peak_bytes, ours.plan.lower_bound_bytes),
               won = ratio(rested.plan.peak_bytes, without.peak_bytes);
  const double arena_won = ratio(rested.plan.arena_bytes, without.arena_bytes),
               wider = ratio(wide.peak_bytes, ours.plan.peak_bytes);
  const double in_chunks = ratio(chunked.plan.peak_bytes, ours.plan.peak_bytes);
  totals->chunked.add(in_chunks);
  totals->worst_chunked = std::max(totals->worst_chunked, in_chunks);
  totals->gap.add(gap);
  totals->won.add(won);
  totals->share.add(arena_won);
  const double rested_gap = ratio(rested.plan.peak_bytes, rested.plan.lower_bound_bytes);
  totals->rested.add(rested_gap);
  totals->worst_rested = std::max(totals->worst_rested, rested_gap);
  totals->worst_gap = std::max(totals->worst_gap, gap);
  totals->worst_parallel = std::max(totals->worst_parallel, wider);
  const auto& rule = wide.segment_rule;
  const double slower = rule.tight_makespan_us > 0 ? rule.makespan_us / rule.tight_makespan_us : 1.0;
  std::string line =
      fmt::format("{:<22} {:>5} {:>6} {:>14} {:>8.5f} {:>8.5f} {:>7.0f} {:>14} {:>6.3f} {:>6.3f} {:<18} {:>6.3f} {:>6.3f}",
                  model.name, batch, ours.plan.nodes, ours.plan.peak_bytes, gap, rested_gap, rested.ms, without.peak_bytes, won,
                  arena_won, ours.plan.order, wider, slower);
  line += fmt::format(" {:>7.4f} {:>3} {:>8.1f} {:>8.1f}", in_chunks, chunked.plan.chunks.size(), chunked.ms, ours.ms);
  if (asked.capture && without.peak_bytes <= kMostBytes && ours.plan.keep_all_cost_us <= 1e6 * kMostSeconds) {
    const First first = first_in_a_process(model.name, batch);
    line += totals->first.add(first.plan_ms, first.capture_ms) + totals->warm.add(ours.ms, capture_ms(model, how));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Asked parse(int argc, char** argv) {
  Asked asked;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&] {
      if (++i == argc) fmt::print(stderr, "{} needs a value\n", argv[i - 1]), std::exit(2);
      return std::string(argv[i]);
    };
    if (!std::strcmp(argv[i], "--first") && argc == 4) std::exit(print_first(argv[2], std::atoll(argv[3])));
    if (!std::strcmp(argv[i], "--only"))
      asked.only = value();
    else if (!std::strcmp(argv[i], "--threads"))
      asked.threads = std::max(1, std::atoi(value().c_str()));
    else if (!std::strcmp(argv[i], "--no-capture"))
      asked.capture = false;
    else if (!std::strcmp(argv[i], "--no-rest"))
      asked.rest = false;
    else if (!std::strcmp(argv[i], "--batch")) {
      asked.batches.clear();
      std::istringstream list(value());
      for (std::string one; std::getline(list, one, ',');) asked.batches.push_back(std::atoll(one.c_str()));
    } else
      fmt::print(stderr, "zoo_plan_bench: unknown argument {}\n", argv[i]), std::exit(2);
  }
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  const Asked asked = parse(argc, argv);
  fmt::print("{:<22} {:>5} {:>6} {:>14} {:>8} {:>8} {:>7} {:>14} {:>6} {:>6} {:<18} {:>6} {:>6}", "model", "batch", "nodes",
             "peak", "/bound", "at rest", "ms", "naive peak", "ours", "arena", "order", "par. B", "par. t");
  fmt::print(" {:>7} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "chunks", "", "ms", "plan ms", "first",
             "capture", "share", "warm", "capture", "share");
  Totals totals;
  for (const Model& model : all_models())
    for (const std::int64_t batch : asked.batches)
      if (asked.only.empty() || model.name == asked.only) bench(model, batch, asked, &totals);
  fmt::print(
      "geometric means: peak/bound {:.5f} (worst {:.5f}), at rest {:.5f} ({:.5f}), ours/naive {:.4f} (arena alone {:.3f})\n",
      totals.gap.mean(), totals.worst_gap, totals.rested.mean(), totals.worst_rested, totals.won.mean(), totals.share.mean());
  fmt::print("{} threads / one, worst: {:.3f}; in chunks {:.5f} (worst {:.5f})\n", asked.threads, totals.worst_parallel,
             totals.chunked.mean(), totals.worst_chunked);
  totals.first.print("first in a process");
  totals.warm.print("warm");
}
