// A plan lowered to what a replay walks: an array of kernel calls whose views are resolved, cut into segments.
//
// Lowering happens once, at construction. The addresses of buffers are filled in by resolve(), and again only if one of them
// moves (a state value bound to another tensor), so that a run neither looks anything up nor allocates.
//
// Aliases, constants and joins of what lies in place need no call: an alias is a window on bytes that are there already, a
// constant was copied when the executor was made. A view that the plan gave bytes of its own becomes a copy.
#pragma once

#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck::replay {

class ControlStep;

// Buffers are numbered: the arena's first chunk, then inputs, state, constants and output slots, then the arena's other chunks.
using BufferId = std::int32_t;

struct Address {
  BufferId buffer = kNone;
  std::int64_t offset = 0;  // bytes from its start
};

struct BufferTable {
  explicit BufferTable(const Plan& plan);

  BufferId input(std::int32_t slot) const { return 1 + slot; }
  BufferId state(std::int32_t slot) const { return first_state + slot; }
  BufferId constant(std::int32_t slot) const { return first_constant + slot; }
  BufferId output(std::int32_t slot) const { return first_output + slot; }
  BufferId chunk(std::int32_t c) const { return c == 0 ? 0 : first_chunk + c - 1; }
  bool is_state(BufferId b) const { return b >= first_state && b < first_constant; }
  bool is_chunk(BufferId b) const { return b == 0 || b >= first_chunk; }
  std::int32_t chunk_of(BufferId b) const { return b == 0 ? 0 : b - first_chunk + 1; }  // REQUIRES: is_chunk(b)
  BufferId of(const Placement& p) const;                                                // kNone for Where::nowhere
  Address in_arena(std::int64_t offset) const;                                          // of a byte of the plan's arena

  BufferId first_state = 0, first_constant = 0, first_output = 0;
  BufferId first_chunk = 0;  // the arena's second
  ArenaChunks chunks;
  std::vector<std::int64_t> bytes;  // by buffer; -1 for constants that no node of the plan names
};

// A window on a buffer: `view.data` is filled in by Program::resolve().
struct Window {
  View view;
  BufferId buffer = kNone;
  std::int64_t offset = 0;  // bytes
};

// The window a value's placement describes. Throws InvalidGraphError if the value has bytes but no place.
Window window_of(const Plan& plan, const BufferTable& buffers, ValueId v);

// A step of the replay: one kernel call.
struct Step {
  Kernel kernel = nullptr;
  NodeId node = kNone;
  bool intra_op = true;  // may use idle threads
  KernelCall call;
};

struct StepRange {
  std::int32_t first = 0, end = 0;
};

struct Program {
  // Throws InvalidGraphError naming the node if the plan hands a kernel what it cannot take, and DeviceError for an op without
  // a CPU kernel. REQUIRES: check_plan(plan) found nothing; `plan` outlives the program (attributes are read in place).
  Program(const Plan& plan, const BufferTable& buffers);

  ~Program();

  void resolve(const std::vector<void*>& bases);  // by buffer

  std::vector<Step> steps;                            // segment by segment, so not always in the order of nodes
  std::vector<StepRange> segments;                    // by segment of the plan
  std::vector<std::int32_t> state_writers;            // steps that write the bytes of a state value, ascending
  std::vector<std::unique_ptr<ControlStep>> control;  // of the nodes with regions

 private:
  struct Pending {  // of a step, until the views stop moving
    std::int32_t first_view;
    Address workspace;
  };
  friend class Lowering;

  std::vector<View> views_;
  std::vector<Address> addresses_;  // by view
  std::vector<Pending> pending_;    // by step
};

}  // namespace tapedeck::replay
