// plan: makes a plan and prints its numbers, an explanation of it, or JSON. It also writes the plan into a file, draws it, and
// lists its buffers as CSV. All output files are checked before the planner starts.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/picture.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/explain_values.h>
#include <tapedeck/capture/tool/reports/plan_explain.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/plan_csv.h>
#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/explain/value_prices.h>
#include <tapedeck/capture/file/file_costs.h>
#include <tapedeck/capture/plan/level_names.h>
#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/requests/asked_options.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <tuple>

namespace tapedeck::tool {

namespace {

struct PlanCommandOptions {
  std::string file;
  std::string budget;  // "64MiB", "1.5GB", "4096", "50%"
  std::string chunk;   // most bytes of one block of the arena; empty: the arena is one block
  std::string strategy = "auto";
  std::string order = "auto";  // or "recorded"
  int level = -1;              // of the passes that run first; -1: that of the device
  WishWords wishes;
  std::int64_t align = -1;  // -1: the alignment of the device
  std::string device = "cpu";
  std::string output;
  int threads = 1;
  double parallel_peak = kParallelPeak;
  double segment_us = 50;
  bool split_phases = false;
  std::string explain;  // "", a topic, or the name of a value
  std::string picture;  // .svg or .png: addresses x time
  std::string csv;      // the buffers of the arena
  std::string costs;    // estimate, calibrated, profile; empty: the best source there is
  bool again = false;   // even if the file holds a plan and no other option asks for a new one
  bool json = false;
};

// Whether an option asks for another plan than the one that the file may hold.
bool asks_for_new_plan(const PlanCommandOptions& o) {
  const PlanCommandOptions none;
  return o.again || !o.wishes.empty() || o.split_phases ||
         std::tie(o.budget, o.chunk, o.strategy, o.order, o.level, o.align, o.device, o.costs) !=
             std::tie(none.budget, none.chunk, none.strategy, none.order, none.level, none.align, none.device, none.costs) ||
         std::tie(o.threads, o.parallel_peak, o.segment_us) != std::tie(none.threads, none.parallel_peak, none.segment_us);
}

std::vector<Option> memory_options(PlanCommandOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--budget",
       .metavar = "SIZE",
       .to = &o.budget,
       .help = "A replay may hold at most this many bytes: 64MiB, 1.5GB, 50%.",
       .group = "Memory"},
      {.name = "--strategy",
       .metavar = "NAME",
       .to = &o.strategy,
       .help = "The strategy that chooses the values to compute again; the list is below.",
       .group = "Memory",
       .words = strategy_names},
      {.name = "--order",
       .metavar = "NAME",
       .to = &o.order,
       .help = "The order of nodes: as recorded, or the one of several that keeps the fewest bytes alive.",
       .group = "Memory",
       .choices = {"recorded", "auto"}},
      level_option(&o.level, "2; 3 on a GPU"),
      chunk_option(&o.chunk, "Allocate the arena"),
      {.name = "--again",
       .to = &o.again,
       .help = "Plan again, without a budget if none is given, although the file holds a plan. Any other option that planning "
               "depends on asks for that too; without one the plan of the file is shown.",
       .group = "Memory"},
      {.name = "--align",
       .metavar = "BYTES",
       .to = &o.align,
       .help = "The alignment of offsets in the arena, a power of two.",
       .group = "Memory",
       .fallback = "the alignment of the device, 64 or 256",
       .least = 1,
       .most = 4e18},
      {.name = "--device",
       .metavar = "NAME",
       .to = &o.device,
       .help =
           "The device that the plan is for: cpu, cuda, or cuda:1 for the second GPU. It decides the alignment; a budget in "
           "bytes holds for all memory there, scratch of kernels included; and --explain segments names the nodes that it "
           "cannot run.",
       .group = "Memory",
       .words = device_names},
  };
}

