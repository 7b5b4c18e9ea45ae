// Settings from environment variables. They are read once, when a setting is first asked for. engine/README.md has the table
// of all settings.
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
  bool sync = false;                         // TAPEDECK_SYNC
  int threads = 0;                           // TAPEDECK_THREADS; 0: the cores that this process may use
  std::string dump;                          // TAPEDECK_DUMP: the folder where graphs are written
  std::string calibration;                   // TAPEDECK_CALIBRATION: a file, or "off"
  std::vector<std::string> disabled_passes;  // TAPEDECK_DISABLE_PASSES

  bool watches_results() const { return check_nan || debug >= 3; }
};

// Both functions throw UsageError if a variable has a value that is not allowed. Thread safe.
const Settings& settings();
Settings settings_from_environment();  // the environment as it is now

// A row of the table of settings: name, values, default and meaning. A test compares the rows with engine/README.md.
struct SettingDoc {
  const char *name, *values, *fallback, *meaning;
};
const std::vector<SettingDoc>& setting_docs();

// For tests: replaces the settings until the object is destroyed. Not thread safe.
class ScopedSettings {
 public:
  explicit ScopedSettings(Settings s);
  ~ScopedSettings();
  ScopedSettings(const ScopedSettings&) = delete;

 private:
  Settings before_;
};

}  // namespace TAPEDECK_API
