// Memory: which state values are one, which of them have bytes in common, and how large the blocks of the arena are.
//
//     member      chunks           blocks of the arena
//     train       100, 40          max(100, 60) = 100
//     infer       60               max(40)      = 40
#include <tapedeck/capture/replay/memory/shared_memory.h>

#include <tapedeck/capture/replay/memory/poison.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tapedeck::replay {

// ---- state ----

std::shared_ptr<StateValue> Memory::state_apart(Name name, const Type& type, Name graph) {
  return std::make_shared<StateValue>(count, name, type, graph);
}

std::shared_ptr<StateValue> Memory::state_named(Name name, const Type& type, Name graph) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<StateValue>& known = named_[name.str()];
  std::shared_ptr<StateValue> value = known.lock();
  if (!value) known = value = state_apart(name, type, graph);
  value->named = true;
  if (value->type != type)
    throw TypeError(fmt::format("state '{}' cannot be shared: it is {} in '{}' and {} in '{}'", name.view(),
                                to_string(value->type), value->graph.view(), to_string(type), graph.view()));
  return value;
}

// REQUIRES: the mutex is held.
void Memory::check_apart(const Member& member) const {
  if (!overlapping_.load(std::memory_order_relaxed)) return;
  const State& state = member.state;
  for (std::size_t i = 0; i < state.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (state[i]->overlaps(*state[j]))
        throw UsageError(fmt::format("'{}' cannot have state '{}' and '{}': they are bound to the same bytes",
                                     member.name.view(), member.state_names[j], member.state_names[i]));
}

void Memory::check_apart(const Member& member, std::size_t slot, const Tensor& tensor) const {
  const std::lock_guard lock(mutex_);
  const auto check = [&](const Member& m, std::size_t own) {
    for (std::size_t other = 0; other < m.state.size(); ++other)
      if (other != own && m.state[other]->overlaps(bytes_of(tensor), tensor.bytes()))
        throw UsageError(fmt::format("state '{}' cannot be bound to bytes that '{}' is bound to{}", m.state_names[own],
                                     m.state_names[other], &m == &member ? "" : fmt::format(": '{}' has both", m.name.view())));
  };
  check(member, slot);
  if (!member.state[slot]->named) return;
  for (const Member* m : members_) {
    if (m->family == member.family) continue;  // its state is the same
    const auto it = std::find(m->state.begin(), m->state.end(), member.state[slot]);
    if (it != m->state.end()) check(*m, static_cast<std::size_t>(it - m->state.begin()));
  }
}

void Memory::bind(Member& member, std::size_t slot, Tensor tensor) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<StateValue>& value = member.state[slot];
  remove_bound(*value);
  value->bind(std::move(tensor));
  add_bound(value);
}

void Memory::point_at(Member& member, std::size_t slot, Tensor tensor) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<StateValue> value = state_apart(member.state[slot]->name, tensor.type(), member.name);
  value->written = ++writes_;
  const auto point = [&] {
    for (Member* m : members_)
      if (m->family == member.family) m->state[slot] = value;
  };
  for (Member* m : members_)
    if (m->family == member.family && m->returns_state) m->keep_outputs_in(*member.state[slot]);
  point();  // lets go of the old bytes before the new bytes are counted
  const auto [first, end] = bound_.equal_range(bytes_of(tensor));
  for (auto it = first; it != end; ++it)
    if (const auto known = it->second.lock(); known && !known->named && known->is_bound_to(tensor)) {
      value = known;
      return point();
    }
  value->bind(std::move(tensor));
  add_bound(value);
}

// If all values lay apart before, it is enough to look at the two neighbours of the new one.
void Memory::add_bound(const std::shared_ptr<StateValue>& value) {
  if (value->type.bytes() == 0) return;
  const auto next = bound_.emplace(value->base, value);
  const auto meets = [&](const std::weak_ptr<StateValue>& other) {
    const auto there = other.lock();
    return there && there->overlaps(*value);
  };
  while (next != bound_.begin() && std::prev(next)->second.expired()) bound_.erase(std::prev(next));
  while (std::next(next) != bound_.end() && std::next(next)->second.expired()) bound_.erase(std::next(next));
  if (next != bound_.begin() && meets(std::prev(next)->second)) overlapping_ = true;
  if (std::next(next) != bound_.end() && meets(std::next(next)->second)) overlapping_ = true;
}

