// The choices of a user for the passes. The defaults change no bit of any result.
#pragma once

#include <tapedeck/capture/plan/optimization_level.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <string>

namespace tapedeck TAPEDECK_API {

// The device of a node, a graph input or a state value, chosen by any property: its path, its name. Empty: no wish.
struct DeviceMap {
  std::function<std::string(const Graph&, NodeId)> of_node = {};
  std::function<std::string(const Graph&, ValueId)> of_value = {};  // inputs and state
  std::string fallback = "cpu";                                     // the device of everything that has no wish
};

struct PassOptions {
  bool fast_math = false;                     // rewrites that change rounding, or the results for NaN, infinities and -0
  std::int64_t fold_bytes = 1024;             // constant_folding: the largest result it keeps as a constant
  std::int64_t fold_operand_bytes = 1 << 20;  // constant_folding: the most bytes of operands that it reads for one constant
  std::int64_t hoist_bytes = 16 << 20;        // hoist_invariants: the most bytes that it holds during one loop
  std::int64_t fuse_elements = 256;           // fuse: the fewest elements of a result that is worth a tile
  DeviceMap devices = {};                     // place_devices
  // PassRunner leaves out the registered passes of higher levels, as prepare() and simplify() call them.
  OptimizationLevel level = OptimizationLevel::all;
};

}  // namespace TAPEDECK_API
