// replay: runs the steps of a file by its plan, or by a plan made here. On request it compares every step with eager
// execution and the last one with expected values, times every node, and writes outputs, state and traces.
#include <tapedeck/capture/tool/commands/replay_steps.h>
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/resize.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/files/value_files.h>
#include <tapedeck/capture/tool/reports/device_report.h>
#include <tapedeck/capture/tool/reports/profile_table.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/explain/chrome_trace.h>
#include <tapedeck/capture/explain/memory_snapshot.h>
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/capture/measure/resident.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/requests/asked_options.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/threads.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace tapedeck::tool {

namespace {

constexpr int kProfileSteps = 23;  // of which three warm up

struct ReplayOptions {
  std::string file;
  DeviceWords device;
  int threads = 0;                       // 0: all
  double parallel_peak = kParallelPeak;  // of a plan that is made here
  int steps = 0;                         // 0: one for each file of an input, else 1, or kProfileSteps
  std::string loop;                      // a time: steps until it is over
  std::string until, phase;              // where the last step stops; empty: at its end
  bool stop_at_nan = false, stop_at_infinity = false;
  std::vector<std::string> values;    // that are shown there
  std::vector<std::string> monitors;  // patterns
  bool monitor_inputs = false;        // monitors show the operands of nodes too
  std::vector<std::string> inputs;    // NAME=VALUE
  std::vector<std::string> dims;      // NAME=SIZE
  std::string weights;
  std::string save;
  std::vector<std::string> outputs;   // DIR | FILE.safetensors | NAME=FILE
  std::vector<std::string> expected;  // the same
  Tolerance tolerance;
  std::uint64_t seed = 42;
  bool check_eager = false;
  std::string trace;          // Chrome trace events of the last step
  std::string memory_trace;   // its allocations: .pickle or .json
  WishWords wishes;           // plan anew with them
  std::string budget, chunk;  // plan anew under a budget, with chunks of no more
  std::string costs;          // of a plan that is made here
  bool profile = false;       // time every node
  bool json = false;
};

std::vector<Option> step_options(ReplayOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--steps",
       .metavar = "N",
       .to = &o.steps,
       .help = "Run exactly this many steps; none of them is a warm-up.",
       .fallback = "one for each file of an --input with several, else 1, or 23 with --profile",
       .least = 1,
       .most = 1e9},
      {.name = "--loop",
       .metavar = "TIME",
       .to = &o.loop,
       .help = "Run steps until this time is over, and at least one: 30s, 500ms, 2min; a bare number is seconds.",
       .fallback = "--steps decides",
       .excludes = "--steps"},
      {.name = "--until",
       .metavar = "VALUE|N",
       .to = &o.until,
       .help =
           "Stop the last step behind the node that makes this value, or behind the node of this number, and show the value "
           "instead of the outputs. %39 is the value of a number."},
      {.name = "--stop-at-nan",
       .to = &o.stop_at_nan,
       .help = "Stop the last step behind the first node that makes NaN, and name the value and the element."},
      {.name = "--stop-at-infinity",
       .to = &o.stop_at_infinity,
       .help = "Stop the last step behind the first node that makes an infinity. Masks of attentions do so on purpose."},
      {.name = "--value",
       .metavar = "VALUE",
       .to = &o.values,
       .help = "Show this value where the last step stops: statistics, a histogram, and the numbers at its corners. A value "
               "whose bytes are gone is computed again beside the step. -o VALUE=FILE.npy writes it."},
      {.name = "--phase",
       .metavar = "PHASE",
       .to = &o.phase,
       .help = "Stop the last step at the end of this phase, and time each of its phases. Plans again unless the plan has "
               "segments split at phases.",
       .fallback = "the whole step",
       .choices = {"forward", "backward", "update"},
       .excludes = "--until"},
      {.name = "--threads",
       .metavar = "N",
       .to = &o.threads,
       .help = "Run on this many threads; 0 takes all.",
       .least = 0,
       .most = 4096},
      {.name = "--check-eager",
       .to = &o.check_eager,
       .help =
           "Run the same steps eagerly and compare every output and state, bit for bit. If one differs, name the first node "
           "that does. On a GPU the eager steps run on the CPU, and differences within --rtol and --atol are allowed, by "
           "default 1e-3 and 1e-5."},
      {.name = "--monitor",
       .metavar = "PATTERN",
       .to = &o.monitors,
       .help = "Print least, greatest and mean of the results of nodes whose op, module path or result matches: fc1*, relu. "
               "* stands for any characters, ? for one."},
      {.name = "--monitor-inputs",
       .to = &o.monitor_inputs,
       .help =
           "With --monitor: print the inputs of those nodes too, just before the nodes run, and where such a result is read. "
           "An input that a node computed is named after its reader: fc1.relu.input0."},
      {.name = "--profile",
       .to = &o.profile,
       .help = "Time every node on one thread. The first three steps do not count; --save keeps the times in the file."},
  };
}

