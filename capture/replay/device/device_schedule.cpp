#include <tapedeck/capture/replay/device/device_schedule.h>

#include <tapedeck/capture/replay/device/device_memory.h>
#include <tapedeck/capture/replay/device/open_device.h>

namespace tapedeck {

namespace replay {

std::vector<DevicePart> device_parts(const Program& program) {
  std::vector<DevicePart> parts;
  const auto n = static_cast<std::int32_t>(program.instructions.size());
  for (std::int32_t i = 0; i < n; ++i) {
    const bool on_host = program.instructions[i].why_on_host != nullptr;
    if (on_host || parts.empty() || parts.back().on_host)
      parts.push_back({{i, i + 1}, on_host});
    else
      parts.back().instructions.end = i + 1;
  }
  return parts;
}

}  // namespace replay

DeviceSchedule device_schedule(const Plan& plan, const std::string& device) {
  const replay::BufferTable buffers(plan);
  const replay::Program program(plan, buffers, &kernels_of_device(device));
  DeviceSchedule schedule;
  for (const replay::DevicePart& part : replay::device_parts(program)) {
    const replay::Instruction& first = program.instructions[part.instructions.first];
    if (part.on_host)
      schedule.host_nodes.push_back({first.node, first.why_on_host});
    else
      schedule.calls += part.instructions.end - part.instructions.first;
    schedule.graphs += !part.on_host;
  }
  for (const replay::Instruction& instruction : program.instructions) {
    if (instruction.joined == 1) continue;
    schedule.joined_updates += instruction.joined;
    ++schedule.update_groups;
  }
  schedule.scratch_bytes = program.scratch_bytes;
  schedule.device_bytes = replay::DeviceLayout(buffers, program.scratch_bytes).bytes();
  return schedule;
}

std::int64_t planned_device_bytes(const Plan& plan, const std::string& device) {
  return device_schedule(plan, device).device_bytes;
}

}  // namespace tapedeck
