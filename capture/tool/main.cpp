// tapedeck: record, show, plan, replay and verify captured training steps from a shell.
#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/costs.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/op_library.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace tapedeck;
using namespace tapedeck::tool;

namespace {

constexpr const char* kFile = ".tape or .graph";
constexpr const char* kChunkHelp =
    "chunks of no more than this: 64MiB, 1.5GB; what is larger by itself gets a chunk of its size";
const std::vector<std::string> kExplanations = {"choices", "segments", "peak", "memory"};
constexpr const char* kFooter =
    "Sizes: a bare number is bytes; KB MB GB are 1000s, KiB MiB GiB 1024s; 50% is of the peak that keeps everything.\n"
    "Exit codes: 0 ok, 1 differs, 2 usage, 3 bad or missing file or invalid graph, 4 infeasible budget, 5 execution error,\n"
    "6 no such device or built without it.";

// The command line, and what to run once it is parsed.
struct Line {
  CLI::App app{"Records tensor programs, plans their memory under a hard byte budget, replays them bit for bit.", "tapedeck"};
  RecordOptions record;
  FileOptions info, verify;
  tool::PrintOptions print;
  PlanCommandOptions plan;
  ReplayOptions replay;
  BenchCommandOptions bench;
  CalibrateCommandOptions calibrate;
  GradientCommandOptions gradient;
  OptOptions opt;
  ReduceCommandOptions reduce;
  OffsetsOptions offsets;
  ListOptions models, ops, settings, devices;
  std::string view_file;
  std::vector<std::string> op_libraries;
  std::function<int()> chosen;

