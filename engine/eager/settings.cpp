#include <tapedeck/engine/eager/settings.h>

#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/thread_limit.h>

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

namespace tapedeck {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int most) {
  const std::string text = variable(name);
  if (text.empty()) return 0;
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '0' + most) return text[0] - '0';
  throw UsageError(fmt::format("{}={}: takes 0 to {}", name, text, most));
}

// TAPEDECK_THREADS may have several digits.
int number_of_threads() {
  const std::string text = variable("TAPEDECK_THREADS");
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (text.empty() || (is_number && threads >= 0 && threads <= kernels::kMostThreads)) return threads;
  throw UsageError(fmt::format("TAPEDECK_THREADS={}: takes 0 to {}", text, kernels::kMostThreads));
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace

Settings settings_from_environment() {
  Settings s;
  s.debug = number("TAPEDECK_DEBUG", 4);
  s.check_nan = number("TAPEDECK_CHECK_NAN", 1) != 0;
  s.check_plans = number("TAPEDECK_CHECK_PLANS", 1) != 0;
  s.poison = number("TAPEDECK_POISON", 2);
  s.sync = number("TAPEDECK_SYNC", 1) != 0;
  s.threads = number_of_threads();
  s.calibration = variable("TAPEDECK_CALIBRATION");
  s.dump = variable("TAPEDECK_DUMP");
  s.disabled_passes = split_at_commas(variable("TAPEDECK_DISABLE_PASSES"));
  return s;
}

namespace {

Settings first_settings() {
  Settings s = settings_from_environment();
  if (s.threads > 0) kernels::set_thread_limit(s.threads);
  return s;
}

Settings& current_settings() {
  static Settings s = first_settings();
  return s;
}

}  // namespace

const Settings& settings() { return current_settings(); }

void set_threads(int threads, Site site) {
  settings();  // the environment speaks first
  if (threads < 0 || threads > kernels::kMostThreads)
    throw UsageError(error_text("set_threads", fmt::format("{} threads: takes 0 to {}", threads, kernels::kMostThreads), site));
  kernels::set_thread_limit(threads);
}

int thread_count() {
  settings();
  return kernels::thread_limit();
}

const std::vector<SettingDoc>& setting_docs() {
  static const std::vector<SettingDoc> docs = {
      {"TAPEDECK_CALIBRATION", "a file, off", "the user's cache folder",
       "where `tapedeck calibrate` keeps this machine's speed; off: the tool plans by built-in estimates"},
      {"TAPEDECK_CHECK_NAN", "0, 1", "0",
       "the first op whose result holds a NaN or an infinity throws ExecutionError, naming op, types and call; in replays on "
       "the CPU too"},
      {"TAPEDECK_CHECK_PLANS", "0, 1", "0",
       "every plan made is checked by capture/check/check_plan.h, as it always is in debug builds; tests set it"},
      {"TAPEDECK_CUDA_GEMM", "own", "none", "own: matrix products on the device use our own kernels, and not cuBLASLt"},
      {"TAPEDECK_CUDA_LIBDIR", "a folder", "none", "where to look first for NVIDIA's libraries"},
      {"TAPEDECK_DEBUG", "0 to 4", "0",
       "on stderr, each with what is before it: 1 what every pass won; 2 what every capture found, and every plan made is "
       "checked; 3 every eager op with types and call; 4 the least, largest and mean element of its results"},
      {"TAPEDECK_DISABLE_PASSES", "passes", "none",
       "these passes, separated by commas, are left out where the planner can do without"},
      {"TAPEDECK_DUMP", "a folder", "none",
       "every captured graph, and the graph after every pass that changed it, are written there as .graph files"},
      {"TAPEDECK_FMAD", "0, 1", "0",
       "1: kernels that are compiled at run time for a GPU may contract a product and a sum into one operation, and then lose "
       "the bits of the CPU kernels"},
      {"TAPEDECK_FUZZ_MINUTES", "a number", "0", "tests/fuzz_programs: random programs for so long; 0: no limit"},
      {"TAPEDECK_FUZZ_PROGRAMS", "a number", "0", "tests/fuzz_programs: so many random programs; 0: no limit"},
      {"TAPEDECK_KERNEL_CACHE", "a folder, off", "the user's cache folder",
       "where kernels that were compiled at run time are kept, up to 64 MiB; off: every run compiles them"},
      {"TAPEDECK_POISON", "0 to 2", "0",
       "replays fill the arena's dead bytes with NaN patterns and look after every node whether bytes beside its results have "
       "changed; what reads or writes bytes that are not its own is an ExecutionError. 2: after every node all dead bytes are "
       "looked at"},
      {"TAPEDECK_REQUIRE_GPU", "0, 1", "0", "tests: those that need a GPU fail without one instead of being skipped"},
      {"TAPEDECK_SAVE_STEP", "a .tape file", "none",
       "the program of each `CapturedStep` that recorded is saved there when the step is destroyed; `tapedeck run --view` sets "
       "it"},
      {"TAPEDECK_SYNC", "0, 1", "0",
       "replays and eager code on a device wait after each kernel, so that an error names its op and call; no CUDA graphs"},
      {"TAPEDECK_TEST_OP", "an op", "all", "tests: what is checked of every op is checked of this one alone"},
      {"TAPEDECK_TEST_SEED", "a number", "none", "tests: random programs start from this seed"},
      {"TAPEDECK_TF32", "0, 1", "0",
       "1: f32 products of cuBLASLt and convolutions of cuDNN may round their operands to TF32, which is faster"},
      {"TAPEDECK_THREADS", "0 to 1024", "0",
       "the number of threads of eager ops and of replays that are given none; 0: the cores that this process may use. "
       "set_threads() does the same from C++"},
      {"TAPEDECK_UPDATE_GOLDEN", "0, 1", "0", "tests: golden files are written anew instead of compared"},
      {"TAPEDECK_VIEW", "0, 1, a folder", "0",
       "the program writes a live view from its first op on, for `tapedeck-viewer --live`: 1: to the user's own folder; a "
       "folder: "
       "there (capture/live/live_view.h)"},
  };
  return docs;
}

ScopedSettings::ScopedSettings(Settings s) : before_(std::exchange(current_settings(), std::move(s))) {}
ScopedSettings::~ScopedSettings() { current_settings() = std::move(before_); }

}  // namespace tapedeck
