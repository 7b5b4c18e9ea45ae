// The caches of the first processor that hold data, as the system tells them.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Cache {
  std::int64_t bytes = 0;
  int sharers = 1;  // logical cores that share it
  bool operator==(const Cache&) const = default;
};

// The nearest cache first, each larger than the one before. `folder` is laid out as Linux lays it out: index0/level, type,
// size, shared_cpu_list, and so on. Entries that cannot be read or cannot be true are left out. Where the folder tells nothing,
// the C library is asked, and where that knows nothing either, the sizes are usual ones; then all `cores` share the last cache.
std::vector<Cache> data_caches(int cores, const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace TAPEDECK_API