std::vector<Option> segment_options(PlanCommandOptions& o) {
  return {
      {.name = "--threads",
       .metavar = "N",
       .to = &o.threads,
       .help = "Cut the segments for this many threads; the plan runs on any number.",
       .group = "Segments",
       .least = 1,
       .most = 4096},
      parallel_peak_option(&o.parallel_peak),
      {.name = "--segment-us",
       .metavar = "US",
       .to = &o.segment_us,
       .help = "The most microseconds of one segment; 0 makes every node a segment.",
       .group = "Segments",
       .least = 0,
       .most = 1e9},
      {.name = "--split-phases",
       .to = &o.split_phases,
       .help = "Let no segment hold nodes of two phases.",
       .group = "Segments"},
      costs_option(&o.costs),
  };
}

std::vector<Option> output_options(PlanCommandOptions& o) {
  return {
      {.name = "--explain",
       .metavar = "[TOPIC|VALUE]",
       .to = &o.explain,
       .help = "Explain the plan: choices (what is recomputed and why), segments (how they are cut), peak (what lives there "
               "and what would lower it), memory (totals, and the bytes that sharing saves), wishes (what each --keep and "
               "--recompute costs), or a value by its name (what was decided about it, and what the other choice would cost). "
               "Without a word: choices.",
       .group = "Output",
       .words = explain_topics,
       .bare = "choices"},
      {.name = "--picture",
       .metavar = "FILE",
       .to = &o.picture,
       .help = "Draw addresses over time here: .svg, or .png where there is a viewer (of a plan within its budget).",
       .group = "Output"},
      {.name = "--csv",
       .metavar = "FILE",
       .to = &o.csv,
       .help = "Write the buffers of the arena here, - for stdout: id,lower,upper,size,offset,alignment and their contents. "
               "`tapedeck offsets` reads this list.",
       .group = "Output"},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE.tape",
       .to = &o.output,
       .help = "Write the file with its plan here.",
       .group = "Output"},
      json_option(&o.json),
  };
}

std::vector<Option> plan_table(PlanCommandOptions& o) {
  return joined({memory_options(o), wish_options(&o.wishes), segment_options(o), output_options(o)});
}

std::string chunks_text(const Plan& p) {
  const std::string text = fmt::format("{}, of no more than {}", p.chunks.size(), human_size(p.chunk_bytes));
  const bool has_larger = !p.chunks.empty() && p.chunks.front() > p.chunk_bytes;
  return has_larger ? text + ", but for what is larger by itself: " + human_size(p.chunks.front()) : text;
}

// The least cost of any plan that fits, and how far above it this plan can be.
std::string bound_text(const Plan& p) {
  if (p.cost_lower_bound_us <= 0) return p.bound_from;
  return fmt::format("{:.0f} us ({}), gap {:.2f} %", p.cost_lower_bound_us, p.bound_from,
                     100 * (p.cost_us / p.cost_lower_bound_us - 1));
}

std::string summary(const std::string& path, const Plan& p, bool stored, const std::string& device) {
  std::string text = fmt::format("{}: strategy {}{}{}\n", path, p.strategy, stored ? ", the plan in the file" : "",
                                 p.feasible ? "" : " - the budget cannot be met");
  auto line = [&](const std::string& name, const std::string& value) { text += fmt::format("  {:<16} {}\n", name, value); };
  line("peak", human_size(p.peak_bytes));
  line("  always held", human_size(p.external_bytes));
  line("  arena", human_size(p.arena_bytes));
  if (p.chunk_bytes > 0) line("  chunks", chunks_text(p));
  if (p.budget_bytes >= 0) line("budget", human_size(p.budget_bytes));
  if (device != "cpu" && p.feasible) line("on " + device, human_size(planned_device_bytes(p, device)) + ", with scratch");
  line("lower bound", human_size(p.lower_bound_bytes));
  line("floor", human_size(p.floor_bytes));
  line("keep-all peak", human_size(p.keep_all_peak_bytes));
  line("order", p.order);
  line("passes", level_name(p.level));
  line("nodes", fmt::format("{}, of which {} recomputed", p.nodes, p.recomputed_nodes));
  line("cost", fmt::format("{:.0f} us by the model, x{:.4f} of keep-all", p.cost_us, p.recompute_cost_ratio()));
  if (!p.bound_from.empty()) line("cost bound", bound_text(p));
  line("costs", describe_costs(p));
  line("segments", std::to_string(p.segments.size()));
  if (!stored) line("solved in", fmt::format("{:.1f} ms", p.solve_ms));
  return text;
}

