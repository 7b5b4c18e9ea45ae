// bench: times steps of files and of models, and splits each step into kernels and the rest. Rows are printed as they come,
// one for each number of threads; with --json all rows come at the end. With --roofline each row is followed by the nodes that
// lose the most time.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/peaks.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/measure/bench.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/engine/eager/threads.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace tapedeck::tool {

namespace {

constexpr std::int64_t kShown = 20;

struct BenchCommandOptions {
  DeviceWords device;
  std::vector<std::string> files;        // .tape, .graph, or the name of a model
  bool zoo = false;                      // every model there is
  bool small = false;                    // models at small sizes
  std::vector<int> threads;              // 0: all; none: all
  std::string warmup;                    // "3" steps, "200ms", "1s"; empty: until steady
  double min_time_s = 0;                 // 0: 1, with --small 0.3
  std::string budget;                    // plan again under it
  WishWords wishes;                      // plan again with them
  std::string chunk;                     // plan again with chunks of no more
  double parallel_peak = kParallelPeak;  // of plans made here
  std::string costs;                     // of plans made here
  bool roofline = false;                 // compare every node with its bound
  std::int64_t top = kShown;             // nodes and ops of the table; 0: all
  std::uint64_t seed = 42;
  bool json = false;
};

std::vector<Option> own_options(BenchCommandOptions& o) {
  return {
      {.name = "FILE|MODEL",
       .to = &o.files,
       .help = "Files (.tape, .graph) or names of models.",
       .several = Several::words,
       .words = model_names},
      {.name = "--zoo", .to = &o.zoo, .help = "Bench every model of `tapedeck models`."},
      {.name = "--small",
       .to = &o.small,
       .help = "Record models at small sizes: batch 2, images of 64, sequences of 16, two layers, a quarter of the width."},
      {.name = "--seed", .metavar = "N", .to = &o.seed, .help = "The seed of values that the file lacks."},
      {.name = "--threads",
       .metavar = "N,N",
       .to = &o.threads,
       .help = "Bench with each of these numbers of threads: 1,2. 0 takes all.",
       .group = "Measurement",
       .fallback = "all",
       .several = Several::commas,
       .least = 0,
       .most = 4096},
      {.name = "--warmup",
       .metavar = "STEPS|TIME",
       .to = &o.warmup,
       .help = "Run this many steps (3) or this long (200ms, 1s) before the steps that count.",
       .group = "Measurement",
       .fallback = "until three steps in a row agree within 5 %, at most 0.5 s"},
      {.name = "--min-time",
       .metavar = "S",
       .to = &o.min_time_s,
       .help = "Time steps for at least this many seconds, and at least three steps.",
       .group = "Measurement",
       .fallback = "1, with --small 0.3",
       .least = 0.001,
       .most = 1e6},
      {.name = "--roofline",
       .to = &o.roofline,
       .help =
           "Compare the time of every node with the least that the peaks of this machine allow. Nodes that lose the most come "
           "first.",
       .group = "Roofline"},
      {.name = "--top",
       .metavar = "N",
       .to = &o.top,
       .help = "Print so many nodes, and so many ops. 0 prints all.",
       .group = "Roofline",
       .least = 0,
       .most = 1e9},
      {.name = "--budget",
       .metavar = "SIZE",
       .to = &o.budget,
       .help = "Plan again under this budget: 64MiB, 1.5GB, 50%.",
       .group = "Memory"},
      chunk_option(&o.chunk, "Plan again, with the arena"),
      parallel_peak_option(&o.parallel_peak, "For plans that are made here. "),
      costs_option(&o.costs, "For plans that are made here. "),
      json_option(&o.json),
  };
}

std::vector<Option> bench_table(BenchCommandOptions& o) {
  return joined({own_options(o), device_options(&o.device), wish_options(&o.wishes, "Plan again. ")});
}

constexpr double kMinTime = 1, kSmallMinTime = 0.3;
constexpr int kLaunchedTogether = 16;  // steps on a device

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// "3": steps; "200ms", "1.5s": time.
void set_warmup(const std::string& text, BenchOptions* how) {
  if (text.empty()) return;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const bool whole = number == static_cast<double>(static_cast<int>(std::clamp(number, -1.0, 1e9)));
  if (end == text.c_str() || !(number >= 0 && number <= 1e9) || !(unit == "ms" || unit == "s" || (unit.empty() && whole)))
    throw UsageError(fmt::format("--warmup {}: give a number of steps such as 3, or a time such as 200ms or 1.5s", text));
  if (unit.empty())
    how->warmup_runs = static_cast<int>(number);
  else
    how->warmup_s = unit == "ms" ? number / 1000 : number;
  how->until_steady = false;
}

// A file, or a model recorded in memory: a name that is no file and is a model's.
struct Subject {
  std::string name;
  Captured recording;  // keeps what the graph of a model calls alive
  TapeFile file;
};

Subject load(const std::string& name, const BenchCommandOptions& options) {
  Subject subject{name, {}, {}};
  if (!names_model(name)) {
    subject.file = load_any(name, Check::all);
    return subject;
  }
  ModelOptions sizes = options.small ? small_options(*find_model(name)) : ModelOptions{};
  sizes.seed = options.seed;
  subject.file = record_tape(name, sizes, &subject.recording);
  return subject;
}

class BenchRun {
 public:
  explicit BenchRun(const BenchCommandOptions& options) : options_(options), peaks_(options.small) {
    names_ = options.files;
    if (options.device.on_device() && options.roofline)
      throw UsageError("--roofline and --device exclude each other: the peaks are those of the CPU");
    options.device.check();
    if (options.zoo)
      for (const Model& m : all_models()) names_.push_back(m.name);
    if (options.top != kShown && !options.roofline) throw UsageError("--top says how many nodes --roofline prints; give both");
    if (names_.empty()) throw UsageError("bench: a file or a model is missing; name one, or give --zoo for every model");
    for (int t : options.threads) threads_.push_back(t > 0 ? t : all_threads());
    if (threads_.empty()) threads_.push_back(all_threads());
    plan_.threads = *std::max_element(threads_.begin(), threads_.end());
    set_warmup(options.warmup, &how_);
    how_.min_time_s = options.min_time_s > 0 ? options.min_time_s : options.small ? kSmallMinTime : kMinTime;
    how_.node_times = options.roofline;
    how_.timelines = !options.device.on_device();
    if (options.device.on_device()) how_.steps_per_wait = kLaunchedTogether;
    how_.cancel = &interrupted();
    plan_.cancel = &interrupted();
    read_budget(options.budget, &plan_);
    plan_.chunk_bytes = parse_chunk(options.chunk);
    plan_.parallel_peak = options.parallel_peak;
    plan_.wishes = options.wishes.wishes();
  }

