// Random draws by Philox (philox.h): the work of one thread, in plain C++ without CUDA keywords, so that host tests run the
// same functions. A thread computes whole Philox blocks, four f32 or two f64 elements each. The bits equal those of the CPU
// kernels. Outputs are dense.
#pragma once

#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/philox.h>

#include <cstdint>

namespace tapedeck::kernels::cuda {

// The same stream as random_stream(). The operand rng lies in device memory, so the device mixes the key; the host computes the
// hash of the path.
TAPEDECK_HD inline RandomStream device_stream(const std::int64_t* rng, std::uint64_t path_hash) {
  const std::uint64_t key = splitmix64(splitmix64(static_cast<std::uint64_t>(rng[0])) ^ path_hash);
  return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}, static_cast<std::uint64_t>(rng[1])};
}

// Uniform number i of one block, in [0, 1).
TAPEDECK_HD inline float uniform_of(const PhiloxBlock& block, int i, float) { return uniform_f32(block.word[i]); }
TAPEDECK_HD inline double uniform_of(const PhiloxBlock& block, int i, double) {
  return uniform_f64(block.word[2 * i], block.word[2 * i + 1]);
}

// The arguments of a drawing kernel. `a` and `b` are the bounds of a uniform draw, or the mean and deviation of a normal draw.
template <class T>
struct Draw {
  const std::int64_t* rng;
  std::uint64_t path_hash;
  std::int64_t n;
  T* out;
  T a;
  T b;

  static constexpr int kPerBlock = 16 / sizeof(T);
  std::int64_t blocks() const { return (n + kPerBlock - 1) / kPerBlock; }
};

template <class T>
TAPEDECK_HD inline void uniform_thread(const Draw<T>& draw, std::int64_t first, std::int64_t step) {
  const RandomStream stream = device_stream(draw.rng, draw.path_hash);
  const T span = draw.b - draw.a;
  for (std::int64_t index = first; index * Draw<T>::kPerBlock < draw.n; index += step) {
    const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(index));
    for (int i = 0; i < Draw<T>::kPerBlock; ++i) {
      const std::int64_t at = index * Draw<T>::kPerBlock + i;
      const T x = draw.a + span * uniform_of(block, i, T{});
      if (at < draw.n)
        draw.out[at] = x < draw.b ? x : draw.a;  // rounding may reach the open upper bound; such a draw becomes the lower bound
    }
  }
}

template <class T>
TAPEDECK_HD inline void normal_thread(const Draw<T>& draw, std::int64_t first, std::int64_t step) {
  const RandomStream stream = device_stream(draw.rng, draw.path_hash);
  for (std::int64_t index = first; index * Draw<T>::kPerBlock < draw.n; index += step) {
    const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(index));
    for (int i = 0; i < Draw<T>::kPerBlock; i += 2) {
      const std::int64_t at = index * Draw<T>::kPerBlock + i;
      T pair[2];
      box_muller(uniform_of(block, i, T{}), uniform_of(block, i + 1, T{}), &pair[0], &pair[1]);
      if (at < draw.n) draw.out[at] = draw.a + draw.b * pair[0];
      if (at + 1 < draw.n) draw.out[at + 1] = draw.a + draw.b * pair[1];
    }
  }
}

template <class T>
struct Dropout {
  const std::int64_t* rng;
  std::uint64_t path_hash;
  std::int64_t n;
  const T* x;
  T* out;
  float p;  // the probability that an element becomes zero
  T scale;  // 1 / (1 - p)

  static constexpr int kPerBlock = 4;  // one word per element, for every type
  std::int64_t blocks() const { return (n + kPerBlock - 1) / kPerBlock; }
};

template <class T>
TAPEDECK_HD inline void dropout_thread(const Dropout<T>& drop, std::int64_t first, std::int64_t step) {
  const RandomStream stream = device_stream(drop.rng, drop.path_hash);
  for (std::int64_t index = first; index * Dropout<T>::kPerBlock < drop.n; index += step) {
    const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(index));
    for (int i = 0; i < Dropout<T>::kPerBlock; ++i) {
      const std::int64_t at = index * Dropout<T>::kPerBlock + i;
      if (at < drop.n) drop.out[at] = uniform_f32(block.word[i]) >= drop.p ? drop.x[at] * drop.scale : T(0);
    }
  }
}

}  // namespace tapedeck::kernels::cuda
