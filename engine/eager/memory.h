// The memory of eager tensors: the bytes in use, the most bytes that were in use, and a function that frees unused blocks.
#pragma once

#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

// Returns the bytes that all tensors of the process hold now and held at most. Rounding by the allocator is not counted, and
// neither is the memory of replays, which executors count (Executor::observed_peak_bytes). Thread safe.
inline MemoryStats memory_stats() { return Allocator::host().stats(); }

// Gives the memory of tensors that are gone back to the system. It is kept otherwise, for the next tensors. Returns its bytes.
inline std::int64_t trim_memory() { return Allocator::host().trim(); }

// The most bytes that tensors held while this object lives:
//     PeakMemory peak;
//     step();
//     std::printf("%lld bytes\n", static_cast<long long>(peak.bytes()));
// Objects nest: an outer one sees the peaks of the inner ones. They are of the whole process, so tensors of other threads
// count. Make and destroy them on one thread at a time.
class PeakMemory {
 public:
  PeakMemory() : before_(memory_stats()) { Allocator::host().reset_peak(); }
  ~PeakMemory() { Allocator::host().raise_peak(before_.peak_bytes); }
  PeakMemory(const PeakMemory&) = delete;

  std::int64_t bytes() const { return memory_stats().peak_bytes; }
  std::int64_t increase() const { return bytes() - before_.bytes_in_use; }  // above what was in use at the start

 private:
  MemoryStats before_;
};

}  // namespace TAPEDECK_API