std::vector<SharingBound> bounds_of(const Graph& captured, tapedeck::PlanOptions how, const Plan& shown) {
  Progress progress("planning with rules on and off");
  how.progress = {};
  return sharing_bounds(captured, how, &shown);
}

std::vector<WishOutcome> outcomes_of(const Graph& captured, tapedeck::PlanOptions how, const Plan& shown, bool with_costs) {
  how.progress = {};
  std::vector<WishOutcome> outcomes = wish_outcomes(captured, how);
  if (outcomes.empty() || !with_costs) return outcomes;
  Progress progress("planning without each wish");
  add_wish_costs(captured, how, shown, &outcomes);
  return outcomes;
}

const ValueEntry& entry_named(const std::string& word, const std::vector<ValueEntry>& log, const Plan& p) {
  const std::string name = word[0] == '%' ? word.substr(1) : word;
  try {
    return find_entry(log, p, name);
  } catch (const UsageError& unknown) {
    const std::vector<std::string> topics = explain_topics();
    throw UsageError(fmt::format("--explain: '{}' is not one of {}{}, and {}", word, fmt::join(topics, ", "),
                                 did_you_mean(word, {topics.begin(), topics.end()}), unknown.what()));
  }
}

// The value of that name, with or without %, and both prices of the other choice.
ExplainedValue explain_value(const std::string& word, const Graph& captured, tapedeck::PlanOptions how, const Plan& shown,
                             const std::vector<ValueEntry>& log) {
  how.progress = {};
  ExplainedValue value;
  value.entry = entry_named(word, log, shown);
  Progress progress("planning the other choice");
  value.alone = price_alone(shown, log, value.entry, how);
  value.anew = price_anew(captured, shown, value.entry, how);
  return value;
}

// The decision log; behind a word that is no topic, the value of that name too.
ValueBackground values_of(const std::string& word, const Graph& captured, const tapedeck::PlanOptions& how, const Plan& p) {
  ValueBackground values;
  const bool is_value = !word.empty() && !is_explain_topic(word);
  if (word != "choices" && !is_value) return values;
  values.log = value_log(p, cost_nodes(p.graph, how.costs.get()).us, with_program_wishes(captured, how.wishes));
  if (is_value) values.value = explain_value(word, captured, how, p, values.log);
  return values;
}

std::string outcomes_text(const std::vector<WishOutcome>& outcomes, const Plan& p) {
  return outcomes.empty() ? "" : wishes_text(outcomes, p);
}

// A tape may be overwritten by itself with its plan; a text graph may not.
void check_files(const PlanCommandOptions& options) {
  const std::vector<OutputFile> beside = {{"--csv", options.csv, true}, {"--picture", options.picture}};
  std::vector<OutputFile> all = beside;
  all.push_back({"-o", options.output});
  check_outputs({}, all);
  check_outputs({options.file}, options.file.ends_with(".graph") ? all : beside);
  if (!options.picture.empty()) check_picture(options.picture);
}

// The options that the command line asks for.
tapedeck::PlanOptions options_asked_for(const PlanCommandOptions& options) {
  tapedeck::PlanOptions how;
  read_budget(options.budget, &how);
  how.strategy = strategy_named(options.strategy);
  how.ordering = options.order == "recorded" ? Ordering::recorded : Ordering::automatic;
  how.wishes = options.wishes.wishes();
  how.level = options.level < 0 ? default_level(options.device) : static_cast<OptimizationLevel>(options.level);
  how.alignment = options.align;
  how.device = options.device == "cpu" ? DeviceType::cpu : DeviceType::cuda;
  how.chunk_bytes = parse_chunk(options.chunk);
  how.threads = options.threads;
  how.parallel_peak = options.parallel_peak;
  how.segment_us = options.segment_us;
  how.split_phases = options.split_phases;
  how.cancel = &interrupted();
  return how;
}

