// A run of which more is asked than to run: times of nodes, monitors, poison, cancelling, progress.
//
// A plain run knows nothing of this; it pays one branch for each segment. An observed run acts between segments, and node by
// node only in segments that are timed, poisoned, checked for NaN, or hold a node that a monitor watches; and in a part that
// can be paused, or whose step keeps the results of effects.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/gate.h>
#include <tapedeck/capture/replay/kept_step.h>
#include <tapedeck/capture/replay/memory/buffers.h>
#include <tapedeck/capture/replay/memory/poison.h>
#include <tapedeck/capture/replay/meter.h>
#include <tapedeck/capture/replay/monitors.h>
#include <tapedeck/capture/replay/pause.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/run_options.h>
#include <tapedeck/capture/replay/segments/run_segments.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::replay {

// Which part of a step a run covers; by default all of it.
struct RunExtent {
  const IndexRange* nodes = nullptr;  // by segment; null: all nodes
  IndexRange in_order;                // of segments; empty: on all threads
  std::int32_t nodes_done = 0;        // that ran in earlier parts
  bool wrote_state = false;           // in earlier parts
  Pause* pause = nullptr;             // of a part that is `in_order`; null: it is not paused
};

class ObservedRun final : public SegmentObserver {
 public:
  // `poison_level`: 0 for no poison. `check_nan`: a node that makes NaN or infinity is at fault. REQUIRES: all that is passed
  // by reference outlives this.
  ObservedRun(const Plan& plan, const Program& program, SegmentWalk& walk, const Buffers& buffers, KeptStep& kept,
              int poison_level, bool check_nan);

  std::int32_t add_monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options);
  void remove_monitor(std::int32_t id);

  // Poison looks at every step, so it begins with the step and not with the run. `blocks`: of the arena.
  void begin_step(const std::vector<void*>& blocks);
  bool has_filled(ValueId v) const { return poison_ && poison_->is_dead(v); }  // poison has filled the bytes of the value

  // One observed run is begin(), the walk, end(), and, unless it failed, tell_end().
  bool is_asked(const RunOptions* options, const RunExtent& extent) const;  // the run must be observed
  void begin(const RunOptions& options, const RunExtent& extent);
  void run_segment(std::int32_t segment) noexcept override;
  void end();
  bool stopped() const { return gate_.stopped(); }  // cancelled, or progress() has thrown
  // Ends the reports of progress, after a last report of 1 if `complete`. Throws the exception that progress() threw, if any.
  void tell_end(bool complete) { meter_.end(complete); }

  // Damage to dead bytes that no node was caught at; no node is blamed for it.
  bool damaged() const { return !damage_.empty(); }
  std::string take_damage();

 private:
  IndexRange nodes_of(std::int32_t segment) const;
  void run_one_by_one(std::int32_t segment) noexcept;
  void run_watched(std::int32_t segment) noexcept;
  bool run_timed(std::int32_t segment, std::int32_t i) noexcept;
  bool run_poisoned(std::int32_t segment, std::int32_t i) noexcept;
  bool run_checked(std::int32_t segment, std::int32_t i) noexcept;
  bool run_once(std::int32_t segment, std::int32_t i) noexcept;
  bool pauses_behind(std::int32_t segment, std::int32_t i) noexcept;
  void find_watched_segments();

  const Plan& plan_;
  const Program& program_;
  SegmentWalk& walk_;
  const Buffers& buffers_;
  KeptStep& kept_;
  Monitors monitors_;
  std::vector<bool> watched_;       // by segment; empty if there are no monitors
  std::unique_ptr<Poison> poison_;  // with TAPEDECK_POISON
  const bool check_nan_;            // TAPEDECK_CHECK_NAN when this was made
  std::string damage_;              // written while no node runs

  // Of this run.
  const IndexRange* nodes_ = nullptr;  // by segment; null: all
  Timeline* timeline_ = nullptr;
  Pause* pause_ = nullptr;
  std::int64_t start_ns_ = 0;
  Gate gate_;
  Meter meter_;
};

}  // namespace tapedeck::replay
