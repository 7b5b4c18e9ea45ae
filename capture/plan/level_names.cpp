#include <tapedeck/capture/plan/level_names.h>

#include <cstddef>
#include <iterator>

namespace tapedeck {

const char* level_name(OptimizationLevel level) {
  constexpr const char* names[] = {"none", "cleanups", "all", "fused"};
  const auto index = static_cast<std::size_t>(level);
  return index < std::size(names) ? names[index] : "unknown";
}

}  // namespace tapedeck
