#include <tapedeck/capture/tool/reports/device_report.h>

#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/reports/json_parts.h>

#include <fmt/format.h>

namespace tapedeck::tool {

namespace {

std::vector<DeviceUse::OnHost> on_host(const Graph& g, const DeviceSchedule& schedule) {
  std::vector<DeviceUse::OnHost> nodes;
  for (const HostNode& h : schedule.host_nodes) nodes.push_back({h.node, g.node_text(h.node), h.why});
  return nodes;
}

std::string joined_text(std::int32_t updates, std::int32_t groups) {
  return fmt::format("{} of optimizers run together, in {}", plural(updates, "update"), plural(groups, "group"));
}

std::string host_text(const std::vector<DeviceUse::OnHost>& nodes) {
  if (nodes.empty()) return "  on the host    no node\n";
  std::string text;
  for (const DeviceUse::OnHost& node : nodes)
    text += fmt::format("  on the host    node {}, `{}`: {}\n", node.node, node.text, node.why);
  return text;
}

}  // namespace

std::optional<DeviceUse> device_use(const Executor& executor, const std::string& device) {
  if (device == "cpu") return std::nullopt;
  const DeviceSchedule schedule = device_schedule(executor.plan(), device);
  return DeviceUse{executor.device_counters(), schedule.graphs,        schedule.scratch_bytes,
                   schedule.joined_updates,    schedule.update_groups, on_host(executor.plan().graph, schedule)};
}

std::string device_text(const DeviceUse& use) {
  const DeviceCounters& c = use.counters;
  std::string text = fmt::format("  graphs         {} a step; {} of {}, {}\n", use.graphs, plural(c.captures, "capture"),
                                 plural(c.graph_nodes, "node"),
                                 c.graph_launches == 1 ? "1 launch" : fmt::format("{} launches", c.graph_launches));
  if (!c.without_graphs.empty()) text += fmt::format("  no graphs      {}\n", c.without_graphs);
  text += fmt::format("  copied         {} to the device, {} back; waited {}\n", human_size(c.bytes_to_device),
                      human_size(c.bytes_to_host), plural(c.synchronizations + c.input_waits, "time"));
  text += fmt::format("  steps          {}, {} of them launched ahead\n", c.steps, c.steps_ahead);
  text += fmt::format("  scratch        {}, in the peak\n", human_size(use.scratch_bytes));
  if (use.joined_updates > 0) text += "  updates        " + joined_text(use.joined_updates, use.update_groups) + "\n";
  return text + host_text(use.on_host);
}

Json device_json(const DeviceUse& use) {
  const DeviceCounters& c = use.counters;
  Json j = {{"graphs_per_step", use.graphs},
            {"steps", c.steps},
            {"graph_launches", c.graph_launches},
            {"graph_nodes", c.graph_nodes},
            {"captures", c.captures},
            {"failed_captures", c.failed_captures},
            {"instantiations", c.instantiations},
            {"kernel_calls", c.kernel_calls},
            {"host_nodes_run", c.host_nodes},
            {"steps_ahead", c.steps_ahead},
            {"synchronizations", c.synchronizations},
            {"input_waits", c.input_waits},
            {"bytes_to_device", c.bytes_to_device},
            {"bytes_to_host", c.bytes_to_host},
            {"allocated_bytes", c.allocated_bytes},
            {"scratch_bytes", use.scratch_bytes},
            {"joined_updates", use.joined_updates},
            {"update_groups", use.update_groups},
            {"without_graphs", c.without_graphs}};
  j["on_host"] = Json::array();
  for (const DeviceUse::OnHost& node : use.on_host)
    j["on_host"].push_back({{"node", node.node}, {"text", node.text}, {"why", node.why}});
  return j;
}

std::string device_explained(const Plan& plan, const std::string& device) {
  const DeviceSchedule schedule = device_schedule(plan, device);
  std::string text = fmt::format("on {}: {} a step, of {}; {} in all, {} of it scratch of kernels\n", device,
                                 plural(schedule.graphs, "CUDA graph"), plural(schedule.calls, "kernel"),
                                 human_size(schedule.device_bytes), human_size(schedule.scratch_bytes));
  if (schedule.joined_updates > 0)
    text += "  updates        " + joined_text(schedule.joined_updates, schedule.update_groups) + "\n";
  return text + host_text(on_host(plan.graph, schedule));
}

}  // namespace tapedeck::tool
