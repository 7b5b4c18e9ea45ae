// The report of a replay on a device: its graphs, the nodes that ran on the host, its copies.
#pragma once

#include <tapedeck/capture/replay/device/device_counters.h>
#include <tapedeck/capture/replay/executor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct DeviceUse {
  struct OnHost {
    std::int32_t node = 0;
    std::string text, why;
  };

  DeviceCounters counters;
  std::int32_t graphs = 0;  // of a step, by the plan
  std::int64_t scratch_bytes = 0;
  std::int32_t joined_updates = 0, update_groups = 0;  // of a step: updates of optimizers, and the kernels that they share
  std::vector<OnHost> on_host;
};

// Empty for "cpu".
std::optional<DeviceUse> device_use(const Executor& executor, const std::string& device);

std::string device_text(const DeviceUse& use);  // lines that begin with two spaces

// "2 graphs; on the host: ..." for a plan that has not run.
std::string device_explained(const Plan& plan, const std::string& device);

}  // namespace tapedeck::tool
