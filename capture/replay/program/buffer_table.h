// The numbers of the buffers that a replay works on, and how a value lies in its buffer.
//
// Buffers are numbered in this order:
//     the first chunk of the arena | inputs | state | constants | output slots | the other chunks of the arena
#pragma once

#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <vector>

namespace tapedeck::replay {

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
  BufferId count() const { return static_cast<BufferId>(bytes.size()); }
  bool is_state(BufferId b) const { return b >= first_state && b < first_constant; }
  bool is_chunk(BufferId b) const { return b == 0 || b >= first_chunk; }
  std::int32_t chunk_of(BufferId b) const { return b == 0 ? 0 : b - first_chunk + 1; }  // REQUIRES: is_chunk(b)
  BufferId of(const Placement& p) const;                                                // kNone for Where::nowhere
  Address in_arena(std::int64_t offset) const;                                          // of a byte of the plan's arena

  BufferId first_state = 0, first_constant = 0, first_output = 0;
  BufferId first_chunk = 0;  // the second chunk of the arena
  ArenaChunks chunks;
  std::vector<std::int64_t> bytes;  // by buffer; -1 for constants that no node of the plan names
};

// A view into a buffer. `view.data` is null until the address of the buffer is known.
struct BufferView {
  View view;
  BufferId buffer = kNone;
  std::int64_t offset = 0;  // bytes
};

// The view that the placement of a value describes. Throws InvalidGraphError if the value has bytes but no place.
BufferView buffer_view_of(const Plan& plan, const BufferTable& buffers, ValueId v);

}  // namespace tapedeck::replay
