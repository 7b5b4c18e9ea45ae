// Where the bytes of a graph with clones lie: which values share bytes, from when to when they are needed, and their offsets.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/schedules/write_clones.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace tapedeck {

struct Layout {
  std::vector<Placement> values;   // by value; `reason` is filled in by plan/placement_reasons.h
  std::vector<Scratch> workspace;  // by node
  std::vector<ValueId> root;       // by value: whose bytes it reads; itself unless it is a window, or a part of what joins it
  std::int64_t arena_bytes = 0;
  bool near = false;                 // addresses were kept as Placing::near has them
  std::vector<std::int64_t> chunks;  // as in Plan
};

// Which segment runs each node, and when segments begin and end: moments of a simulated run.
struct SegmentTimes {
  std::vector<std::int32_t> segment_of;    // by node
  std::vector<std::int32_t> began, ended;  // by segment
};

// How offsets are looked for.
struct Placing {
  std::int64_t alignment = 64;    // at least, from the start of a chunk
  std::int64_t chunk_bytes = 0;   // as in PlanOptions
  std::int64_t work = 0;          // steps of search (planner/place/place.h) beyond greedy placement
  const Plan* near = nullptr;     // values keep the offsets that values of their names have there, if that costs little
  const Layout* start = nullptr;  // of the same graph, to improve on
  const std::atomic<bool>* cancel = nullptr;
  std::int64_t slack = 0;       // above the bound, and as good
  bool first_fit_only = false;  // of the greedy attempts
  int retries = 0;              // greedy attempts that go on from the last (planner/place/place.h)
};

// Values share bytes if one is a window on the other, if one is a part of the other, or an output takes over an operand that
// dies there; each such group is one buffer to place.
Layout lay_out(const Facts& facts, const ClonedGraph& cloned, const Placing& placing = {});

// The same for several threads: bytes go from one segment to another only if the first has ended before the second begins in
// the run that `times` describes, so that no segment waits for another's bytes longer than it did anyway. arena_bytes is -1 if
// the graph is too large for that (place_apart). Of `placing` alignment and chunk_bytes count.
Layout lay_out_apart(const Facts& facts, const ClonedGraph& cloned, const Placing& placing, const SegmentTimes& times);

}  // namespace tapedeck