  int run() {
    int code = kOk;
    for (std::size_t i = 0; i < names_.size() && code == kOk; ++i)
      code = one_or_interrupted(names_[i], static_cast<double>(i) / static_cast<double>(names_.size()));
    const double total_s = seconds_since(began_);
    const std::string end = options_.json
                                ? bench_report(rows_, total_s, code == kInterrupted, options_.device.device)
                                : fmt::format("{} row{} in {:.1f} s\n", rows_.size(), rows_.size() == 1 ? "" : "s", total_s);
    answer(end);
    if (code == kInterrupted) std::fprintf(stderr, "tapedeck: interrupted\n");
    return code;
  }

 private:
  static int all_threads() { return thread_count(); }

  // Ctrl-C ends recording, planning and loops inside a step by Cancelled, and steps between two nodes.
  int one_or_interrupted(const std::string& name, double before) {
    const StopAtInterrupt stop;
    try {
      const int code = one(name, before);
      return interrupted() ? kInterrupted : code;
    } catch (const Cancelled&) {
      return kInterrupted;
    }
  }

  int one(const std::string& name, double before) {
    std::optional<Plan> plan;
    Start start;
    Subject subject;
    {
      Progress progress(fmt::format("{}: preparing", name));
      progress.at(before);
      subject = load(name, options_);
      plan = plan_of(subject.file);
      start = starting_values(subject.file, {{}, {}, options_.seed});
    }
    if (!plan->feasible) {
      if (rows_.empty()) throw InfeasiblePlanError("", *plan, name + ": ");
      std::fprintf(stderr, "tapedeck: %s: %s\n", name.c_str(), plan->infeasible_reason.c_str());
      return kInfeasible;
    }
    const std::size_t first = rows_.size();
    for (int threads : threads_) {
      if (interrupted()) break;
      measure(name, *plan, start, threads, first);
    }
    return kOk;
  }

  Plan plan_of(const TapeFile& file) {
    if (file.plan && options_.budget.empty() && options_.chunk.empty() && options_.wishes.empty() &&
        serves_device(*file.plan, options_.device.device))
      return *file.plan;
    tapedeck::PlanOptions how = plan_;
    how.costs = choose_costs(options_.costs, file);
    how.level = file.plan ? file.plan->level : default_level(options_.device.device);
    if (file.plan && options_.budget.empty()) how.budget = file.plan->budget_bytes;  // --chunk alone asks for nothing else
    how.find_floor = false;  // a bench does not tell the floor, and the steps of programs do not look for it
    return options_.device.on_device() ? make_device_plan(file.captured, how, options_.device.device)
                                       : make_plan(file.captured, how);
  }

