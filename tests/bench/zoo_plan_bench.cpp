// Plans the training step of every zoo model. It measures how far the peak is above the bound, how much the order of nodes and
// the sharing of bytes save, and how long planning takes beside capturing.
//
//   zoo_plan_bench [--only NAME] [--batch 1,32] [--threads N] [--no-capture] [--no-rest]
//
// At every batch size the step is recorded abstractly (types without data), which takes no memory.
//
//   naive     the recorded order; a value gets the bytes of another value only after the other is dead
//   peak      planned as for a captured step, without the search for the floor and with a search that suits the step's length;
//             `/bound` is the bound of this plan, `plan ms` the time to make it
//   at rest   planned with enough time, as `tapedeck plan` does it (--no-rest leaves it out); `ours` and `arena` compare this
//             plan with `naive`
//   par.      planned for N threads: its peak over the peak for one thread, and its simulated time over the time of a plan that
//             places bytes tightly
//   chunks    an arena of chunks of a quarter of the peak: its peak over the peak of one block, the number of chunks, and the
//             time to plan
//   first     a new process captures the step (it runs the step and freezes it: Captured::ms) and plans it, both for the first
//             time; a user waits this long, and loading the libraries counts. Only for steps within kMostBytes and
//             kMostSeconds; --no-capture leaves it out
//   warm      the same in this process, after warm-up: medians of three
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

// The largest step that is captured for real: its bytes in the recorded order, and its time by the cost model.
constexpr std::int64_t kMostBytes = std::int64_t{6} << 30;
constexpr double kMostSeconds = 20;
constexpr double kAimedShare = 0.05;  // planning should take at most this share of the time of capturing

struct Means {  // geometric means
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

// Runs in the process that --first starts.
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

// Planning time as a share of capturing time.
struct Shares {
  Means share;
  double plan_ms = 0, capture_ms = 0;
  int within = 0;  // number of steps within kAimedShare

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
  naive.place_work = 100'000;  // as much search for offsets as it can use
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
