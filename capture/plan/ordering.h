// Which orders of a graph's nodes the planner may choose from.
#pragma once

#include <cstdint>

namespace tapedeck {

enum class Ordering : std::uint8_t {
  recorded,   // as the tape has it
  automatic,  // whichever of the tape's, several list schedules and what search makes of them keeps the fewest bytes alive
};

}  // namespace tapedeck
