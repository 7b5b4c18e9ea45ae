#include <tapedeck/capture/replay/device/device_faults.h>

#include <tapedeck/kernels/cuda/fault_text.h>

#include <fmt/format.h>

#include <new>
#include <utility>

namespace tapedeck::replay {

DeviceFaults::DeviceFaults(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, Program& program)
    : program_(program),
      memory_(std::move(runtime), static_cast<std::int64_t>(program.instructions.size() * sizeof(KernelFault))),
      faults_(reinterpret_cast<KernelFault*>(memory_.data())) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    program.instructions[i].call.fault = new (&faults_[i]) KernelFault;
}

std::int32_t DeviceFaults::lowest() const {
  std::int32_t lowest = kNone;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (!faults_[i].what.load(std::memory_order_relaxed)) continue;
    if (lowest == kNone || program_.instructions[i].node < program_.instructions[lowest].node)
      lowest = static_cast<std::int32_t>(i);
  }
  return lowest;
}

std::string DeviceFaults::text_of(std::int32_t instruction) const {
  const KernelFault& fault = faults_[instruction];
  return fmt::format("{}: {}", kernels::cuda::fault_text(fault), fault.value.load());
}

void DeviceFaults::clear() {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    faults_[i].what = nullptr;
    faults_[i].value = 0;
  }
}

}  // namespace tapedeck::replay