// The options of a stored plan, for the explanations that plan once more beside it.
tapedeck::PlanOptions options_of_stored(const Plan& plan) {
  tapedeck::PlanOptions how = options_asked(plan);
  how.budget = plan.budget_bytes;
  how.cancel = &interrupted();
  return how;
}

// The plan of the file, unless an option asks for a new one.
Plan stored_or_new(const TapeFile& file, bool stored, tapedeck::PlanOptions how, const std::string& device) {
  if (stored) return *file.plan;
  if (file.plan && file.plan->budget_bytes >= 0 && how.budget < 0 && how.budget_percent < 0)
    note(fmt::format("planning without a budget; the plan in the file has one of {}", human_size(file.plan->budget_bytes)));
  Progress progress("planning");
  how.progress = [&](double fraction) { progress.at(fraction); };
  return device == "cpu" ? make_plan(file.captured, how) : make_device_plan(file.captured, how, device);
}

// The explanations plan once more, and know no scratch: their budget is what scratch and alignment leave. Returns what these
// take.
std::int64_t leave_scratch_aside(const std::string& device, Plan* p, tapedeck::PlanOptions* how) {
  if (device == "cpu" || !p->feasible || p->budget_bytes < 0) return 0;
  const std::int64_t overhead = device_overhead_bytes(*p, device);
  p->budget_bytes -= overhead;
  how->budget = p->budget_bytes;
  how->budget_percent = -1;
  return overhead;
}

int run_plan(const PlanCommandOptions& options) {
  const StopAtInterrupt stop;
  if (options.device != "cpu") kernels_of_device(options.device);  // throws if no device can have this name
  check_files(options);
  tapedeck::PlanOptions how = options_asked_for(options);
  TapeFile file = load_any(options.file, Check::structure);
  const bool stored = file.plan && !asks_for_new_plan(options);
  if (stored) how = options_of_stored(*file.plan);
  how.costs = choose_costs(options.costs, file);
  Plan p = stored_or_new(file, stored, how, options.device);
  const std::int64_t scratch = leave_scratch_aside(options.device, &p, &how);
  PlanBackground background;
  background.device = options.device;
  if (options.explain == "peak") background.node_us = cost_nodes(p.graph, how.costs.get()).us;
  if (options.explain == "memory") background.sharing = bounds_of(file.captured, how, p);
  const ValueBackground values = values_of(options.explain, file.captured, how, p);
  background.wishes = outcomes_of(file.captured, how, p, options.explain == "wishes");
  p.budget_bytes += scratch;
  std::string text = options.json ? plan_report(p, options.explain, background, values)
                                  : summary(options.file, p, stored, options.device) + outcomes_text(background.wishes, p) +
                                        explained(options.explain, p, background) + values_explained(p, values);
  if (!options.picture.empty()) write_picture(options.picture, file.captured, p);
  if (p.feasible && !options.output.empty()) {
    file.plan = p;
    save_tape(options.output, file);
  }
  if (!options.csv.empty()) write_text(options.csv, plan_csv(p));
  answer(text, answers_beside(options.csv));
  finish_answer();
  if (!p.feasible) std::fprintf(stderr, "tapedeck: %s\n", p.infeasible_reason.c_str());
  return p.feasible ? kOk : kInfeasible;
}

[[maybe_unused]] const bool plan_registered =
    register_command("plan", CommandGroup::plan, "Plan the memory of a step, with or without a budget.", plan_table, run_plan,
                     "Strategies:\n" + list_strategies() + kWishPatterns);

}  // namespace

}  // namespace tapedeck::tool
