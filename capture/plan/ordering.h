// Which orders of a graph's nodes the planner may choose from.
#pragma once

#include <cstdint>

namespace tapedeck {

enum class Ordering : std::uint8_t {
  recorded,   // the order of the tape
  automatic,  // the order that keeps the fewest bytes alive: of the tape, of several list schedules, or found by search
};

}  // namespace tapedeck