std::vector<Option> value_options(ReplayOptions& o) {
  return {
      {.name = "--input",
       .metavar = "NAME=VALUE",
       .to = &o.inputs,
       .help = "The value of an input: a file (.npy, .npz, .safetensors, else raw bytes), - for stdin, a folder or a pattern "
               "with one file a step, rand:SEED or zeros. May be given again.",
       .group = "Values",
       .several = Several::words},
      {.name = "--dims",
       .metavar = "NAME=SIZE",
       .to = &o.dims,
       .help = "Run at other sizes: batch=32. NAME is a dimension that the file names, an option of the model that was "
               "recorded, or INPUT@AXIS. Plans again.",
       .group = "Values",
       .several = Several::commas},
      {.name = "--weights",
       .metavar = "FILE",
       .to = &o.weights,
       .help = "A safetensors file that holds the state by name, as --save writes it.",
       .group = "Values"},
      {.name = "--seed", .metavar = "N", .to = &o.seed, .help = "The seed of values that the file lacks.", .group = "Values"},
  };
}

std::vector<Option> plan_options(ReplayOptions& o) {
  return {
      {.name = "--budget",
       .metavar = "SIZE",
       .to = &o.budget,
       .help = "Plan again under this budget: 64MiB, 1.5GB, 50%.",
       .group = "Memory"},
      chunk_option(&o.chunk, "Plan again, with the arena"),
      parallel_peak_option(&o.parallel_peak, "For a plan that is made here. "),
      costs_option(&o.costs, "For a plan that is made here. "),
  };
}

std::vector<Option> expect_options(ReplayOptions& o) {
  return {
      {.name = "--expect",
       .metavar = "DIR|NAME=FILE",
       .to = &o.expected,
       .help = "Compare the outputs of the last step with these values, and exit with 1 if one differs: a folder as --output "
               "writes it, FILE.safetensors, FILE.npz or NAME=FILE.",
       .group = "Comparison"},
      tolerance_option("--rtol", &o.tolerance.relative,
                       "--expect allows differences of this times the expected value, added to --atol."),
      tolerance_option("--atol", &o.tolerance.absolute, "--expect allows differences of this, added to --rtol."),
  };
}

