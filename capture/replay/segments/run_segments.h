// The walk of one run over the segments of a plan, on one thread or on several. The hot path of a replay: it allocates nothing,
// throws nothing and takes no lock.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/program/program.h>
#include <tapedeck/capture/replay/segments/faults.h>
#include <tapedeck/capture/replay/segments/segment_state.h>
#include <tapedeck/capture/replay/segments/threads.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <vector>

namespace tapedeck::replay {

// Runs the segments in place of the plain loop, in a run that is observed (observed_run.h).
class SegmentObserver {
 public:
  virtual void run_segment(std::int32_t segment) noexcept = 0;

 protected:
  ~SegmentObserver() = default;
};

class SegmentWalk {
 public:
  // REQUIRES: `plan` and `program` outlive this. Faults of the calls in `program` are reported here from now on.
  SegmentWalk(const Plan& plan, Program& program, int threads);

  // Which instructions of each segment the next runs cover. limit(nullptr): all of them. REQUIRES: `ranges` stays as it is
  // until the next limit().
  void limit(const IndexRange* ranges);
  // Runs the segments in their order by the plan: on all threads, or, if `in_order` holds segments, these one after the other.
  // Afterwards failed() and has_written() describe the run. `observer` may be null.
  void run(SegmentObserver* observer, IndexRange in_order);

  // ---- for an observer, from the thread that runs the segment ----
  IndexRange range(std::int32_t segment) const { return ranges_[segment]; }
  bool writes_state(std::int32_t segment) const { return first_writer_[segment] < ranges_[segment].end; }
  // The first instruction of the segment that writes state; past the end of the segment if none does.
  std::int32_t first_writer(std::int32_t segment) const { return first_writer_[segment]; }
  void run_instructions(std::int32_t segment) noexcept;
  bool run_instruction(std::int32_t segment, std::int32_t i) noexcept;  // false if the segment stops here
  // A node below this one is at fault, so this one must not start.
  bool is_stopped_before(NodeId node) const noexcept { return node > stop_at_.load(std::memory_order_relaxed); }
  void stop(std::int32_t segment, std::int32_t i) noexcept { runs_[segment].stopped = i; }  // i: the first that has not run
  void note_fault(std::int32_t segment, NodeId node, std::int32_t stopped, std::exception_ptr thrown) noexcept;
  int thread() const { return serial_ ? 0 : threads_.index(); }

  // ---- after a run ----
  bool failed() const { return stop_at_.load(std::memory_order_relaxed) != kNoStop; }
  Fault take_fault();                         // of the lowest faulty node. No fault is known any more after that
  bool wrote_state() const;                   // the step so far has written some state
  bool has_written(std::int32_t slot) const;  // the last run has written this state
  void clear_faults();                        // every segment is as before a whole run
  void forget_stops();                        // every segment counts as run to its end

  static double cost_of(const Segment& segment);  // microseconds
  double total_cost() const { return total_cost_; }

 private:
  static constexpr std::int32_t kNoStop = std::numeric_limits<std::int32_t>::max();
  struct StateWriter {
    std::int32_t segment = kNone, instruction = kNone;
  };

  void prepare_segments(const Plan& plan, Program& program);
  void find_state_writers(const Plan& plan);
  bool nothing_to_share(const Plan& plan) const;
  std::int32_t count() const { return static_cast<std::int32_t>(first_writer_.size()); }
  void hand_out(std::int32_t item) noexcept;
  void run_roots() noexcept;
  void spawn(std::int32_t segment, std::int32_t& kept) noexcept;
  void run_from(std::int32_t segment, std::int32_t kept) noexcept;
  void run_segment(std::int32_t segment) noexcept;

  // The state of a run comes first: the loop over instructions reads nothing below it.
  const Instruction* instructions_;     // of the program
  const IndexRange* ranges_;            // by segment: the instructions to run
  std::unique_ptr<SegmentRun[]> runs_;  // by segment
  SegmentObserver* observer_ = nullptr;
  bool serial_ = true;                          // one thread runs it all
  std::atomic<std::int32_t> stop_at_{kNoStop};  // the lowest node known to be at fault
  IndexRange in_order_;                         // of segments, where they run one after the other

  const Program& program_;
  Threads threads_;
  std::vector<std::int32_t> roots_;         // segments that wait for nothing
  std::vector<std::int32_t> first_writer_;  // by segment: its first instruction that writes state; past its end if none does
  std::vector<StateWriter> state_writers_;  // by state slot: the instruction that writes it, if there is one
  double total_cost_ = 0;                   // of all segments
  char start_ = 0, finish_ = 0;             // their addresses stand for the fork and the join of a run
};

}  // namespace tapedeck::replay
