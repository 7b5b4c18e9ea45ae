// The faults of the instructions of a program, in memory that the device writes. They are read after a synchronisation.
#pragma once

#include <tapedeck/capture/replay/device/device_memory.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <memory>

namespace tapedeck::replay {

class DeviceFaults {
 public:
  // From now on the instructions report here. REQUIRES: the program outlives this.
  DeviceFaults(std::shared_ptr<kernels::cuda::DeviceRuntime> runtime, Program& program);

  const KernelFault& of(std::int32_t instruction) const { return faults_[instruction]; }
  // The faulty instruction of the lowest node; kNone if there is none.
  std::int32_t lowest() const;
  std::string text_of(std::int32_t instruction) const;  // "index out of range: 12"
  void clear();

 private:
  const Program& program_;
  const PinnedMemory memory_;
  KernelFault* const faults_;  // by instruction
};

}  // namespace tapedeck::replay
