#include <tapedeck/engine/control/mask_counts.h>

#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/kernels/attrs/index.h>

#include <map>

namespace tapedeck {

namespace {
thread_local std::map<std::uint64_t, std::vector<NodeId>> noted;  // for each tape, by its serial number
}

bool counts_elements(const Op& op) { return op.attrs == &attr_schema<CountAttrs>(); }

std::int64_t count_of(const Graph& graph, const Node& node) {
  return static_cast<const CountAttrs*>(graph.attributes(node))->count;
}

void set_count(void* attributes, std::int64_t count) { static_cast<CountAttrs*>(attributes)->count = count; }

bool capturing_counts() {
  const ThreadState& state = thread_state();
  return state.tape->capturing && !state.tape->nested && !state.abstract;
}

std::int64_t read_count(const Tensor& mask) {
  const Unrecorded unrecorded;
  return static_cast<std::int64_t>(count_nonzero(mask, {}, false).item());
}

void note_dynamic_count() {
  const Recorder& tape = *thread_state().tape;
  NodeId n = tape.graph.node_count() - 1;  // nodes for the gradient of the count may have been recorded after it
  while (n >= 0 && !counts_elements(*tape.graph.nodes[n].op)) --n;
  if (n >= 0) noted[tape.serial].push_back(n);
}

std::vector<NodeId> take_dynamic_counts(std::uint64_t serial) {
  const auto it = noted.find(serial);
  if (it == noted.end()) return {};
  std::vector<NodeId> nodes = std::move(it->second);
  noted.erase(it);
  return nodes;
}

}  // namespace tapedeck
