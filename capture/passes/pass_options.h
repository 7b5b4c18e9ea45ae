// What a person may choose of the passes. Typed, with defaults that change no bit of any result.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tapedeck TAPEDECK_API {

// The device of a node or of a graph input or state value, by whatever the user goes by: its path, its name. Empty: no wish.
struct DeviceMap {
  std::function<std::string(const Graph&, NodeId)> of_node = {};
  std::function<std::string(const Graph&, ValueId)> of_value = {};  // inputs and state
  std::string fallback = "cpu";                                     // where everything is that nobody has a wish for
};

// The order in which a result's dimensions lie in memory, outermost first ({0,2,3,1}: NCHW lies as NHWC); nullopt: as they
// come.
using LayoutChoice = std::function<std::optional<Ints>(const Graph&, NodeId)>;

struct PassOptions {
  bool fast_math = false;                     // rewrites that change rounding, or what NaN, infinities and -0 give
  std::int64_t fold_bytes = 1024;             // constant_folding: the largest result it keeps as a constant
  std::int64_t fold_operand_bytes = 1 << 20;  // and the most bytes it reads for one
  std::int64_t hoist_bytes = 16 << 20;        // hoist_invariants: the most bytes it holds over one loop
  DeviceMap devices = {};                     // place_devices
  LayoutChoice layout = {};                   // choose_layout
};

}  // namespace TAPEDECK_API
