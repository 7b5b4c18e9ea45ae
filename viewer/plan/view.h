// The part of the plan that is in view: a range of the schedule (shared by all pictures) and a range of addresses.
#pragma once

#include <algorithm>

namespace tapedeck::viewer {

// An interval of a coordinate that is in view. `share` is a fraction of the interval, 0 at `low` and 1 at `high`.
struct Range {
  double low = 0, high = 1;

  double size() const { return high - low; }
  double at(double share) const { return low + size() * share; }

  // Zooms so that the point at the fraction `share` of the range stays in place. A factor below 1 zooms in.
  void zoom(double share, double factor, double least_size) {
    const double fixed = at(share), wanted = std::max(size() * factor, least_size);
    low = fixed - wanted * share;
    high = low + wanted;
  }
  void pan(double share) {
    const double by = size() * share;
    low += by;
    high += by;
  }
  // Moves the range inside [least, most]. A range that is wider becomes [least, most].
  void clamp(double least, double most) {
    if (size() >= most - least) {
      low = least;
      high = most;
    } else if (low < least) {
      high += least - low;
      low = least;
    } else if (high > most) {
      low -= high - most;
      high = most;
    }
  }
  bool operator==(const Range& o) const { return low == o.low && high == o.high; }
};

// Both ranges that are in view.
struct PlanView {
  Range time;     // positions on the axis of time (time_axis.h)
  Range address;  // bytes; external buffers lie below the arena
  bool operator==(const PlanView& o) const { return time == o.time && address == o.address; }
};

}  // namespace tapedeck::viewer
