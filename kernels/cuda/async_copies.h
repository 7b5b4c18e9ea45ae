// Copies from global to shared memory that run while their thread computes (cp.async). In the emulator nothing is copied before
// the wait, so that a kernel which reads too early finds no data there.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>

#ifndef __CUDACC__
#include <cstring>
#include <vector>
#endif

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// The copies of one thread. Other threads see them after the wait of this thread and a barrier.
class AsyncCopies {
 public:
  // Copies kBytes (8 or 16), or sets them to zero. Both addresses are aligned to kBytes. `from` is not read if `real` is false.
  template <int kBytes>
  TAPEDECK_DEVICE void begin(void* to, const void* from, bool real) {
    static_assert(kBytes == 8 || kBytes == 16);
#ifdef __CUDACC__
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (kBytes == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(real ? 16 : 0) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(from), "r"(real ? 8 : 0) : "memory");
#else
    pending_.push_back({to, real ? from : nullptr, kBytes});
#endif
  }
  // Waits for all copies that this thread began.
  TAPEDECK_DEVICE void wait() {
#ifdef __CUDACC__
    asm volatile("cp.async.wait_all;" ::: "memory");
#else
    for (const Copy& copy : pending_) {
      if (copy.from)
        std::memcpy(copy.to, copy.from, copy.bytes);
      else
        std::memset(copy.to, 0, copy.bytes);
    }
    pending_.clear();
#endif
  }

#ifndef __CUDACC__
 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> pending_;
#endif
};

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
