#include <tapedeck/capture/passes/value_devices.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/attrs/device.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

Name device_of_operands(const Graph& graph, NodeId n, const std::vector<Name>& devices) {
  Name device;
  for (ValueId v : graph.inputs(graph.nodes[n])) {
    if (devices[v].empty() || devices[v] == device) continue;
    if (!device.empty())
      throw InvalidGraphError(
          fmt::format("operands on {} and on {}: {}", device.view(), devices[v].view(), graph.node_text(n)));
    device = devices[v];
  }
  return device;
}

}  // namespace

std::vector<Name> devices_of_values(const Graph& graph, const DeviceMap& map) {
  std::vector<Name> devices(graph.values.size());
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) {
    const std::string wish = map.of_value ? map.of_value(graph, v) : std::string();
    devices[v] = wish.empty() ? map.fallback : wish;
  }
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    Name device = device_of_operands(graph, n, devices);
    if (node.op->attrs == &attr_schema<ToDeviceAttrs>()) {
      const auto& attrs = *static_cast<const ToDeviceAttrs*>(graph.attributes(node));
      if (!device.empty() && device != attrs.from)
        throw InvalidGraphError(fmt::format("the operand is on {}: {}", device.view(), graph.node_text(n)));
      device = attrs.device;
    }
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) devices[v] = device;
  }
  return devices;
}

}  // namespace tapedeck
