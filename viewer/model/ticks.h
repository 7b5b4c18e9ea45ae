// Round numbers along an axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

struct Tick {
  double at = 0;
  std::string label;
};

// Ticks on [low, high], at most `most` of them (REQUIRES most >= 1), steps of 1, 2 or 5 times a power of ten.
std::vector<Tick> count_ticks(double low, double high, int most);  // whole numbers

struct ByteAxis {
  std::vector<Tick> ticks;  // labels are bare numbers in `unit`
  std::string unit;         // "MiB"
};
// `extent` picks the unit, so that the unit stays while a person zooms in.
ByteAxis byte_ticks(double low, double high, std::int64_t extent, int most);

}  // namespace tapedeck::viewer