  void measure(const std::string& name, const Plan& plan, const Start& start, int threads, std::size_t first) {
    std::optional<Peaks::Found> peaks;
    if (options_.roofline) peaks = peaks_.of(threads);
    Executor executor(plan,
                      {.threads = threads, .device = options_.device.device, .cuda_graphs = options_.device.cuda_graphs()});
    set_start(&executor, start);
    BenchRow row{name,         plan.nodes, static_cast<std::int64_t>(plan.segments.size()), {}, plan.peak_bytes, 0, 1,
                 plan.threads, plan.costs};
    {
      Progress progress(fmt::format("{}, {} thread{}", name, threads, threads == 1 ? "" : "s"));
      how_.progress = [&](double fraction) { progress.at(fraction); };
      row.result = tapedeck::bench(executor, threads, how_);
    }
    if (row.result.run_ns.empty()) return;
    if (peaks) row.roofline = compare_with(*peaks, plan, row.result);
    row.observed_peak_bytes = executor.observed_peak_bytes();
    row.on_device = device_use(executor, options_.device.device);
    if (row.on_device) row.planned_peak_bytes = planned_device_bytes(plan, options_.device.device);
    rows_.push_back(std::move(row));
    const auto median = [&](std::size_t i) { return static_cast<double>(percentile(rows_[i].result.run_ns, 50)); };
    rows_.back().speedup = median(first) / median(rows_.size() - 1);
    if (options_.json) return;
    if (rows_.size() == 1 || options_.roofline) print_header();
    print_row(rows_.back());
  }

  // Empty if Ctrl-C came before the first step with a timeline.
  static std::optional<RooflineAnswer> compare_with(const Peaks::Found& peaks, const Plan& plan, const BenchResult& result) {
    if (result.node_us.empty()) return std::nullopt;
    const StepTimes step = {static_cast<double>(percentile(result.run_ns, 50)) / 1e3,
                            static_cast<double>(result.run_ns.front()) / 1e3};
    return RooflineAnswer{make_roofline(plan, result.node_us, step, peaks.peaks), peaks.source};
  }

  void print_header() const {
    answer(fmt::format("{:<24} {:>7} {:>6} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10} {:>8} {:>6} {:>10} {:>10}{}\n", "",
                       "threads", "runs", "median ms", "p90", "p99", "min", "in kernels", "outside", "outside", "busy",
                       "planned", "observed", threads_.size() > 1 ? "  speedup" : ""));
  }

  void print_row(const BenchRow& row) const {
    const BenchResult& r = row.result;
    const auto ms = [&](double percent) { return static_cast<double>(percentile(r.run_ns, percent)) / 1e6; };
    std::string text = fmt::format("{:<24} {:>7} {:>6} ", row.name, r.threads, r.run_ns.size());
    text += fmt::format("{:>10.4f} {:>10.4f} {:>10.4f} {:>10.4f} ", ms(50), ms(90), ms(99), ms(1e-9));
    if (r.timeline_runs > 0)
      text += fmt::format("{:>11.4f} {:>10.4f} {:>6.2f} % {:>4.0f} % ", r.kernels_ns / 1e6, r.outside_ns / 1e6,
                          100 * r.outside_share(), 100 * r.thread_busy);
    else
      text += fmt::format("{:>11} {:>10} {:>8} {:>6} ", "-", "-", "-", "-");
    text += fmt::format("{:>10} {:>10}", short_size(row.planned_peak_bytes), short_size(row.observed_peak_bytes));
    if (threads_.size() > 1) text += fmt::format("  {:.2f} x", row.speedup);
    text += "\n";
    if (row.roofline) text += roofline_text(*row.roofline, options_.top);
    if (row.on_device)
      text += fmt::format("  launch         {:.4f} ms of the host for a step; {} steps are waited for together\n",
                          static_cast<double>(percentile(r.launch_ns, 50)) / 1e6, r.steps_per_wait);
    if (row.on_device && (talk().verbose || !row.on_device->on_host.empty())) text += device_text(*row.on_device);
    answer(text);
    finish_answer();
  }

  static std::string short_size(std::int64_t bytes) {
    const auto kib = static_cast<double>(bytes) / 1024;
    if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", kib);
    return bytes < 1 << 30 ? fmt::format("{:.1f} MiB", kib / 1024) : fmt::format("{:.2f} GiB", kib / 1024 / 1024);
  }

  const BenchCommandOptions& options_;
  std::vector<std::string> names_;
  std::vector<int> threads_;
  BenchOptions how_;
  tapedeck::PlanOptions plan_;
  Peaks peaks_;
  std::vector<BenchRow> rows_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

int run_bench(const BenchCommandOptions& options) { return BenchRun(options).run(); }

[[maybe_unused]] const bool bench_registered = register_command(
    "bench", CommandGroup::replay, "Time steps, and print how much of the time is spent in kernels.", bench_table, run_bench,
    "A file without a plan is planned for the largest number of threads. Percentiles are nearest rank: of few runs p99 is the\n"
    "slowest. The column `outside` is the time of a step in which no kernel runs on any thread, without the cost of the "
    "clock,\n"
    "measured in steps of its own. The column `busy` is the share of the time of all threads that their own kernels take.\n"
    "The column `speedup` compares with the first row of the same file. Ctrl-C prints the rows that have been measured.\n"
    "With --roofline the bound of a node is its flops over the peak of this machine, or its bytes (operands read and results\n"
    "written) over the rate of the nearest cache that holds all of them, whichever is more. The peaks are those of the\n"
    "calibration; without one they are measured first.");

}  // namespace

}  // namespace tapedeck::tool
