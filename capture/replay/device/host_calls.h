// Runs instructions of a device's program on the host: the bytes of the operands come to the host, the kernel of the CPU runs
// there, and the bytes of the results go back.
#pragma once

#include <tapedeck/capture/replay/device/device_queue.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <vector>

namespace tapedeck::replay {

class HostCalls {
 public:
  // REQUIRES: both outlive this, and the addresses in the program do not change any more. `alone`: kernels use one thread.
  HostCalls(const Program& program, DeviceQueue& queue, bool alone);

  // One call is fetch(), a synchronisation by the caller, and run(). Only run() throws the exceptions of the kernel.
  void fetch(std::int32_t instruction);
  void run(std::int32_t instruction);

 private:
  // A view of the call, with the copy of the bytes that it reaches.
  struct Copy {
    void* on_device = nullptr;  // the first of the bytes
    char* on_host = nullptr;
    std::int64_t bytes = 0;
    bool comes = false, goes = false;  // to the host, and back
  };

  void lay_out(const KernelCall& call);
  std::int64_t room_for(const KernelCall& call) const;

  const Program& program_;
  DeviceQueue& queue_;
  const bool alone_;
  Allocator memory_;
  Buffer staging_, workspace_;
  std::vector<View> views_;
  std::vector<Copy> copies_;  // by view
};

}  // namespace tapedeck::replay
