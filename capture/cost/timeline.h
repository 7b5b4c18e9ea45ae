// When and where every node of one run ran. `--trace`, `--profile` and `bench` read it.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Nanoseconds since the run began.
struct Slice {
  NodeId node = kNone;
  std::int32_t segment = kNone;
  std::int32_t thread = 0;  // of the executor's threads, 0..threads-1
  std::int64_t start_ns = 0, end_ns = 0;
};

// Each slice contains a reading of the clock beside the work (some 20 ns). The sum of slices against run_ns shows the time that
// a timed run spent outside kernels. Quote times of a run without a timeline.
struct Timeline {
  std::vector<Slice>
      slices;  // one per kernel call, in no order that matters; nodes without a call (aliases, constants) have none
  std::int64_t run_ns = 0;  // the whole run
};

}  // namespace TAPEDECK_API
