// The buffers of an executor: made or taken from the parent, filled with constants, followed when they move, and read.
//
//     chunk 0 of the arena   inputs      state       constants   output slots   chunks 1, 2, ... of the arena
//     shared memory          own         shared      own         own            shared memory
//
// Members of a family have one buffer for an input or a result if the older buffer is large enough for both.
#include <tapedeck/capture/replay/memory/buffers.h>

#include <tapedeck/capture/replay/memory/view_copies.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <cstring>
#include <utility>

namespace tapedeck::replay {

namespace {

// The buffer of the parent that stands for a buffer of the child; kNone if none does.
BufferId counterpart(const BufferTable& child, const BufferTable& parent, BufferId b) {
  if (b < child.first_constant) return b;  // arena, inputs, state: the same graph has the same
  if (b < child.first_output) return kNone;
  const BufferId p = parent.output(b - child.first_output);
  return p < parent.first_chunk ? p : kNone;
}

}  // namespace

Buffers::Buffers(const Plan& plan, const Member& member)
    : plan_(plan), member_(member), table_(plan), own_(table_.bytes.size()), bases_(table_.bytes.size()) {}

// ---- once ----

void Buffers::allocate() {
  for (BufferId b = 1; b < table_.count(); ++b)
    if (table_.bytes[b] >= 0 && !table_.is_state(b) && !table_.is_chunk(b))
      put(b, std::make_shared<Buffer>(member_.memory->count, table_.bytes[b]));
}

void Buffers::share(const Buffers& parent, bool allow_up_sizing) {
  for (BufferId b = 1; b < table_.count(); ++b) {
    if (table_.bytes[b] < 0 || table_.is_state(b) || table_.is_chunk(b)) continue;
    const BufferId p = counterpart(table_, parent.table_, b);
    if (p != kNone && parent.own_[p]->bytes() >= table_.bytes[b]) {
      put(b, parent.own_[p]);
    } else {
      if (p != kNone) check_growth(b, parent.own_[p]->bytes(), allow_up_sizing);
      put(b, std::make_shared<Buffer>(member_.memory->count, table_.bytes[b]));
    }
  }
}

void Buffers::check_arena(bool allow_up_sizing) const {
  for (std::int32_t c = 0; c < table_.chunks.count(); ++c)
    if (const std::int64_t there = member_.memory->block_bytes(c); table_.chunks.bytes(c) > there)
      check_growth(table_.chunk(c), there, allow_up_sizing);
}

void Buffers::check_growth(BufferId b, std::int64_t there, bool allow_up_sizing) const {
  if (allow_up_sizing) return;
  throw TypeError(fmt::format("{} needs {} bytes and there are {}; allow_up_sizing gives it fresh memory", name_of(b),
                              table_.bytes[b], there));
}

std::string Buffers::name_of(BufferId b) const {
  if (table_.is_chunk(b))
    return table_.chunks.count() == 1 ? "the arena" : fmt::format("chunk {} of the arena", table_.chunk_of(b));
  return b < table_.first_state ? fmt::format("input '{}'", plan_.graph.value_name(b - table_.input(0)))
                                : fmt::format("result {}", b - table_.first_output);
}

void Buffers::put(BufferId b, std::shared_ptr<Buffer> buffer) {
  bases_[b] = buffer->data();
  own_[b] = std::move(buffer);
}

void Buffers::fill_constants() {
  for (std::size_t c = 0; c < plan_.graph.constants.size(); ++c) {
    const BufferId b = table_.constant(static_cast<std::int32_t>(c));
    if (table_.bytes[b] > 0)
      std::memcpy(bases_[b], plan_.graph.constants[c].data.get(), static_cast<std::size_t>(table_.bytes[b]));
  }
}

// ---- before a step ----

void Buffers::write(BufferId b, const Tensor& value) {
  value.copy_to(bases_[b], static_cast<std::size_t>(table_.bytes[b]), dtype_size(value.dtype()));
}

void Buffers::follow_arena(const std::vector<void*>& blocks) {
  for (std::int32_t c = 0; c < table_.chunks.count(); ++c) set_base(table_.chunk(c), blocks[c]);
}

void Buffers::follow_state() {
  for (std::size_t s = 0; s < member_.state.size(); ++s)
    set_base(table_.state(static_cast<std::int32_t>(s)), member_.state[s]->base);
}

void Buffers::set_base(BufferId b, void* base) {
  moved_ |= bases_[b] != base;
  bases_[b] = base;
}

void Buffers::resolve(Program& program) {
  if (moved_) program.resolve(bases_);
  moved_ = false;
}

// ---- reading ----

void* Buffers::address(BufferId b) const {
  return table_.is_state(b) ? member_.state[b - table_.first_state]->base : bases_[b];
}

bool Buffers::is_bound_there(BufferId b) const { return table_.is_state(b) && member_.state[b - table_.first_state]->device(); }

std::vector<Tensor> Buffers::read_there(const std::vector<ValueId>& values) const {
  std::vector<DeviceCopies::Copied> copied;
  for (ValueId v : values) {
    const Type& type = plan_.graph.values[v].type;
    copied.push_back({type.numel() > 0 ? buffer_view_of(plan_, table_, v) : BufferView(), type});
  }
  return device_->copies_there(copied);
}

Tensor Buffers::read(ValueId v) const {
  const Type& type = plan_.graph.values[v].type;
  if (type.numel() == 0) return empty(type);
  BufferView from = buffer_view_of(plan_, table_, v);
  if (device_ && (table_.is_chunk(from.buffer) || is_bound_there(from.buffer))) return device_->read(from, type);
  fetch(from.buffer);
  from.view.data = static_cast<char*>(address(from.buffer)) + from.offset;
  return copy_of_view(from.view, type);
}

}  // namespace tapedeck::replay
