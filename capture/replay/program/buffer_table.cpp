#include <tapedeck/capture/replay/program/buffer_table.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/strides.h>

#include <fmt/format.h>
#include <algorithm>

namespace tapedeck::replay {

BufferTable::BufferTable(const Plan& plan) : chunks(plan) {
  const Graph& g = plan.graph;
  bytes.push_back(chunks.bytes(0));
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) bytes.push_back(g.values[v].type.bytes());
  first_state = 1 + g.n_inputs;
  first_constant = first_state + g.n_state;
  first_output = first_constant + static_cast<BufferId>(g.constants.size());
  bytes.resize(static_cast<std::size_t>(first_output), -1);
  for (const Placement& p : plan.values)
    if (p.where == Where::constant) bytes[constant(p.slot)] = g.constants[p.slot].type.bytes();
  for (const Type& t : plan.output_slots) bytes.push_back(t.bytes());
  first_chunk = static_cast<BufferId>(bytes.size());
  for (std::int32_t c = 1; c < chunks.count(); ++c) bytes.push_back(chunks.bytes(c));
}

Address BufferTable::in_arena(std::int64_t offset) const {
  const std::int32_t c = chunks.of(offset);
  return {chunk(c), offset - chunks.start(c)};
}

BufferId BufferTable::of(const Placement& p) const {
  switch (p.where) {
    case Where::nowhere:
      return kNone;
    case Where::arena:
      return in_arena(p.offset).buffer;
    case Where::input:
      return input(p.slot);
    case Where::state:
      return state(p.slot);
    case Where::constant:
      return constant(p.slot);
    case Where::output:
      return output(p.slot);
  }
  return kNone;
}

BufferView buffer_view_of(const Plan& plan, const BufferTable& buffers, ValueId v) {
  const Placement& p = plan.values[v];
  const Type& type = plan.graph.values[v].type;
  BufferView w;
  w.buffer = buffers.of(p);
  // The offset and the strides of a value without elements may be any numbers.
  const bool has_elements = type.numel() > 0;
  if (has_elements) w.offset = p.where == Where::arena ? buffers.in_arena(p.offset).offset : p.offset;
  if (w.buffer == kNone && type.bytes() > 0)
    throw InvalidGraphError(fmt::format("the plan has no place for %{}: {}", plan.graph.value_name(v), to_string(type)));
  w.view.dtype = type.dtype;
  w.view.rank = type.shape.rank;
  std::copy_n(type.shape.sizes, type.shape.rank, w.view.sizes);
  if (p.dense || !has_elements)
    dense_strides(type.shape, w.view.strides);
  else
    std::copy_n(p.strides, type.shape.rank, w.view.strides);
  return w;
}

}  // namespace tapedeck::replay
