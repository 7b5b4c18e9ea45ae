// replay: runs the steps of a file by its plan, or by a plan made here. On request it compares every step with eager
// execution, times every node, or writes traces of the last step.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/profile_table.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/explain/chrome_trace.h>
#include <tapedeck/capture/explain/memory_snapshot.h>
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/executor.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

namespace tapedeck::tool {

namespace {

constexpr int kProfileSteps = 23;  // of which three warm up

struct ReplayOptions {
  std::string file;
  std::string device = "cpu";
  int threads = 0;                       // 0: all
  double parallel_peak = kParallelPeak;  // of a plan that the file lacks
  int steps = 0;                         // 0: 1, or kProfileSteps
  std::vector<std::string> inputs;       // NAME=@F.npy | NAME=rand:SEED | NAME=zeros
  std::string weights;
  std::string save;
  std::uint64_t seed = 42;
  bool check_eager = false;
  std::string trace;         // Chrome trace events of the last step
  std::string memory_trace;  // its allocations: .pickle or .json
  std::string chunk;         // plan anew with chunks of no more
  std::string costs;         // of a plan that the file lacks
  bool profile = false;      // time every node
  bool json = false;
};

std::vector<Option> start_options(ReplayOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--steps",
       .metavar = "N",
       .to = &o.steps,
       .help = "Run exactly this many steps; none of them is a warm-up.",
       .fallback = "1, or 23 with --profile",
       .least = 1,
       .most = 1e9},
      {.name = "--device", .metavar = "NAME", .to = &o.device, .help = "The device: cpu or cuda.", .words = device_names},
      {.name = "--threads",
       .metavar = "N",
       .to = &o.threads,
       .help = "Run on this many threads; 0 takes all.",
       .least = 0,
       .most = 4096},
      {.name = "--check-eager",
       .to = &o.check_eager,
       .help = "Run the same steps eagerly and compare every output and state, bit for bit."},
      {.name = "--profile",
       .to = &o.profile,
       .help = "Time every node on one thread. The first three steps do not count; --save keeps the times in the file."},
      {.name = "--input",
       .metavar = "NAME=VALUE",
       .to = &o.inputs,
       .help = "The value of an input: NAME=@FILE.npy, NAME=rand:SEED or NAME=zeros. May be given again.",
       .group = "Values",
       .several = Several::words},
      {.name = "--weights",
       .metavar = "FILE",
       .to = &o.weights,
       .help = "A safetensors file that holds the state by name.",
       .group = "Values"},
      {.name = "--seed", .metavar = "N", .to = &o.seed, .help = "The seed of values that the file lacks.", .group = "Values"},
  };
}

std::vector<Option> other_options(ReplayOptions& o) {
  return {
      chunk_option(&o.chunk, "Plan again, with the arena"),
      parallel_peak_option(&o.parallel_peak, "For a plan that the file lacks. "),
      costs_option(&o.costs, "For a plan that the file lacks. "),
      {.name = "--save",
       .metavar = "FILE.tape",
       .to = &o.save,
       .help = "Write the file with the state after the last step here.",
       .group = "Output"},
      {.name = "--trace",
       .metavar = "FILE.json",
       .to = &o.trace,
       .help = "Write Chrome trace events of the last step here; ui.perfetto.dev opens them. --steps 3 shows a warm step.",
       .group = "Output"},
      {.name = "--memory-trace",
       .metavar = "FILE",
       .to = &o.memory_trace,
       .help = "Write the allocations of the last step here: .pickle for pytorch.org/memory_viz, or .json.",
       .group = "Output"},
      json_option(&o.json),
  };
}

std::vector<Option> table(ReplayOptions& o) { return joined({start_options(o), other_options(o)}); }

std::string name_of(const Graph& g, ValueId v) { return g.values[v].name.str(); }

// Runs the same steps eagerly beside the replay and remembers the first thing that differs.
class EagerCheck {
 public:
  EagerCheck(const Graph& captured, const Start& start) : graph_(captured), inputs_(start.inputs), state_(start.state) {}

