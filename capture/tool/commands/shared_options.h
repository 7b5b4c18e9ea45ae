// Options that several commands have, and the words that shells offer for them.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/capture/replay/device/device_counters.h>
#include <tapedeck/capture/tool/line/command.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

inline constexpr double kParallelPeak = 1.15;  // the same as in PlanOptions

Option file_argument(std::string* to);  // FILE, a .tape or .graph
Option json_option(bool* to);
// `action` begins the sentence "... in chunks of at most this size"; `when` is a sentence before the help.
Option chunk_option(std::string* to, const std::string& action);
Option parallel_peak_option(double* to, const std::string& when = "");
Option level_option(int* to, const std::string& fallback = "");  // 0 to 3: the value of an OptimizationLevel
Option align_option(std::int64_t* to);
Option costs_option(std::string* to, const std::string& when = "");
Option tolerance_option(const char* name, double* to, const std::string& help);

// The words of --keep and --recompute.
struct WishWords {
  std::vector<std::string> keep, recompute;
  std::vector<std::string> turns;  // the names of both options in their order on the line

  bool empty() const { return turns.empty(); }
  std::vector<Wish> wishes() const;  // in the order of the line
};
std::vector<Option> wish_options(WishWords* to, const std::string& when = "");
extern const char* const kWishPatterns;  // what a pattern is, for the notes of a command

// --device and --cuda-graphs.
struct DeviceWords {
  std::string device = "cpu";
  std::string graphs = "auto";

  bool on_device() const { return device != "cpu"; }
  CudaGraphs cuda_graphs() const;
  // Throws DeviceError if there is no such device, and UsageError for --cuda-graphs without one. Called before files are read.
  void check() const;
};
std::vector<Option> device_options(DeviceWords* to);
// The level of passes for a plan that is made anew, where nothing asks for another.
OptimizationLevel default_level(const std::string& device);
// Whether a replay on the device can take the plan of a file as it is. Says so if not: the plan takes more than its budget.
bool serves_device(const Plan& plan, const std::string& device);

std::vector<Option> joined(const std::vector<std::vector<Option>>& tables);

// Whether an argument that may be a file or a model names a model: a file of that name comes first. Throws FileError if it is
// neither, and could be meant for a model.
bool names_model(const std::string& name);

// The name that messages give the file of an argument, which may be - for stdin.
std::string source_name(const std::string& path);

std::vector<std::string> model_names();
std::vector<std::string> pass_names();
std::vector<std::string> device_names();
std::vector<std::string> strategy_names();  // auto and none too

}  // namespace tapedeck::tool