  CLI::App* command(const char* name, const char* doc, std::function<int()> run, bool* json) {
    CLI::App* c = app.add_subcommand(name, doc);
    if (json) c->add_flag("--json", *json, "print one JSON object");
    c->callback([this, run = std::move(run)] { chosen = run; });
    return c;
  }
};

// CLI::Range has NaN within every range, and prints the largest number with all of its digits.
CLI::Validator within(double least, double most) {
  const auto check = [least, most](std::string& text) {
    double value = 0;
    const bool is_within = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return is_within ? std::string() : fmt::format("Value {} not in range {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{} - {}]", least, most));
}

void add_record(Line& l) {
  CLI::App* c = l.command(
      "record", "capture one training step of a model", [&l] { return tool::record(l.record); }, &l.record.json);
  ModelOptions& o = l.record.options;
  c->add_option("MODEL", l.record.model, "a name from `tapedeck models`")->required();
  const auto size = [c](const char* name, std::int64_t& value, const char* doc) {
    c->add_option(name, value, doc)->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  };
  size("--batch", o.batch, "rows per step");
  size("--image", o.image, "height and width of images");
  size("--seq", o.seq, "length of sequences");
  size("--layers", o.layers, "how many blocks of its kind the model stacks");
  size("--width", o.width, "channels or features of a layer");
  c->add_option("--dtype", o.dtype, "f32; f16 or bf16: forward under autocast")->check(CLI::IsMember({"f32", "f16", "bf16"}));
  c->add_option("--optimizer", o.optimizer, "sgd or adamw")->check(CLI::IsMember({"sgd", "adamw"}));
  c->add_option("--seed", o.seed, "of parameters and sample data")->capture_default_str();
  c->add_flag("--abstract", o.abstract, "record types only: takes no memory, computes nothing");
  c->add_option("-o,--output", l.record.output, "file to write")->required();
  c->footer(std::string("What is not given is the model's default; `tapedeck models --json` says what a model takes.\n") +
            kFooter);
}

void add_parallel_peak(CLI::App* c, double* value, const std::string& which) {
  const char* doc =
      "for several threads: keep bytes apart, so that branches need not wait for each other's, where the peak grows by no more "
      "than this "
      "factor; 1: never";
  c->add_option("--parallel-peak", *value, which + doc)->check(within(1, 1e6))->capture_default_str();
}

void add_plan(Line& l) {
  CLI::App* c = l.command(
      "plan", "plan the memory of a step, under a budget or without", [&l] { return tool::plan(l.plan); }, &l.plan.json);
  c->add_option("FILE", l.plan.file, kFile)->required();
  c->add_option("--budget", l.plan.budget, "most bytes a replay may hold: 64MiB, 1.5GB, 50%");
  c->add_option("--strategy", l.plan.strategy, "which values are computed again instead of kept; `list` lists the strategies")
      ->capture_default_str();
  c->add_option("--order", l.plan.order, "of nodes: recorded, or auto (whichever of several keeps the fewest bytes alive)")
      ->check(CLI::IsMember({"recorded", "auto"}))
      ->capture_default_str();
  c->add_option("--chunk", l.plan.chunk, std::string("allocate the arena in ") + kChunkHelp);
  c->add_option("--align", l.plan.align,
                "alignment of arena offsets in bytes, a power of two; default: the device's, 64 or 256")
      ->check(CLI::PositiveNumber);
  c->add_option("--device", l.plan.device, "cpu or cuda: whose alignment")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  c->add_option("-o,--output", l.plan.output, "write the file with its plan here");
  c->add_option("--threads", l.plan.threads, "how many threads the segments are cut for; the plan runs on any number")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_parallel_peak(c, &l.plan.parallel_peak, "");
  c->add_option("--segment-us", l.plan.segment_us, "most microseconds of a segment; 0: every node by itself")
      ->check(within(0, 1e9))
      ->capture_default_str();
  c->add_flag("--split-phases", l.plan.split_phases, "no segment holds nodes of two phases");
  c->add_option("--explain", l.plan.explain,
                "choices (every recompute choice with its reason), segments (how they were cut), peak (what lives there, "
                "and what would lower it) or memory (totals, and what sharing earns); alone: choices")
      ->type_name("[choices|segments|peak|memory]")
      ->check(CLI::IsMember(kExplanations).description(""));
  c->add_option("--picture", l.plan.picture,
                "draw addresses x time here: .svg, or .png where there is a viewer (of a plan within its budget)");
  c->add_option("--csv", l.plan.csv,
                "write the arena's buffers here, - for stdout: id,lower,upper,size,offset,alignment and what they hold; "
                "`tapedeck offsets` reads it");
  c->add_option("--costs", l.plan.costs, kCostsHelp)->check(CLI::IsMember({"estimate", "calibrated", "profile"}));
  c->footer(std::string("Strategies:\n") + list_strategies() + kFooter);
}

// A profile wants more than one step, and some to warm up.
int run_replay(Line& l) {
  if (l.replay.profile && l.app.get_subcommand("replay")->count("--steps") == 0) l.replay.steps = kProfileSteps;
  return tool::replay(l.replay);
}

void add_replay(Line& l) {
  CLI::App* c = l.command(
      "replay", "run a captured step", [&l] { return run_replay(l); }, &l.replay.json);
  c->add_option("FILE", l.replay.file, kFile)->required();
  c->add_option("--device", l.replay.device, "cpu or cuda")->capture_default_str();
  c->add_option("--threads", l.replay.threads, "0 = all")->check(CLI::Range(0, 4096))->capture_default_str();
  add_parallel_peak(c, &l.replay.parallel_peak, "of a plan that the file lacks, ");
  c->add_option("--steps", l.replay.steps, "exactly this many, no warm-up; default 1, with --profile 23")
      ->check(CLI::Range(1, 1000000000));
  c->add_option("--input", l.replay.inputs, "NAME=@F.npy, NAME=rand:SEED or NAME=zeros; may be repeated");
  c->add_option("--weights", l.replay.weights, "safetensors file with state by name");
  c->add_option("--save", l.replay.save, "write the file with the state after the last step here");
  c->add_option("--seed", l.replay.seed, "of values that the file lacks")->capture_default_str();
  c->add_flag("--check-eager", l.replay.check_eager, "compare every output and state with eager execution, bit for bit");
  c->add_option(
      "--trace", l.replay.trace,
      "write Chrome trace events of the last step here (.json; ui.perfetto.dev opens it); --steps 3 shows a warm one");
  c->add_option("--memory-trace", l.replay.memory_trace,
                "write the allocations of the last step here: .pickle for pytorch.org/memory_viz, or .json");
  c->add_flag("--profile", l.replay.profile,
              "time every node on one thread, the first three steps left out, and keep that in the file of --save");
  c->add_option("--chunk", l.replay.chunk, std::string("plan anew, with the arena in ") + kChunkHelp);
  c->add_option("--costs", l.replay.costs, std::string("of a plan that the file lacks: ") + kCostsHelp)
      ->check(CLI::IsMember({"estimate", "calibrated", "profile"}));
}

void add_bench(Line& l) {
  CLI::App* c = l.command(
      "bench", "time steps, and how much of them is kernels", [&l] { return tool::bench(l.bench); }, &l.bench.json);
  c->add_option("FILE", l.bench.files, ".tape, .graph or the name of a model; several");
  c->add_flag("--zoo", l.bench.zoo, "every model of `tapedeck models`");
  c->add_flag("--small", l.bench.small,
              "models at small sizes: batch 2, images of 64, sequences of 16, two layers, a quarter of the width");
  c->add_option("--threads", l.bench.threads, "thread counts: 1,2; 0 = all")
      ->delimiter(',')
      ->check(CLI::Range(0, 4096))
      ->allow_extra_args(false);
  add_parallel_peak(c, &l.bench.parallel_peak, "of plans made here, ");
  c->add_option(
      "--warmup", l.bench.warmup,
      "steps (3) or time (200ms, 1s) before those that count; default: until three in a row agree within 5 %, at most 0.5 s");
  c->add_option("--min-time", l.bench.min_time_s, "seconds of timed steps, at least three of them; default 1, with --small 0.3")
      ->check(within(0.001, 1e6));
  c->add_option("--budget", l.bench.budget, "plan anew under this budget: 64MiB, 1.5GB, 50%");
  c->add_option("--chunk", l.bench.chunk, std::string("plan anew, with the arena in ") + kChunkHelp);
  c->add_option("--costs", l.bench.costs, std::string("of plans made here: ") + kCostsHelp)
      ->check(CLI::IsMember({"estimate", "calibrated", "profile"}));
  c->add_option("--seed", l.bench.seed, "of values that the file lacks")->capture_default_str();
  c->footer(std::string("A file without a plan is planned for the largest thread count. Percentiles are nearest rank: of few "
                        "runs p99 is the slowest.\n"
                        "outside: of a step, the time in which no kernel runs on any thread, the clock's own cost taken off; "
                        "measured in steps of their own.\n"
                        "busy: the part of all threads' time that their own kernel calls take. speedup: against the first of "
                        "the file's rows.\n"
                        "Ctrl-C prints what has been measured.\n") +
            kFooter);
}

void add_calibrate(Line& l) {
  CLI::App* c = l.command(
      "calibrate", "measure once how fast this machine runs every op; plans then cost what they cost here",
      [&l] { return tool::calibrate(l.calibrate); }, &l.calibrate.json);
  c->add_flag("--quick", l.calibrate.quick, "fewer and smaller sizes: some seconds instead of half a minute");
  c->add_flag("--show", l.calibrate.show, "print what is in use, measure nothing");
  c->add_option("--check", l.calibrate.check, "measure nothing of the ops: replay these files and say how far costs are off")
      ->type_name("FILE ...");
  c->add_option(
      "-o,--output", l.calibrate.output,
      "file to write; default: where plan, replay and bench look (TAPEDECK_CALIBRATION, else the user's cache folder)");
  c->footer(std::string("Ctrl-C stops it and changes nothing. A calibration of another machine or version is not used.\n") +
            kFooter);
}

void add_gradient(Line& l) {
  CLI::App* c = l.command(
      "gradient", "the graph with its backward; gradients are further outputs", [&l] { return tool::gradient(l.gradient); },
      &l.gradient.json);
  c->add_option("FILE", l.gradient.file, kFile)->required();
  c->add_option("--of", l.gradient.of, "what to differentiate: %loss, or several: %a,%b")->required()->allow_extra_args(false);
  c->add_option("--wrt", l.gradient.wrt, "for what: %w,%x")->required()->allow_extra_args(false);
  c->add_option("--head", l.gradient.heads,
                "values of the graph that are the targets' gradients, one for each --of; default ones")
      ->allow_extra_args(false);
  c->add_option("-o,--output", l.gradient.output, "write the .graph here instead of to stdout");
}

void add_opt(Line& l) {
  CLI::App* c = l.command(
      "opt", "run passes on a graph, and print what comes out", [&l] { return tool::opt(l.opt); }, &l.opt.json);
  c->add_option("FILE", l.opt.file, kFile);
  c->add_option("--pass", l.opt.passes, "names from --list, in order: cse,dce; default: all that simplify, as before planning")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_flag("--fast-math", l.opt.fast_math, "rewrites that change rounding, or what NaN, infinities and -0 give");
  c->add_flag("--list", l.opt.list, "the passes there are");
  c->add_option("-o,--output", l.opt.output,
                ".tape (with the file's tensors, without its plan) or .graph to write instead of stdout");
}

void add_reduce(Line& l) {
  CLI::App* c = l.command(
      "reduce", "shrink a graph for which a command fails, while it fails in the same way",
      [&l] { return tool::reduce(l.reduce); }, &l.reduce.json);
  c->add_option("FILE", l.reduce.file, kFile)->required();
  c->add_option("--check", l.reduce.check, "a shell command, {} for the file of the candidate")->required();
  c->add_option("--expect-exit", l.reduce.expect_exit,
                "the exit code that makes a candidate interesting; default: that of FILE itself, not 0")
      ->check(CLI::Range(0, 255));
  c->add_option("--max-checks", l.reduce.max_checks, "run the command at most so often")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  c->add_flag("--keep-sizes", l.reduce.keep_sizes, "leave dimensions as they are");
  c->add_option("-o,--output", l.reduce.output, "file to write instead of stdout: .graph, or .tape if FILE is one");
  c->footer(std::string("Ctrl-C stops it and leaves the smallest graph so far.\n") + kFooter);
}

void add_offsets(Line& l) {
  CLI::App* c = l.command(
      "offsets", "place a list of buffers in as few bytes as possible", [&l] { return tool::offsets(l.offsets); },
      &l.offsets.json);
  OffsetsOptions& o = l.offsets;
  c->add_option("FILE", o.file,
                "a .csv with columns id,lower,upper,size and, if wanted, alignment, gaps, hint, offset (fixed); - for stdin")
      ->required();
  c->add_option("--capacity", o.capacity, "an end up to this will do: 1048576, 64MiB");
  CLI::Option* seconds = c->add_option("--seconds", o.seconds, "search for so long; answers may differ from run to run")
                             ->check(within(0.001, 1e6));
  c->add_option("--work", o.work,
                "search for so many steps; equal work gives an equal answer; 0: greedy only; if neither is given, as many as "
                "take about ten seconds")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60))
      ->excludes(seconds);
  c->add_option("--align", o.align, "alignment of buffers for which the file has none")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  c->add_option("--threads", o.threads, "that search; 0: all; the answer for some work is the same with any number")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  c->add_option("--chunk", o.chunk,
                "several arenas, none larger than this (but for a buffer that is); hints steer nothing then");
  c->add_flag("--anew", o.anew, "do not look at offsets that the file has: place all (the CSV of a plan, say)");
  c->add_option(
      "-o,--output", o.output,
      "write the list with the offsets here, even if the capacity is not met; - for stdout, and the summary goes to stderr");
  c->footer(
      "Lives are lower..upper-1 (column `end`: the last time itself); a gap a-b means not needed during a..b-1. The first "
      "blank line ends the list.\n"
      "Packed files: gzip -dc FILE.csv.gz | tapedeck offsets -. Ctrl-C stops the search and keeps the best so far.\n"
      "Exit codes: 0 ok, 2 usage, 3 bad file, 4 the capacity is not met, 130 interrupted (the best so far is still written).");
}