  void step(const Executor& executor) {
    EagerResult eager = run_eagerly(graph_, inputs_, state_);
    const std::vector<Tensor> outputs = executor.outputs();
    for (std::size_t i = 0; i < eager.outputs.size(); ++i)
      compare(outputs[i], eager.outputs[i],
              i < graph_.output_names.size() && !graph_.output_names[i].empty() ? graph_.output_names[i].str()
                                                                                : graph_.value_name(graph_.outputs[i]));
    for (std::size_t i = 0; i < eager.state.size(); ++i) {
      const std::string name = name_of(graph_, graph_.n_inputs + static_cast<ValueId>(i));
      compare(executor.state(name), eager.state[i], name);
    }
    state_ = std::move(eager.state);
  }
  const std::string& first_difference() const { return difference_; }

 private:
  void compare(const Tensor& replayed, const Tensor& eager, const std::string& name) {
    if (difference_.empty() && !bit_equal(replayed, eager)) difference_ = name;
  }
  const Graph& graph_;
  std::vector<Tensor> inputs_, state_;
  std::string difference_;
};

std::string text_of(const std::string& path, const ReplaySummary& s) {
  std::string text = fmt::format("{}: {} step{} on {} with {} thread{}\n", path, s.steps, s.steps == 1 ? "" : "s", s.device,
                                 s.threads, s.threads == 1 ? "" : "s");
  text += fmt::format("  planned peak   {}\n  observed peak  {}\n", human_size(s.planned_peak_bytes),
                      human_size(s.observed_peak_bytes));
  text += fmt::format("  step           median {:.3f} ms, min {:.3f}, max {:.3f}\n", s.median_ms, s.min_ms, s.max_ms);
  if (s.equal_to_eager)
    text += fmt::format("  equal to eager {}\n", *s.equal_to_eager ? "yes" : "NO, first at '" + s.first_difference + "'");
  if (s.profile) text += profile_text(*s.profile);
  return text;
}

void time_summary(std::vector<double> ms, ReplaySummary* s) {
  std::sort(ms.begin(), ms.end());
  const std::size_t n = ms.size();
  s->min_ms = ms.front();
  s->max_ms = ms.back();
  s->median_ms = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
}

// The files that --trace and --memory-trace ask for. Opened before anything runs, so that a path that cannot be written costs
// no work.
class TraceFiles {
 public:
  explicit TraceFiles(const ReplayOptions& options) {
    as_pickle_ = options.memory_trace.ends_with(".pickle");
    if (!options.memory_trace.empty() && !as_pickle_ && !options.memory_trace.ends_with(".json"))
      throw UsageError(fmt::format(
          "--memory-trace {}: the name of the file must end in .pickle (for PyTorch's viewer) or .json", options.memory_trace));
    if (!options.trace.empty()) trace_.emplace(options.trace);
    if (!options.memory_trace.empty()) memory_.emplace(options.memory_trace);
  }

  bool wanted() const { return trace_ || memory_; }
  Timeline* timeline() { return &last_step_; }

  void write(const Plan& plan) {
    if (trace_) {
      trace_->write(chrome_trace(plan, {&last_step_, 1}));
      trace_->commit();
    }
    if (memory_) {
      memory_->write(as_pickle_ ? memory_snapshot_pickle(plan, last_step_) : memory_trace_json(plan, last_step_));
      memory_->commit();
    }
  }

 private:
  std::optional<AtomicWriter> trace_, memory_;
  bool as_pickle_ = false;
  Timeline last_step_;
};

// A tape may be overwritten by itself with its new state; a text graph may not.
void check_files(const ReplayOptions& options) {
  std::vector<std::string> read = {options.weights};
  for (const std::string& input : options.inputs)
    if (const std::size_t at = input.find("=@"); at != std::string::npos) read.push_back(input.substr(at + 2));
  const std::vector<OutputFile> traces = {{"--trace", options.trace}, {"--memory-trace", options.memory_trace}};
  std::vector<OutputFile> all = traces;
  all.push_back({"--save", options.save});
  check_outputs(read, all);
  check_outputs({options.file}, options.file.ends_with(".graph") ? all : traces);
}

