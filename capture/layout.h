// Where the bytes of a graph with clones lie: which values share bytes, from when to when they are needed, and their offsets.
#pragma once

#include <tapedeck/capture/plan.h>
#include <tapedeck/capture/rematerialize/rematerialize.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct Layout {
  std::vector<Placement> values;   // by value; `reason` is filled in by reasons.h
  std::vector<Scratch> workspace;  // by node
  std::vector<ValueId> root;       // by value: whose bytes it reads; itself unless it is a window
  std::int64_t arena_bytes = 0;
};

// Values share bytes if one is a window on the other, or an output takes over an operand that dies there; each such group is
// one buffer to place.
Layout lay_out(const Facts& facts, const ClonedGraph& cloned, std::int64_t alignment);

}  // namespace tapedeck
