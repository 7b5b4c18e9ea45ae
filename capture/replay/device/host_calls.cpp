#include <tapedeck/capture/replay/device/host_calls.h>

#include <tapedeck/capture/replay/memory/view_copies.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <optional>

namespace tapedeck::replay {

namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t aligned_for_host(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

const View& view_at(const KernelCall& call, std::int32_t k) {
  return k < call.n_inputs ? call.inputs[k] : call.outputs[k - call.n_inputs];
}

}  // namespace

HostCalls::HostCalls(const Program& program, DeviceQueue& queue, bool alone) : program_(program), queue_(queue), alone_(alone) {
  std::int64_t staging = 0, workspace = 0;
  for (const Instruction& instruction : program.instructions) {
    if (!instruction.why_on_host) continue;
    staging = std::max(staging, room_for(instruction.call));
    workspace = std::max(workspace, static_cast<std::int64_t>(instruction.call.workspace_bytes));
  }
  staging_ = Buffer(memory_, staging);
  workspace_ = Buffer(memory_, workspace);
}

std::int64_t HostCalls::room_for(const KernelCall& call) const {
  std::int64_t bytes = 0;
  for (std::int32_t k = 0; k < call.n_inputs + call.n_outputs; ++k) bytes += aligned_for_host(reach_of(view_at(call, k)).bytes);
  return bytes;
}

// A result with gaps comes too, because its bytes go back as one range.
void HostCalls::lay_out(const KernelCall& call) {
  views_.clear();
  copies_.clear();
  char* at = static_cast<char*>(staging_.data());
  for (std::int32_t k = 0; k < call.n_inputs + call.n_outputs; ++k) {
    View view = view_at(call, k);
    const Reach reach = reach_of(view);
    Copy copy;
    copy.bytes = reach.bytes;
    copy.on_host = at;
    copy.goes = k >= call.n_inputs;
    copy.comes = !copy.goes || !view.dense();
    if (reach.bytes > 0) {
      copy.on_device = static_cast<char*>(view.data) - reach.before;
      view.data = at + reach.before;
      at += aligned_for_host(reach.bytes);
    }
    views_.push_back(view);
    copies_.push_back(copy);
  }
}

void HostCalls::fetch(std::int32_t instruction) {
  lay_out(program_.instructions[instruction].call);
  for (const Copy& copy : copies_)
    if (copy.comes) queue_.download(copy.on_host, copy.on_device, copy.bytes);
}

void HostCalls::run(std::int32_t instruction) {
  const Instruction& i = program_.instructions[instruction];
  KernelCall call = i.call;
  call.inputs = views_.data();
  call.outputs = views_.data() + call.n_inputs;
  call.workspace = call.workspace_bytes > 0 ? workspace_.data() : nullptr;
  call.stream = nullptr;
  std::optional<kernels::OneThreadScope> alone;
  if (alone_) alone.emplace();
  i.kernel(call);
  for (const Copy& copy : copies_)
    if (copy.goes) queue_.upload(copy.on_device, copy.on_host, copy.bytes);
}

}  // namespace tapedeck::replay
