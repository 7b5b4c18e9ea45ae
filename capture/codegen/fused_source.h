// The source of the kernels of a fused node. The text depends on the region and on the access of the views, not on names,
// sizes or addresses, so that equal layers of a network share one compiled kernel.
#pragma once

#include <tapedeck/capture/codegen/layout.h>
#include <tapedeck/capture/codegen/scalar_calls.h>

#include <span>
#include <string>

namespace tapedeck::codegen {

struct FusedSource {
  std::string name;  // the kernels are <name>_plain and, where the layout has lanes, <name>_wide
  std::string body;
  Headers headers = 0;
};

// Writes the kernels of the region of a `fused` node. Throws DeviceError if an op has no expression (scalar_calls.h), or if the
// kernel has more views than its argument holds.
FusedSource fused_source(const Graph& region, const FusedLayout& layout, const std::string& name = "fused");

// A text that a compiler takes: the prelude, the headers that the sources need, and the sources. NVRTC compiles it for a
// device. A compiler of the host makes a function `<kernel>_on_host(argument, blocks, threads)` of each kernel.
std::string complete_text(std::span<const FusedSource> sources);

}  // namespace tapedeck::codegen
