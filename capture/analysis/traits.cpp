#include <tapedeck/capture/analysis/traits.h>

namespace tapedeck {

std::uint32_t traits_within(const Graph& graph, const Node& node) {
  std::uint32_t traits = node.op->traits;
  for (const Region& region : graph.regions_of(node))
    for (const Node& inner : region->nodes) traits |= traits_within(*region, inner);
  return traits;
}

}  // namespace tapedeck
