// The options of planning, as plain data.
#pragma once

#include <tapedeck/capture/plan/optimization_level.h>
#include <tapedeck/capture/plan/ordering.h>
#include <tapedeck/capture/plan/sharing.h>
#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct CostModel;
struct Plan;

// The strategies that come with the library. A strategy that is registered beside them has a further value, which
// strategy_named() finds (planner/rematerialize/strategy.h).
enum class Strategy : std::uint8_t { none, regions, greedy, automatic };
const char* strategy_name(Strategy strategy);  // "none" "regions" "greedy" "auto"
bool parse_strategy(std::string_view text, Strategy* strategy);

struct PlanOptions {
  std::int64_t budget = -1;    // bytes; -1 = none
  double budget_percent = -1;  // of the peak of strategy none; -1 = not given
  // Without a budget `automatic` means regions (honour the user's checkpoints), with one the best of all but exact.
  Strategy strategy = Strategy::automatic;
  std::vector<Wish> wishes = {};  // which values are kept and which are computed again, whatever the strategy
  // The alignment of values in the arena, a power of two; -1: the alignment of the device (default_alignment). The size of a
  // value's dtype is always respected. All values of a plan lie on one device, on which to_device is a copy. Plans can be made
  // for any device; executors run plans for the CPU.
  std::int64_t alignment = -1;
  DeviceType device = DeviceType::cpu;
  // The arena is allocated in chunks of at most this many bytes. A value or workspace that is larger gets a chunk of its own
  // size, which other values may share. 0: one block. Inputs, state, constants and outputs are blocks of their own in any case;
  // the memory inside a loop or branch is the workspace of its node.
  std::int64_t chunk_bytes = 0;
  OptimizationLevel level = OptimizationLevel::all;  // the passes that run first; no level changes a bit of a result
  Ordering ordering = Ordering::automatic;
  Sharing sharing = Sharing::all;
  // Steps of search for offsets where greedy placement misses the bound (planner/place/place.h). -1: by the size of the graph,
  // at most a second; without find_floor at most a fiftieth of the time of the step.
  std::int64_t place_work = -1;
  // A plan of nearly the same graph. Values with a name and size of that plan keep their offsets if the budget holds; without a
  // budget, if the peak grows by at most a fiftieth (the arena by a hundredth over greedy placement). The choice of the plan
  // does not depend on it. It has no effect with chunk_bytes, because the beginning of a chunk depends on all others, and on
  // values that are placed apart for several threads.
  std::shared_ptr<const Plan> near = {};
  bool find_floor = true;  // false: without a budget nothing is recomputed to find the floor, and floor_bytes is the peak
  // Segments (capture/planner/segments/cut_segments.h). The plan is valid for any number of threads and is made to run well on
  // `threads`.
  std::int32_t threads = 1;
  double segment_us = 50;     // a segment is closed once its nodes cost this much; 0: every node is a task of its own
  double dispatch_us = 0.15;  // the cost of starting a segment
  bool split_phases = false;  // no segment holds nodes of two phases: forward, backward and update can be run apart
  // With several threads, bytes may be placed so that branches need not wait for each other, if the peak grows by no more than
  // this factor and the budget still holds.
  double parallel_peak = 1.15;
  std::shared_ptr<const CostModel> costs = {};  // where microseconds come from (cost_model.h); null: built-in estimates
  const std::atomic<bool>* cancel = nullptr;    // checked between choices; throws Cancelled (engine/ir/error.h)
  std::function<void(double)> progress = {};    // 0..1, from the calling thread
};

// Offsets on a device are multiples of this number: 64 bytes (a cache line) on a CPU, 256 on a GPU, as in its own allocations.
std::int64_t default_alignment(DeviceType device);
std::int64_t alignment_of(const PlanOptions& options);

}  // namespace TAPEDECK_API
