// Settings from the environment, read once when first asked for. The table of all of them is in engine/README.md.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Settings {
  int debug = 0;                             // TAPEDECK_DEBUG
  bool check_nan = false;                    // TAPEDECK_CHECK_NAN
  bool check_plans = false;                  // TAPEDECK_CHECK_PLANS
  int poison = 0;                            // TAPEDECK_POISON
  std::string dump;                          // TAPEDECK_DUMP: a folder for graphs
  std::string calibration;                   // TAPEDECK_CALIBRATION: a file, or off
  std::vector<std::string> disabled_passes;  // TAPEDECK_DISABLE_PASSES

  bool watches_results() const { return check_nan || debug >= 3; }
};

// Both throw UsageError if a variable has a value it cannot have. Thread safe.
const Settings& settings();
Settings settings_from_environment();  // as it is now

// The table: name, values, default, meaning. A test holds it against engine/README.md.
struct SettingDoc {
  const char *name, *values, *fallback, *meaning;
};
const std::vector<SettingDoc>& setting_docs();

// For tests: other settings until the scope ends. Not thread safe.
class ScopedSettings {
 public:
  explicit ScopedSettings(Settings s);
  ~ScopedSettings();
  ScopedSettings(const ScopedSettings&) = delete;

 private:
  Settings before_;
};

}  // namespace TAPEDECK_API
