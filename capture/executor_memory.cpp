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
  std::int64_t most = 0;
  for (const Member* m : members_) most = std::max(most, m->arena_bytes);
  wanted_ = most;
}

void* Memory::settle_arena() {
  const std::int64_t bytes = wanted_.load(std::memory_order_relaxed);
  const std::int64_t canaries = poison ? 2 * Poison::kCanary : 0;   // not the plan's, so not counted
  if (arena_.bytes() != bytes + canaries) {
    count.forget(std::max<std::int64_t>(arena_.bytes() - canaries, 0));
    arena_ = Buffer();
    source_ = std::make_unique<Allocator>();
    arena_ = Buffer(*source_, bytes + canaries);
    count.adopt(bytes);
  }
  return canaries ? static_cast<char*>(arena_.data()) + canaries / 2 : arena_.data();
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
