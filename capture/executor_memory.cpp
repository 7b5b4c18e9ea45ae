#include <tapedeck/capture/executor_memory.h>

#include <tapedeck/capture/executor_poison.h>
#include <tapedeck/engine/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::replay {

// ---- a state value ----

void StateValue::own() {
  if (bound.defined() || base) return;
  bytes_ = Buffer(count_, type.bytes());
  base = bytes_.data();
}

void StateValue::bind(Tensor tensor) {
  void* const data = tensor.mutable_data();
  release();
  count_.adopt(tensor.bytes());
  bound = std::move(tensor);
  base = data;
}

void StateValue::release() {
  if (bound.defined()) count_.forget(bound.bytes());
  bound = Tensor();
  bytes_ = Buffer();
  base = nullptr;
}

// ---- state ----

std::shared_ptr<StateValue> Memory::state_apart(Name name, const Type& type, Name graph) {
  return std::make_shared<StateValue>(count, name, type, graph);
}

std::shared_ptr<StateValue> Memory::state_named(Name name, const Type& type, Name graph) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<StateValue>& known = named_[name.str()];
  std::shared_ptr<StateValue> value = known.lock();
  if (!value) known = value = state_apart(name, type, graph);
  if (value->type != type)
    throw TypeError(fmt::format("state '{}' cannot be shared: it is {} in '{}' and {} in '{}'", name.view(), to_string(value->type),
                                value->graph.view(), to_string(type), graph.view()));
  return value;
}

void Memory::point_at(Member& member, std::size_t slot, const Tensor& tensor) {
  Tensor handle = tensor;
  const void* const base = handle.mutable_data();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<StateValue>& mine = member.state[slot];
  mine = state_apart(mine->name, handle.type(), member.name);  // lets go of the old bytes before the new ones are counted
  std::weak_ptr<StateValue>& known = bound_[base];
  const std::shared_ptr<StateValue> value = base ? known.lock() : nullptr;
  // Whoever was bound there may have moved on since, and one tensor may be read as another type.
  if (value && value->base == base && value->type == mine->type) return void(mine = value);
  mine->bind(std::move(handle));
  known = mine;
}

// ---- members ----

void Memory::join(Member& member) {
  const std::lock_guard lock(mutex_);
  members_.push_back(&member);
  returning_ += member.returns_state;
  want();
}

void Memory::leave(Member& member) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, &member);
  const Member* self = &member;
  arena_user.compare_exchange_strong(self, nullptr);
  returning_ -= member.returns_state;
  want();
  member.state.clear();
  std::erase_if(named_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(bound_, [](const auto& entry) { return entry.second.expired(); });
}

void Memory::want() {
  wanted_.assign(1, 0);   // also where there is no member
  for (const Member* m : members_) {
    if (m->chunks.size() > wanted_.size()) wanted_.resize(m->chunks.size(), 0);
    for (std::size_t i = 0; i < m->chunks.size(); ++i) wanted_[i] = std::max(wanted_[i], m->chunks[i]);
  }
  ++wants_;
}

std::int64_t Memory::block_bytes(std::int32_t block) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(block) < wanted_.size() ? wanted_[static_cast<std::size_t>(block)] : 0;
}

const std::vector<void*>& Memory::settle_arena() {
  if (settled_ == wants_.load(std::memory_order_relaxed)) return bases_;
  std::vector<std::int64_t> wanted;
  std::uint64_t wants = 0;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
    wants = wants_.load();
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {   // what is outgrown goes before anything comes
    if (!blocks_[i] || (i < wanted.size() && blocks_[i]->bytes == wanted[i])) continue;
    arena_user = nullptr;   // what was computed there is gone, whether or not other bytes are to be had
    count.forget(blocks_[i]->bytes);
    blocks_[i].reset();
  }
  blocks_.resize(wanted.size());
  bases_.assign(wanted.size(), nullptr);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!blocks_[i]) blocks_[i] = make_block(i, wanted);
    bases_[i] = blocks_[i]->base;
  }
  settled_ = wants;
  return bases_;
}

std::unique_ptr<Memory::Block> Memory::make_block(std::size_t i, const std::vector<std::int64_t>& wanted) {
  const std::int64_t canary = poison ? Poison::kCanary : 0;   // not the plan's, so not counted
  auto block = std::make_unique<Block>();
  try {
    block->buffer = Buffer(block->source, wanted[i] + 2 * canary);
  } catch (const ExecutionError& e) {
    const std::string which = wanted.size() == 1 ? "the arena" : fmt::format("chunk {} of {} of the arena", i, wanted.size());
    throw ExecutionError(fmt::format("{}, {} bytes, cannot be had: {}", which, wanted[i], e.what()));
  }
  block->bytes = wanted[i];
  block->base = block->buffer.data() ? static_cast<char*>(block->buffer.data()) + canary : nullptr;
  count.adopt(block->bytes);
  return block;
}

void Memory::keep_outputs_in(const StateValue& value) {
  const std::lock_guard lock(mutex_);
  for (Member* m : members_)
    if (m->returns_state) m->keep_outputs_in(value);
}

// ---- one at a time ----

void Busy::refuse(const char* what, Name member) const {
  const Name user = memory_.user_.load(std::memory_order_relaxed);
  throw ExecutionError(user.empty() || user == member
                           ? fmt::format("{}: the executor of '{}', or one that shares its memory, is in use by another thread", what, member.view())
                           : fmt::format("{}: the executor of '{}' cannot be used now: '{}', which shares its memory, is in use by another thread", what,
                                         member.view(), user.view()));
}

}  // namespace tapedeck::replay
