// The stream of random numbers of an op (philox.h), where the random state lies in memory of the device.
#pragma once

#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/philox.h>

#include <cstdint>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// The same stream as random_stream(). The device mixes the key; the host computes the hash of the path.
TAPEDECK_DEVICE RandomStream device_stream(const std::int64_t* rng, std::uint64_t path_hash) {
  const std::uint64_t key = splitmix64(splitmix64(static_cast<std::uint64_t>(rng[0])) ^ path_hash);
  return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}, static_cast<std::uint64_t>(rng[1])};
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
