// Ticks at round numbers along an axis.
#pragma once

#include <tapedeck/viewer/words/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// One tick: its place on the axis and its label.
struct Tick {
  double at = 0;
  std::string label;
};

// At most `most` ticks on [low, high], with steps of 1, 2 or 5 times a power of ten. REQUIRES most >= 1.
std::vector<Tick> count_ticks(double low, double high, int most);  // ticks at whole numbers

// The ticks of an axis of bytes, and the unit of their labels.
struct ByteAxis {
  std::vector<Tick> ticks;  // the labels are numbers in `unit`, without the unit
  std::string unit;         // "MiB"
};
// Ticks of a byte axis in the unit of its picture, which stays when a person zooms in.
ByteAxis byte_ticks(double low, double high, const ByteUnit& unit, int most);

// The ticks of an axis of time, and the unit of their labels.
struct TimeTicks {
  std::vector<Tick> ticks;  // at microseconds; the labels are numbers in `unit`
  std::string unit;         // "us", "ms" or "s", by the length of the whole axis
};
TimeTicks time_ticks(double low, double high, double extent_us, int most);

}  // namespace tapedeck::viewer