void add_others(Line& l) {
  l.command(
       "info", "what a file holds", [&l] { return tool::info(l.info); }, &l.info.json)
      ->add_option("FILE", l.info.file, kFile)
      ->required();
  CLI::App* p = l.command(
      "print", "the graph as text", [&l] { return tool::print(l.print); }, &l.print.json);
  p->add_option("FILE", l.print.file, kFile)->required();
  p->add_option("--after", l.print.after, "the graph as the planner has it after this pass (the last time that it runs)");
  p->add_flag("--planned", l.print.planned, "the planned graph, with segments and offsets");
  p->add_flag("--no-notes", l.print.no_notes, "leave the [notes] out");
  l.command(
       "verify", "check a file, its graph and its plan without running it", [&l] { return tool::verify(l.verify); },
       &l.verify.json)
      ->add_option("FILE", l.verify.file, kFile)
      ->required();
  l.command(
      "models", "models that `record` knows; --json: options and sizes", [&l] { return list_models(l.models); },
      &l.models.json);
  l.command(
      "ops", "ops of this build; --json: all that they say of themselves", [&l] { return list_ops(l.ops); }, &l.ops.json);
  l.command(
      "settings", "settings read from the environment", [&l] { return list_settings(l.settings); }, &l.settings.json);
  l.command(
      "devices", "devices of this machine", [&l] { return list_devices(l.devices); }, &l.devices.json);
  l.command(
       "view", "open a file in the desktop viewer", [&l] { return tool::view(l.view_file); }, nullptr)
      ->add_option("FILE", l.view_file, kFile)
      ->required();
}

