// The monitors of a captured step. The step has an executor for each of its programs, and makes and drops executors as it goes.
// Every monitor watches the replays of all of them.
#pragma once

#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/capture/step/recording.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

class StepMonitors {
 public:
  std::int32_t add(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options);
  void remove(std::int32_t id);  // UsageError if there is no such monitor
  // To be called before a recording is replayed: adds the monitors that its executor lacks and in whose graph something
  // matches, and removes those that are gone. Constant time if nothing has changed.
  void apply(Recording& r) const;

 private:
  struct Monitor {
    std::int32_t id;
    std::string pattern;
    MonitorFunction fn;
    MonitorOptions options;
  };
  std::vector<Monitor> monitors_;
  std::int32_t next_ = 0;
  std::int64_t version_ = 0;  // changes with the list
};

}  // namespace tapedeck
