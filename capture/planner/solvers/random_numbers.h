// Numbers of a random stream that is the same on every machine and with every library (splitmix64: Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014).
#pragma once

#include <cstdint>

namespace tapedeck {

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }  // n > 0
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }                                           // [0, 1)

 private:
  std::uint64_t state_ = 0;
};

}  // namespace tapedeck