int thread_count(const ReplayOptions& options) {
  if (options.profile && options.threads > 1)
    throw UsageError("--profile times the nodes on one thread; leave --threads out, or give --threads 1");
  if (options.profile) return 1;
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int run(const ReplayOptions& options) {
  const int steps = options.steps > 0 ? options.steps : options.profile ? kProfileSteps : 1;
  const StopAtInterrupt stop;
  check_files(options);
  TraceFiles traces(options);
  TapeFile file = load_any(options.file, Check::all);
  tapedeck::PlanOptions how;
  how.cancel = &interrupted();
  const int threads = thread_count(options);
  const bool keeps_plan = file.plan && options.chunk.empty();
  const std::shared_ptr<const CostModel> costs = keeps_plan && !options.profile ? nullptr : choose_costs(options.costs, file);
  how.costs = costs;
  how.threads = threads;
  how.parallel_peak = options.parallel_peak;
  how.chunk_bytes = parse_chunk(options.chunk);
  if (file.plan) how.budget = file.plan->budget_bytes;  // --chunk asks for nothing else
  Plan plan = keeps_plan ? *file.plan : make_plan(file.captured, how);
  if (!plan.feasible) throw BudgetError(plan.infeasible_reason);
  Executor executor(std::move(plan), {threads, options.device});
  const Start start = starting_values(file, {options.inputs, options.weights, options.seed});
  // On the CPU the state stays where it was read to, unless the eager run needs the values before the first step.
  const StateUse use = options.check_eager || options.device != "cpu" ? StateUse::copied : StateUse::bound;
  set_start(&executor, start, use);

  EagerCheck check(file.captured, start);
  std::optional<NodeTimer> timer;
  if (options.profile) timer.emplace(executor.plan(), steps);
  std::vector<double> ms;
  {
    Progress progress("replaying");
    for (int s = 0; s < steps; ++s) {
      if (interrupted()) throw Cancelled("interrupted");
      const auto begin = std::chrono::steady_clock::now();
      const bool traced = traces.wanted() && s + 1 == steps;
      executor.run(RunOptions{.timeline = timer    ? timer->timeline()
                                          : traced ? traces.timeline()
                                                   : nullptr,
                              .cancel = &interrupted(),
                              .progress = [&](double done) { progress.at((s + done) / steps); }});
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      if (timer && traced) *traces.timeline() = *timer->timeline();
      if (timer) timer->step_done();
      if (options.check_eager) check.step(executor);
    }
  }

  ReplaySummary summary;
  summary.device = options.device;
  summary.threads = threads;
  summary.steps = steps;
  summary.planned_peak_bytes = executor.plan().peak_bytes;
  summary.observed_peak_bytes = executor.observed_peak_bytes();
  time_summary(std::move(ms), &summary);
  if (options.check_eager) {
    summary.first_difference = check.first_difference();
    summary.equal_to_eager = summary.first_difference.empty();
  }
  traces.write(executor.plan());
  if (timer) {
    file.profile = timer->finish(summary.observed_peak_bytes);
    summary.profile =
        profile_table(executor.plan(), *file.profile, costs && costs->calibration ? &*costs->calibration : nullptr);
    summary.profile->saved = options.save;
  }
  if (!options.save.empty()) {
    const std::vector<std::string> names = executor.state_names();
    for (std::size_t i = 0; i < names.size(); ++i)
      file.state[names[i]] = use == StateUse::bound ? start.state[i] : executor.state(names[i]);
    save_tape(options.save, file);
  }
  const std::string text = options.json ? replay_report(summary) : text_of(options.file, summary);
  answer(text);
  return summary.equal_to_eager.value_or(true) ? kOk : kDiffers;
}

[[maybe_unused]] const bool registered =
    register_command("replay", CommandGroup::replay, "Run a captured step by its plan.", table, run);

}  // namespace

}  // namespace tapedeck::tool
