#include <tapedeck/capture/replay/monitor_inputs.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck {

namespace {

// Monitors know by this type that operands are to be named.
struct WithInputNames {
  MonitorFunction fn;
  void operator()(const Monitored& seen) const { fn(seen); }
};

}  // namespace

std::string input_name(const Graph& graph, NodeId n, std::int32_t i) {
  const Node& node = graph.nodes[static_cast<std::size_t>(n)];
  const ValueId v = graph.inputs(node)[static_cast<std::size_t>(i)];
  if (graph.is_input(v) || graph.is_state(v)) return graph.value_name(v);
  const std::string name = node.n_outputs > 0 ? graph.value_name(node.first_output) : node.op->name;
  return fmt::format("{}.input{}", name, i);
}

MonitorFunction with_input_names(MonitorFunction fn) {
  if (!fn) throw UsageError("monitor: there is no function to call");
  return WithInputNames{std::move(fn)};
}

bool replay::has_input_names(const MonitorFunction& fn) { return fn.target<WithInputNames>() != nullptr; }

}  // namespace tapedeck