void Memory::remove_bound(const StateValue& value) {
  if (!value.bound.defined()) return;
  const auto [first, end] = bound_.equal_range(value.base);
  for (auto it = first; it != end; ++it)
    if (it->second.lock().get() == &value) return void(bound_.erase(it));
}

// Calls f(state value) for each state value of a member that is bound to bytes in common with this one, itself included. Calls
// nothing while no two bound values have ever had bytes in common, so the caller treats this value itself.
template <class F>
void Memory::each_overlapping(const StateValue& value, F&& f) {
  if (!overlapping_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  for (Member* m : members_)
    for (const auto& other : m->state)
      if (other->overlaps(value)) f(*other);
}

void Memory::tell_of_write(const StateValue& value) {
  each_overlapping(value, [&](StateValue& other) { other.written = value.written; });
  const std::lock_guard lock(mutex_);
  for (Member* m : members_)
    if (m->returns_state) m->keep_outputs_in(value);
}

void Memory::set(StateValue& value) {
  value.set = true;
  value.torn = false;
  each_overlapping(value, [&](StateValue& other) {
    const auto* const theirs = static_cast<const char*>(other.base);
    const auto* const mine = static_cast<const char*>(value.base);
    if (theirs < mine || theirs + other.type.bytes() > mine + value.type.bytes())
      return;  // some of its bytes are not among the bytes that were set
    other.set = true;
    other.torn = false;
  });
  ++changes;
}

void Memory::tear(StateValue& value, Name by) {
  value.tear(by);
  each_overlapping(value, [&](StateValue& other) { other.tear(by); });
  ++changes;
}

void Memory::end_step_for(const Member& by) {
  if (step_wrote)
    throw ExecutionError(
        fmt::format("'{}', which shares this memory, is in the middle of a step that has written state; it must resume() or "
                    "restart() first",
                    step_of.load()->name.view()));
  step_of.load()->dropped_by = by.name;
  step_of = nullptr;
}

// ---- members ----

void Memory::join(Member& member) {
  const std::lock_guard lock(mutex_);
  check_apart(member);
  members_.push_back(&member);
  returning_ += member.returns_state;
  want();
}

void Memory::leave(Member& member) {
  const std::lock_guard lock(mutex_);
  if (std::erase(members_, &member) > 0) returning_ -= member.returns_state;  // it may have failed to join
  const Member* self = &member;
  arena_user.compare_exchange_strong(self, nullptr);
  want();
  member.state.clear();
  std::erase_if(named_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(bound_, [](const auto& entry) { return entry.second.expired(); });
}

void Memory::want() {
  wanted_.assign(1, 0);  // also where there is no member
  for (const Member* m : members_) {
    if (m->chunks.size() > wanted_.size()) wanted_.resize(m->chunks.size(), 0);
    for (std::size_t i = 0; i < m->chunks.size(); ++i) wanted_[i] = std::max(wanted_[i], m->chunks[i]);
  }
  ++wants_;
}

std::int64_t Memory::block_bytes(std::int32_t block) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(block) < wanted_.size() ? wanted_[block] : 0;
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
  for (std::size_t i = 0; i < blocks_.size(); ++i) {  // blocks of the wrong size go before any new block comes
    if (!blocks_[i] || (i < wanted.size() && blocks_[i]->bytes == wanted[i])) continue;
    arena_user = nullptr;  // the values in it are gone, even if no other bytes can be had
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
  const std::int64_t canary = poison ? Poison::kCanary : 0;  // the plan knows nothing of it, so it is not counted
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

// ---- one at a time ----

void Busy::refuse(const char* what, Name member) const {
  const Name user = memory_.user_.load(std::memory_order_relaxed);
  throw ExecutionError(
      user.empty() || user == member
          ? fmt::format("{}: the executor of '{}', or one that shares its memory, is in use by another thread", what,
                        member.view())
          : fmt::format(
                "{}: the executor of '{}' cannot be used now: '{}', which shares its memory, is in use by another thread", what,
                member.view(), user.view()));
}

}  // namespace tapedeck::replay
