// A running sum over the threads of a block.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace movement {

// Shared memory of a scan: one sum for each warp.
struct WarpSums {
  unsigned of_warp[32];
};

// The sum of the values of all threads before this one; `total` gets the sum of all. Every thread of the block calls it; the
// number of threads is a multiple of 32.
TAPEDECK_DEVICE unsigned scan_block(unsigned value, WarpSums& sums, unsigned& total) {
  unsigned inclusive = value;
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const unsigned lane = lane_of_warp(), before = shuffle(inclusive, lane >= step ? lane - step : lane);
    if (lane >= step) inclusive += before;
  }
  if (lane_of_warp() == kWarp - 1) sums.of_warp[warp_of_block()] = inclusive;
  sync_block();
  unsigned earlier = 0;
  total = 0;
  for (unsigned w = 0; w < blockDim.x / kWarp; ++w) {
    if (w < warp_of_block()) earlier += sums.of_warp[w];
    total += sums.of_warp[w];
  }
  sync_block();
  return earlier + inclusive - value;
}

}  // namespace movement
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
