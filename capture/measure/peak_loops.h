// Loops whose speed is a peak of the processor: multiplications with additions on registers, and passes over an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck {

// One variant of the loops.
struct PeakLoops {
  const char* name;        // of the instructions: "avx512", "avx2", "portable"
  double flops_per_round;  // of `fused`
  // Does so many rounds of multiplications with additions, in several chains: each chain begins with its number, from 0, and
  // a round makes c * 0.5 + 1 of every element c. Returns the sum of all elements.
  float (*fused)(std::int64_t rounds);
  // Reads all bytes. Returns the exclusive or of all words.
  std::uint64_t (*read)(const std::byte* bytes, std::int64_t count);
  // Adds one to every word, in place.
  void (*update)(std::byte* bytes, std::int64_t count);
};

// The `count` of `read` and `update` is a multiple of this, and the bytes lie at a multiple of 64. A word has 64 bits.
inline constexpr std::int64_t kPeakLoopStep = 256;

// The variants that this processor runs, the widest first.
std::vector<PeakLoops> peak_loops();

}  // namespace tapedeck
