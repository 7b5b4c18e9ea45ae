// Inside an Executor: what executor.cpp (what comes in and goes out) and run.cpp (the run) share.
#pragma once

#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/monitors.h>
#include <tapedeck/capture/replay/partial_step.h>
#include <tapedeck/capture/replay/poison.h>
#include <tapedeck/capture/replay/program.h>
#include <tapedeck/capture/replay/segment_run.h>
#include <tapedeck/capture/replay/shared_memory.h>
#include <tapedeck/capture/replay/threads.h>
#include <tapedeck/engine/ir/error.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

namespace replay {
inline constexpr std::int32_t kNoStop = std::numeric_limits<std::int32_t>::max();
std::string listed(const std::vector<std::string>& names);  // "a, b", or "none"
}  // namespace replay

struct Executor::Impl : replay::Member {
  using StepRange = replay::StepRange;

  Impl(Plan p, const ExecutorOptions& options);
  // A plan of the same graph at other types, on the parent's memory. Throws TypeError where a buffer would have to grow and may
  // not.
  Impl(Plan p, const Impl& parent, bool allow_up_sizing);
  ~Impl() override;

  // ---- buffers ----
  std::int32_t find(const std::vector<std::string>& names, const char* kind, const std::string& name) const;
  void check_type(const char* kind, const std::string& name, const Type& wanted, const Tensor& value) const;
  void prepare();
  void allocate_buffers();
  void share_buffers(const Impl& parent, bool allow_up_sizing);
  void find_state();
  void join();
  void follow_memory();
  void* base_of(replay::BufferId buffer) const;
  void fill_constants();
  void set_base(replay::BufferId buffer, void* base);
  void set_input(std::int32_t slot, const Tensor& value);
  void set_state(std::int32_t slot, const Tensor& value);
  void bind_state(std::int32_t slot, const Tensor& value);
  void keep_outputs_in(const replay::StateValue& value) override;

  // ---- results ----
  Tensor read(ValueId v) const;
  Tensor read_state(std::int32_t slot) const;
  void note_versions();
  void heed_callers_writes();
  NodeId stale_reader(std::int32_t slot) const;
  bool written_by_caller(ValueId v) const;
  [[noreturn]] void gone_to_caller(ValueId v) const;
  [[noreturn]] void gone(ValueId v, const std::string& why) const;
  void keep_outputs_of(replay::BufferId buffer);
  Tensor output(std::size_t index) const;
  std::vector<Tensor> outputs() const;

  // ---- running (run.cpp) ----
  void check_ready(bool inputs) const;
  void touch_state();
  void note_written_state();
  void prepare_segments();
  void find_state_writers();
  bool nothing_to_share() const;
  static double cost_of(const Segment& segment);
  void run(const RunOptions* options);
  void start_step(bool inputs);
  void walk(const RunOptions* options, StepRange in_order = {});
  void hand_out(std::int32_t item) noexcept;
  void run_roots() noexcept;
  void spawn(std::int32_t segment) noexcept;
  void run_from(std::int32_t segment) noexcept;
  void run_segment(std::int32_t segment) noexcept;
  void run_steps(std::int32_t segment) noexcept;
  bool run_step(std::int32_t segment, std::int32_t step) noexcept;
  void note_fault(std::int32_t segment, NodeId node, std::int32_t stopped, std::exception_ptr thrown) noexcept;
  bool wrote_state() const;
  void tear_state();
  void drop_step();
  [[noreturn]] void fail();
  std::string fault_text(NodeId node, const std::string& what) const;

  // ---- runs that are watched (observed_run.cpp) ----
  void begin_observing(const RunOptions& options);
  void end_observing();
  void run_observed(std::int32_t segment) noexcept;
  void run_steps_timed(std::int32_t segment) noexcept;
  void run_watched(std::int32_t segment) noexcept;
  bool run_step_timed(std::int32_t segment, std::int32_t step) noexcept;
  bool run_step_poisoned(std::int32_t segment, std::int32_t step) noexcept;
  void check_dead_bytes();
  bool failed() const { return stop_at.load(std::memory_order_relaxed) != replay::kNoStop || !damage.empty(); }
  void monitors_changed();

  // ---- parts of a step (partial_step.cpp) ----
  bool under_way() const { return memory->step_of == this; }
  void claim_memory();
  void refuse_mid_step(const char* what);
  void need_parts();
  void run_part(bool one_by_one, const RunOptions* options);
  void run_phase(Phase phase, const RunOptions& options);
  const std::vector<std::int32_t>& phase_cut(Phase phase);
  bool reached(const std::vector<std::int32_t>& cut) const;
  std::int32_t run_in_order(std::int64_t n, NodeId last);
  void resume(const RunOptions& options);
  bool has_run(NodeId node) const;
  void check_unread(std::int32_t input) const;
  void check_computed(ValueId v) const;
  NodeId overwriter(ValueId v) const;
  ValueId find_value(const std::string& name) const;
  Tensor value(ValueId v);
  std::string due() const;

  const Plan plan;
  const replay::BufferTable table;
  std::vector<std::string> input_names, output_names;

  const ExecutorOptions options;
  Allocator& allocator = memory->count;
  std::vector<void*> bases;                    // by buffer; the arena's and state's as of the last run
  std::vector<std::uint64_t> state_stamps;     // by state slot: StateValue::written when the last run had begun to write
  std::vector<std::uint32_t> bound_versions;   // by state slot, of bound tensors at the end of the last run, or part of one
  std::vector<bool> written_in_step;           // by state slot: bound, and written by the caller in the middle of the step
  std::vector<bool> input_set, state_written;  // state_written: has an update that is not itself
  replay::Program program;
  bool moved = true;  // some base changed since the program was resolved

  replay::Threads threads;
  bool serial = true;                          // one thread runs it all
  std::unique_ptr<replay::SegmentRun[]> runs;  // by segment
  std::vector<std::int32_t> first_writer;      // by segment: its first step that writes state; past its end if none does
  struct StateWriter {
    std::int32_t segment = kNone, step = kNone;
  };
  std::vector<StateWriter> state_writers;              // by state slot: who writes it, if anyone does
  std::vector<std::int32_t> roots;                     // segments that wait for nothing
  char start = 0, finish = 0;                          // addresses that stand for the fork and the join of a run
  std::atomic<std::int32_t> stop_at{replay::kNoStop};  // lowest node known to be at fault
  std::string damage;                                  // to dead bytes, by whomever; written while nobody runs

  // Of this run.
  const StepRange* ranges = nullptr;  // by segment: the steps to run
  StepRange in_order;                 // segments, where they run one after the other
  bool observed = false;              // more is asked than to run
  Timeline* timeline = nullptr;
  std::int64_t start_ns = 0;
  replay::Gate gate;
  replay::Meter meter;
  double total_cost = 0;  // of all segments

  replay::Monitors monitors{plan.graph};
  std::vector<bool> watched;               // by segment; empty if nobody watches
  std::unique_ptr<replay::Poison> poison;  // with TAPEDECK_POISON
  std::unique_ptr<replay::Parts> parts;    // once a step was run in parts

  std::uint64_t seen_changes = ~std::uint64_t{0};  // of the memory, when state was last found ready
  bool has_outputs = false;
  std::vector<std::optional<Tensor>> kept_outputs;  // copies made because the bytes below were about to be set anew
  std::vector<bool> lost_outputs;                   // for which that was too late: the caller had written there
};

}  // namespace tapedeck
