// Inside an Executor: what executor.cpp (what comes in and goes out) and executor_run.cpp (the run) share.
#pragma once

#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/executor_memory.h>
#include <tapedeck/capture/executor_program.h>
#include <tapedeck/capture/executor_threads.h>
#include <tapedeck/engine/error.h>

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
  Impl(Plan p, const ExecutorOptions& options);
  // A plan of the same graph at other types, on the parent's memory. Throws TypeError where a buffer would have to grow and may not.
  Impl(Plan p, const Impl& parent, bool allow_up_sizing);
  ~Impl() override { memory->leave(*this); }

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
  void mark_state_set(std::int32_t slot);
  void keep_outputs_in(const replay::StateValue& value) override;

  // ---- results ----
  Tensor read(ValueId v) const;
  Tensor read_state(std::int32_t slot) const;
  void keep_outputs_of(replay::BufferId buffer);
  Tensor output(std::size_t index) const;

  // ---- running ----
  void check_ready() const;
  void touch_state();
  void prepare_segments();
  void run(Timeline* timeline);
  void run_roots() noexcept;
  void spawn(std::int32_t segment) noexcept;
  void run_from(std::int32_t segment) noexcept;
  void run_steps(std::int32_t segment) noexcept;
  void run_steps_timed(std::int32_t segment) noexcept;
  bool run_step(std::int32_t segment, std::int32_t step) noexcept;
  void note_fault(std::int32_t segment, std::int32_t step) noexcept;
  [[noreturn]] void fail();
  std::string fault_text(NodeId node, const KernelFault& fault) const;

  const Plan plan;
  const replay::BufferTable table;
  std::vector<std::string> input_names, state_names, output_names;

  const ExecutorOptions options;
  Allocator& allocator = memory->count;
  std::vector<void*> bases;               // by buffer; the arena's and state's as of the last run
  std::vector<bool> input_set, state_written;     // state_written: has an update
  replay::Program program;
  bool moved = true;                      // some base changed since the program was resolved

  replay::Threads threads;
  std::vector<std::int32_t> waits_for;    // by segment: predecessors in the plan
  std::unique_ptr<std::atomic<std::int32_t>[]> waiting;  // predecessors that have not finished in this run
  std::unique_ptr<KernelFault[]> faults;  // by segment: a segment stops at its first
  std::vector<std::int32_t> stopped;      // by segment: first step that did not run
  std::vector<std::int32_t> roots;        // segments that wait for nothing
  char start = 0, finish = 0;             // addresses that stand for the fork and the join of a run
  std::atomic<std::int32_t> stop_at{replay::kNoStop};  // lowest node known to be at fault
  Timeline* timeline = nullptr;           // of this run
  std::int64_t start_ns = 0;

  std::uint64_t seen_changes = ~std::uint64_t{0};   // of the memory, when state was last found ready
  bool has_outputs = false;
  std::vector<std::optional<Tensor>> kept_outputs;  // copies made because the bytes below were about to be set anew
};

}  // namespace tapedeck
