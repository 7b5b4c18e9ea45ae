#include <tapedeck/capture/tool/commands/shared_options.h>

#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <filesystem>

namespace tapedeck::tool {

Option file_argument(std::string* to) {
  return {.name = "FILE", .to = to, .help = "A .tape file, or a graph as text (.graph).", .required = true};
}

Option json_option(bool* to) { return {.name = "--json", .to = to, .help = "Print one JSON object.", .group = "Output"}; }

Option chunk_option(std::string* to, const std::string& action) {
  return {
      .name = "--chunk",
      .metavar = "SIZE",
      .to = to,
      .help = action + " in chunks of at most this size: 64MiB, 1.5GB. A buffer that is larger gets a chunk of its own size.",
      .group = "Memory"};
}

Option parallel_peak_option(double* to, const std::string& when) {
  return {.name = "--parallel-peak",
          .metavar = "FACTOR",
          .to = to,
          .help = when +
                  "With several threads, keep the bytes of branches apart, so that branches do not wait for each other, where "
                  "the peak grows by at most this factor; 1 never does.",
          .group = "Segments",
          .least = 1,
          .most = 1e6};
}

Option level_option(int* to, const std::string& fallback) {
  return {.name = "--level",
          .metavar = "N",
          .to = to,
          .help =
              "How much the passes may change the graph first: 0 nothing, 1 leave out what nobody needs and what changes "
              "nothing, 2 run all passes but one, 3 also make one node of elementwise nodes that hand values to each other. "
              "Results have the same bits at every level.",
          .fallback = fallback,
          .least = 0,
          .most = 3};
}

std::vector<Option> wish_options(WishWords* to, const std::string& when) {
  return {
      {.name = "--keep",
       .metavar = "PATTERN",
       .to = &to->keep,
       .help = when + "Never compute these values again; " +
               (when.empty() ? "the patterns are listed below." : "`tapedeck plan --help` lists the patterns."),
       .group = "Memory",
       .turns = &to->turns},
      {.name = "--recompute",
       .metavar = "PATTERN",
       .to = &to->recompute,
       .help = when + "Compute these values again in backward instead of keeping them. Of --keep and --recompute the last one "
                      "that names a value counts.",
       .group = "Memory",
       .turns = &to->turns},
  };
}

std::vector<Wish> WishWords::wishes() const {
  std::vector<Wish> wishes;
  auto kept = keep.begin(), again = recompute.begin();
  for (const std::string& name : turns) {
    if (name == "--keep" && kept != keep.end()) wishes.push_back({WishKind::keep, *kept++});
    if (name == "--recompute" && again != recompute.end()) wishes.push_back({WishKind::recompute, *again++});
  }
  return wishes;
}

const char* const kWishPatterns =
    "\nPatterns of --keep and --recompute:\n"
    "  NAME            values of that name; * stands for any characters and ? for one: 'h*'\n"
    "  module:PATH     values made in that module and in modules inside it: module:encoder\n"
    "  op:NAME         values that the op makes: op:matmul\n"
    "  trait:NAME      values made by ops of that trait, which `tapedeck ops --json` lists: trait:random\n"
    "  region:NUMBER   values made in that checkpoint region\n"
    "  note:WISH       values that the program marks by [keep] or [recompute]: note:keep\n";

Option align_option(std::int64_t* to) {
  return {.name = "--align",
          .metavar = "BYTES",
          .to = to,
          .help = "The alignment of offsets in the arena, a power of two.",
          .fallback = "64",
          .least = 1,
          .most = 4e18};
}

Option costs_option(std::string* to, const std::string& when) {
  return {.name = "--costs",
          .metavar = "SOURCE",
          .to = to,
          .help = when +
                  "The source of microseconds: estimate (the same on every machine), calibrated (`tapedeck calibrate`) or "
                  "profile (`tapedeck replay --profile --save`).",
          .group = "Segments",
          .fallback = "the best source there is",
          .choices = {"estimate", "calibrated", "profile"}};
}

Option tolerance_option(const char* name, double* to, const std::string& help) {
  return {.name = name, .metavar = "X", .to = to, .help = help, .group = "Comparison", .least = 0, .most = 1e300};
}

std::vector<Option> joined(const std::vector<std::vector<Option>>& tables) {
  std::vector<Option> all;
  for (const std::vector<Option>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

std::string source_name(const std::string& path) { return path == "-" ? "stdin" : path; }

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : all_models()) names.push_back(model.name);
  return names;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass* pass : all_passes()) names.push_back(pass->name);
  return names;
}

std::vector<std::string> device_names() { return {"cpu", "cuda", "cuda:1"}; }

std::vector<Option> device_options(DeviceWords* to) {
  return {
      {.name = "--device",
       .metavar = "NAME",
       .to = &to->device,
       .help = "The device: cpu, cuda, or cuda:1 for the second GPU. A budget in bytes holds for all memory that is taken "
               "there, one in percent for all but the scratch of kernels.",
       .words = device_names},
      {.name = "--cuda-graphs",
       .metavar = "WHEN",
       .to = &to->graphs,
       .help =
           "Whether steps on a GPU run as CUDA graphs: auto, off (kernel after kernel, waiting after each, so that an error "
           "names its node), or require (it is an error if a step is not one graph).",
       .choices = {"auto", "off", "require"}},
  };
}

CudaGraphs DeviceWords::cuda_graphs() const {
  return graphs == "off" ? CudaGraphs::off : graphs == "require" ? CudaGraphs::required : CudaGraphs::automatic;
}

void DeviceWords::check() const {
  if (!on_device() && graphs != "auto") throw UsageError(fmt::format("--cuda-graphs {} needs --device cuda", graphs));
  open_device(device);
}

// On a GPU each node costs a launch, so fewer nodes are faster there.
OptimizationLevel default_level(const std::string& device) {
  return device == "cpu" ? OptimizationLevel::all : OptimizationLevel::fused;
}

bool serves_device(const Plan& plan, const std::string& device) {
  if (device == "cpu" || !plan.feasible || keeps_budget_on(plan, device)) return true;
  note(fmt::format("planning again: on {} the plan in the file takes {}, more than its budget of {}", device,
                   human_size(planned_device_bytes(plan, device)), human_size(plan.budget_bytes)));
  return false;
}

bool names_model(const std::string& name) {
  if (std::filesystem::exists(name)) return false;
  if (find_model(name)) return true;
  if (name.find_first_of("./") != name.npos) return false;
  const std::vector<std::string> models = model_names();
  throw FileError(
      fmt::format("{}: there is no such file and no such model{}", name, did_you_mean(name, {models.begin(), models.end()})));
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names = {"auto", "none"};
  for (const StrategyEntry* strategy : all_strategies()) names.push_back(strategy->name);
  return names;
}

}  // namespace tapedeck::tool