int complain(const std::exception& e, int code) {
  std::fprintf(stderr, "tapedeck: %s\n", e.what());
  return code;
}

int run(const std::function<int()>& command) {
  try {
    return command();
  } catch (const Cancelled&) {
    std::fprintf(stderr, "tapedeck: interrupted\n");
    return kInterrupted;
  } catch (const UsageError& e) {
    return complain(e, kUsage);
  } catch (const TypeError& e) {
    return complain(e, kUsage);
  } catch (const DeviceError& e) {
    return complain(e, kNoDevice);
  } catch (const ExecutionError& e) {
    return complain(e, kExecution);
  } catch (const CaptureError& e) {
    return complain(e, kExecution);
  } catch (const Error& e) {
    return complain(e, kBadFile);
  } catch (const std::bad_alloc& e) {
    return complain(ExecutionError("out of memory"), kExecution);
  } catch (const std::exception& e) {
    return complain(e, kExecution);
  }
}

}  // namespace

struct Arguments {
  std::vector<std::string> all;  // reversed, as CLI11 takes them
  std::string after_explain;     // the word behind `--explain` or `--explain WORD` that is none it takes; may be the file
};

// `--explain segments` is `--explain=segments`; bare `--explain FILE` is `--explain=choices FILE`.
Arguments arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    a.all.emplace_back(argv[i]);
    if (a.all.back() != "--explain") continue;
    const bool has_word =
        i + 1 < argc && std::find(kExplanations.begin(), kExplanations.end(), argv[i + 1]) != kExplanations.end();
    a.all.back() += std::string("=") + (has_word ? argv[++i] : "choices");
    if (i + 1 < argc && argv[i + 1][0] != '-') a.after_explain = argv[i + 1];
  }
  std::reverse(a.all.begin(), a.all.end());
  return a;
}