std::vector<Option> output_options(ReplayOptions& o) {
  return {
      {.name = "--output",
       .letter = 'o',
       .metavar = "DIR|NAME=FILE",
       .to = &o.outputs,
       .help = "Write the outputs of the last step: to a folder, as NAME.npy each; to FILE.safetensors; or one of them as "
               "NAME=FILE, .npy or .safetensors.",
       .group = "Output"},
      {.name = "--save",
       .metavar = "FILE",
       .to = &o.save,
       .help = "Write the file with the state after the last step here: .tape; or the state alone: .safetensors, which "
               "--weights reads.",
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
      quiet_option(" No line for each step either."),
  };
}

std::vector<Option> replay_table(ReplayOptions& o) {
  return joined({step_options(o), device_options(&o.device), value_options(o), plan_options(o),
                 wish_options(&o.wishes, "Plan again. "), expect_options(o), output_options(o)});
}

// Runs the same steps eagerly beside the replay and remembers the first thing that differs.
class EagerCheck {
 public:
  // `tolerance`: null for results of the same bits.
  EagerCheck(const Graph& captured, const Start& start, const Tolerance* tolerance)
      : graph_(captured), state_(start.state), tolerance_(tolerance) {}

  void step(const Executor& executor, const std::vector<Tensor>& inputs) {
    ++step_;
    EagerResult eager = run_eagerly(graph_, inputs, state_);
    const std::vector<Tensor> outputs = executor.outputs();
    const std::vector<NamedType> names = outputs_of(graph_);
    for (std::size_t i = 0; i < eager.outputs.size(); ++i) compare(outputs[i], eager.outputs[i], names[i].name, inputs);
    for (std::size_t i = 0; i < eager.state.size(); ++i) {
      const std::string name = graph_.value_name(graph_.n_inputs + static_cast<ValueId>(i));
      compare(executor.state(name), eager.state[i], name, inputs);
    }
    state_ = std::move(eager.state);
  }

  // The node is looked for in a step of its own, from the values before the step that differed.
  void report(const Executor& executor, const ReplayOptions& options, int threads, ReplaySummary* summary) const {
    summary->first_difference = difference_;
    summary->equal_to_eager = difference_.empty();
    summary->differing_step = differing_step_;
    if (difference_.empty() || options.device.on_device()) return;
    Progress progress("looking for the first node that differs");
    summary->differing_node = first_differing_node(executor.plan(), graph_, inputs_before_, state_before_, threads);
  }

 private:
  void compare(const Tensor& replayed, const Tensor& eager, const std::string& name, const std::vector<Tensor>& inputs) {
    if (!difference_.empty()) return;
    if (tolerance_ ? compare_tensors(replayed, eager, *tolerance_).equal() : bit_equal(replayed, eager)) return;
    difference_ = name;
    differing_step_ = step_;
    inputs_before_ = inputs;
    state_before_ = state_;
  }

  const Graph& graph_;
  std::vector<Tensor> state_;
  const Tolerance* tolerance_;
  std::int64_t step_ = 0, differing_step_ = 0;
  std::string difference_;
  std::vector<Tensor> inputs_before_, state_before_;
};

void time_summary(ReplaySummary* s) {
  std::vector<double> ms = s->step_ms;
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
void check_files(const ReplayOptions& options, const std::vector<OutputFile>& values) {
  std::vector<std::string> read = files_of_inputs(options.inputs);
  read.push_back(options.weights);
  std::vector<OutputFile> others = {{"--trace", options.trace}, {"--memory-trace", options.memory_trace}};
  others.insert(others.end(), values.begin(), values.end());
  std::vector<OutputFile> all = others;
  all.push_back({"--save", options.save});
  check_outputs(read, all);
  check_outputs({options.file}, options.file.ends_with(".graph") ? all : others);
}

// Options that cannot stand beside each other.
void check_options(const ReplayOptions& o) {
  const auto refuse = [](const std::string& a, const std::string& b, const char* why) {
    throw UsageError(fmt::format("{} and {} exclude each other: {}", a, b, why));
  };
  const std::string early = !o.until.empty()                          ? "--until"
                            : o.stop_at_nan                           ? "--stop-at-nan"
                            : o.stop_at_infinity                      ? "--stop-at-infinity"
                            : !o.phase.empty() && o.phase != "update" ? "--phase " + o.phase
                                                                      : "";
  const std::string ends = !early.empty() ? early : !o.phase.empty() ? "--phase" : !o.values.empty() ? "--value" : "";
  if (!o.phase.empty() && (o.stop_at_nan || o.stop_at_infinity)) refuse(early, "--phase", "each says where the step stops");
  if (!early.empty() && !o.save.empty()) refuse(early, "--save", "the state may be half written where the step stops");
  if (!early.empty() && o.check_eager) refuse(early, "--check-eager", "the step does not come to its end");
  if (!ends.empty() && o.profile) refuse(ends, "--profile", "whole steps are timed");
  if (!o.loop.empty()) parse_seconds(o.loop);
  if (!ends.empty() && !o.loop.empty()) refuse(ends, "--loop", "there is no step that is known to be the last");
  if (!ends.empty() && (!o.trace.empty() || !o.memory_trace.empty())) refuse(ends, "--trace", "a trace is of a whole step");
  if (!o.loop.empty() && o.profile) refuse("--loop", "--profile", "a profile is of a known number of steps; give --steps");
  const bool compares = !o.expected.empty() || (o.check_eager && o.device.on_device());
  if (!compares && (o.tolerance.relative > 0 || o.tolerance.absolute > 0)) throw UsageError("--rtol and --atol need --expect");
  if (o.monitor_inputs && o.monitors.empty()) throw UsageError("--monitor-inputs needs --monitor");
}

int thread_count(const ReplayOptions& options) {
  if (options.profile && options.threads > 1)
    throw UsageError("--profile times the nodes on one thread; leave --threads out, or give --threads 1");
  if (options.profile) return 1;
  return options.threads > 0 ? options.threads : tapedeck::thread_count();
}

// As many steps as the inputs have files. All that have several must have the same number.
std::int64_t step_count(const ReplayOptions& options, const Start& start) {
  const InputSequence* longest = nullptr;
  for (const auto& [input, sequence] : start.sequences) {
    if (sequence->files() <= 1) continue;
    if (longest && longest->files() != sequence->files())
      throw UsageError(fmt::format("--input: '{}' has {} files and '{}' has {}: give one for each step, or a single one",
                                   longest->name(), longest->files(), sequence->name(), sequence->files()));
    longest = sequence.get();
  }
  if (options.steps > 0) return options.steps;
  if (options.profile) return kProfileSteps;
  return longest ? static_cast<std::int64_t>(longest->files()) : 1;
}

// `level` becomes the level of the plan that the file has, also if --dims makes that plan useless.
TapeFile load(const ReplayOptions& options, OptimizationLevel* level) {
  Progress progress("loading");
  DimTable dims;
  TapeFile file = options.dims.empty() ? load_any(options.file, Check::all) : load_with_dims(options.file, Check::all, &dims);
  if (file.plan) *level = file.plan->level;
  if (!options.dims.empty()) resize(&file, dims, options.dims);
  return file;
}

bool plans_anew(const ReplayOptions& options) {
  return !options.chunk.empty() || !options.budget.empty() || !options.wishes.empty();
}

// Whether the plan of the file serves.
bool keeps_plan(const ReplayOptions& options, const TapeFile& file) {
  return file.plan && !plans_anew(options) && (options.phase.empty() || file.plan->segment_rule.split_phases) &&
         serves_device(*file.plan, options.device.device);
}

// A plan under the budget of the line, or else of the plan in the file, and at the same level. If the line asks for nothing
// that the memory depends on, all that was asked of the plan in the file holds for this one too.
Plan new_plan(const ReplayOptions& options, const TapeFile& file, OptimizationLevel level, int threads,
              const std::shared_ptr<const CostModel>& costs) {
  const bool as_before = file.plan && !plans_anew(options);
  tapedeck::PlanOptions how;
  if (as_before) how = options_asked(*file.plan);
  how.alignment = -1;  // that of the device
  how.cancel = &interrupted();
  how.costs = costs;
  how.threads = threads;
  how.parallel_peak = options.parallel_peak;
  how.split_phases = !options.phase.empty();
  how.level = level;
  if (!as_before) {
    how.chunk_bytes = parse_chunk(options.chunk);
    how.wishes = options.wishes.wishes();
  }
  read_budget(options.budget, &how);
  how.find_floor = false;  // a replay does not tell the floor; the error of a budget that cannot be met does
  if (file.plan && options.budget.empty()) how.budget = file.plan->budget_bytes;  // the other options ask for nothing else
  Progress progress("planning");
  how.progress = [&](double fraction) { progress.at(fraction); };
  return options.device.on_device() ? make_device_plan(file.captured, how, options.device.device)
                                    : make_plan(file.captured, how);
}

void save(const ReplayOptions& options, const Executor& executor, const Start& start, StateUse use, TapeFile* file) {
  if (options.save.empty()) return;
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    file->state[names[i]] = use == StateUse::bound ? start.state[i] : executor.state(names[i]);
  options.save.ends_with(".safetensors") ? save_safetensors(options.save, file->state, {{"tapedeck.weights", "1"}})
                                         : save_tape(options.save, *file);
}

std::vector<ExpectedCheck> compared(const std::vector<ExpectedValue>& expected, const std::vector<NamedTensor>& values,
                                    const Tolerance& tolerance) {
  std::vector<ExpectedCheck> checks;
  for (const ExpectedValue& wanted : expected) {
    const auto got = std::find_if(values.begin(), values.end(), [&](const NamedTensor& v) { return v.name == wanted.name; });
    if (got != values.end())
      checks.push_back({wanted.name, wanted.file, compare_tensors(got->tensor, wanted.tensor, tolerance)});
    else
      note(fmt::format("--expect: the step ended before '{}' was computed", wanted.name));
  }
  if (checks.empty()) throw UsageError("--expect: the step ended before any of the expected values was computed");
  return checks;
}

// Ctrl-C ended a --loop. The step under way may be half done, so nothing but the summary is left.
int tell_interrupted(const ReplayOptions& options, const ReplaySummary& summary) {
  answer(options.json ? replay_report(summary) : replay_text(options.file, summary));
  std::fprintf(stderr, "tapedeck: interrupted after %lld steps; no file was written\n", static_cast<long long>(summary.steps));
  return kInterrupted;
}

// A GPU adds in another order than the CPU, so the last bits of its results may differ.
Tolerance device_tolerance(const ReplayOptions& options) {
  if (options.tolerance.relative > 0 || options.tolerance.absolute > 0) return options.tolerance;
  return {.relative = 1e-3, .absolute = 1e-5};
}

int run_replay(const ReplayOptions& options) {
  const StopAtInterrupt stop;
  check_options(options);
  options.device.check();
  check_files(options, {});
  TraceFiles traces(options);
  OptimizationLevel level = default_level(options.device.device);
  TapeFile file = load(options, &level);
  const int threads = thread_count(options);
  const bool keeps = keeps_plan(options, file);
  const std::shared_ptr<const CostModel> costs = keeps && !options.profile ? nullptr : choose_costs(options.costs, file);
  Plan plan = keeps ? *file.plan : new_plan(options, file, level, threads, costs);
  if (!plan.feasible) throw InfeasiblePlanError("", plan);
  Executor executor(std::move(plan),
                    {.threads = threads, .device = options.device.device, .cuda_graphs = options.device.cuda_graphs()});
  const Start start = starting_values(file, {options.inputs, options.weights, options.seed});
  // On the CPU the state stays where it was read to, unless the eager run needs the values before the first step.
  const StateUse use = options.check_eager || options.device.on_device() ? StateUse::copied : StateUse::bound;
  set_start(&executor, start, use);

  StepOptions how;
  how.steps = step_count(options, start);
  how.loop_s = options.loop.empty() ? 0 : parse_seconds(options.loop);
  how.until = options.until;
  how.stop_at_nan = options.stop_at_nan;
  how.stop_at_infinity = options.stop_at_infinity;
  how.values = options.values;
  if (!options.phase.empty())
    how.phase = options.phase == "forward" ? Phase::forward : options.phase == "backward" ? Phase::backward : Phase::update;
  how.monitors = options.monitors;
  how.monitor_inputs = options.monitor_inputs;
  how.prints_lines = !options.json && !talk().quiet;
  how.reads_ahead = options.device.on_device();
  const Tolerance tolerance = device_tolerance(options);
  EagerCheck check(file.captured, start, options.device.on_device() ? &tolerance : nullptr);
  std::optional<NodeTimer> timer;
  if (options.profile) timer.emplace(executor.plan(), static_cast<int>(how.steps));
  how.timeline = [&](bool is_last) {
    return timer ? timer->timeline() : traces.wanted() && is_last ? traces.timeline() : nullptr;
  };
  how.after_step = [&](const std::vector<Tensor>& inputs) {
    if (timer && traces.wanted()) *traces.timeline() = *timer->timeline();
    if (timer) timer->step_done();
    if (options.check_eager) check.step(executor, inputs);
  };
  ReplaySteps steps(&executor, start, std::move(how));
  const OutputPlaces places(options.outputs, steps.shown());
  check_files(options, places.files());
  const std::vector<ExpectedValue> expected = load_expected(options.expected, steps.shown());

  ReplaySummary summary;
  summary.device = options.device.device;
  summary.threads = threads;
  steps.run(&summary);
  summary.planned_peak_bytes =
      options.device.on_device() ? planned_device_bytes(executor.plan(), options.device.device) : executor.plan().peak_bytes;
  summary.on_device = device_use(executor, options.device.device);
  summary.observed_peak_bytes = executor.observed_peak_bytes();
  summary.resident_peak_bytes = resident_peak_bytes();
  time_summary(&summary);
  if (summary.interrupted) return tell_interrupted(options, summary);
  if (options.check_eager) check.report(executor, options, threads, &summary);
  const std::vector<NamedTensor> values =
      options.outputs.empty() && expected.empty() ? std::vector<NamedTensor>() : steps.values();
  if (!expected.empty()) summary.expected = compared(expected, values, options.tolerance);
  summary.written = places.write(values);
  traces.write(executor.plan());
  if (timer) {
    file.profile = timer->finish(summary.observed_peak_bytes);
    summary.profile =
        profile_table(executor.plan(), *file.profile, costs && costs->calibration ? &*costs->calibration : nullptr);
    summary.profile->saved = options.save;
  }
  save(options, executor, start, use, &file);
  answer(options.json ? replay_report(summary) : replay_text(options.file, summary));
  return summary.as_expected() ? kOk : kDiffers;
}

[[maybe_unused]] const bool replay_registered = register_command(
    "replay", CommandGroup::replay, "Run a captured step by its plan.", replay_table, run_replay,
    "Outputs of one element are printed, one line a step. An output differs from --expect where |got - expected| is more than\n"
    "--atol + --rtol * |expected|; NaN equals NaN. A folder of inputs is read in the order of names, from the first again "
    "after\n"
    "the last. stdin holds one value for all steps or one for each, as .npy or as raw bytes.");

}  // namespace

}  // namespace tapedeck::tool
