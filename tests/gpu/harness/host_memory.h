// The stand-ins for a GPU share this: memory of the host, and work that is done when run() returns.
#pragma once

#include <tapedeck/tests/gpu/harness/device.h>

#include <cstdlib>
#include <cstring>

namespace tapedeck::gpu {

class HostMemory : public Device {
 public:
  unsigned char* allocate(std::size_t bytes) override {
    return static_cast<unsigned char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256));
  }
  void release(unsigned char* memory) override { std::free(memory); }
  void write(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  KernelFault* fault() override { return &fault_; }
  void wait() override {}

 private:
  KernelFault fault_;
};

}  // namespace tapedeck::gpu