// One word too many: if it stands where --explain has its own, that is what it was meant for. Empty: it is not.
std::string misplaced_explanation(const std::string& word) {
  if (word.empty() || word.find_first_of("./") != std::string::npos) return "";  // a file
  if (std::find(kExplanations.begin(), kExplanations.end(), word) != kExplanations.end())
    return fmt::format("--explain takes one word; '{}' is a second", word);
  return fmt::format("--explain: '{}' is none of {}", word, fmt::join(kExplanations, ", "));
}

int main(int argc, char** argv) {
  Line line;
  line.app.require_subcommand(1);
  line.app.footer(kFooter);
  line.app.set_version_flag("--version", std::string("tapedeck ") + TAPEDECK_VERSION);
  line.app.add_option("--load", line.op_libraries, "a library of ops (.so), loaded first; may be given again")
      ->type_name("LIB")
      ->allow_extra_args(false);
  add_record(line);
  add_plan(line);
  add_replay(line);
  add_bench(line);
  add_calibrate(line);
  add_gradient(line);
  add_opt(line);
  add_reduce(line);
  add_offsets(line);
  add_others(line);
  Arguments given = arguments(argc, argv);
  try {
    line.app.parse(std::move(given.all));
  } catch (const CLI::ExtrasError& e) {
    if (const std::string what = misplaced_explanation(given.after_explain); !what.empty())
      return complain(UsageError(what), kUsage);
    line.app.exit(e);
    return kUsage;
  } catch (const CLI::ParseError& e) {
    const bool asked = e.get_exit_code() == 0;  // --help, --version
    line.app.exit(e);
    return asked ? kOk : kUsage;
  }
  catch_interrupts();
  return run([&line] {
    for (const std::string& library : line.op_libraries) load_ops(library);
    return line.chosen();
  });
}
