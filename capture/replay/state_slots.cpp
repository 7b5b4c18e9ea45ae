// State as one executor sees it: values that the caller gives, values that a step writes, and writes by others.
//
//     set, bind            the caller gives a value
//     begin_writing        a step starts: remembers the number of the last write of each value
//     note_writes          the step has run: bound tensors that it wrote get a new version
//     note_versions        remembers these versions; a version that differs later is a write by the caller
#include <tapedeck/capture/replay/state_slots.h>

#include <tapedeck/capture/replay/slot_checks.h>

#include <tapedeck/engine/eager/eager_device.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck::replay {

StateSlots::StateSlots(const Plan& plan, Member& member, StateSharing sharing)
    : plan_(plan), member_(member), sharing_(sharing) {
  const Graph& g = plan.graph;
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) member.state_names.push_back(g.value_name(v));
  const std::size_t n = member.state_names.size();
  updated_.resize(n);
  stamps_.resize(n);
  versions_.resize(n);
  given_up_.resize(n);
  lost_.resize(n);
  for (const Update& u : g.updates) updated_[u.state - g.n_inputs] = u.value != u.state;
}

void StateSlots::find_in_memory() {
  Memory& memory = *member_.memory;
  for (std::size_t s = 0; s < names().size(); ++s) {
    const Type& type = plan_.graph.values[static_cast<std::size_t>(plan_.graph.n_inputs) + s].type;
    member_.state.push_back(sharing_ == StateSharing::by_name ? memory.state_named(names()[s], type, member_.name)
                                                              : memory.state_apart(names()[s], type, member_.name));
  }
}

void StateSlots::share(const StateSlots& parent) {
  const Graph& g = plan_.graph;
  for (std::size_t s = 0; s < names().size(); ++s)
    if (g.values[static_cast<std::size_t>(g.n_inputs) + s].type.bytes() != parent.member_.state[s]->type.bytes())
      throw TypeError(fmt::format("state '{}' would change its size", names()[s]));
  member_.state = parent.member_.state;
}

std::int32_t StateSlots::find(const std::string& name) const { return slot_named(names(), "state", name); }

// ---- given by the caller ----

namespace {

// An error inside a capture, which would not see the writes of replays.
void refuse_inside_capture(const Tensor& bound) {
  const ThreadState& state = thread_state();
  if (!device_of(bound))
    bound.data();
  else if (state.tape->capturing)
    refuse_in_capture(*state.tape, error_text("replay", "writes tensors that are bound to state inside a capture", {}));
}

std::vector<unsigned char> dense_bytes(const Tensor& value) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(value.bytes()));
  value.copy_to(bytes.data(), bytes.size(), dtype_size(value.dtype()));
  return bytes;
}

void write_to_device(EagerDevice& device, const StateValue& mine, const Tensor& value) {
  const std::vector<unsigned char> bytes = dense_bytes(value);
  if (!bytes.empty()) device.write(mine.base, bytes.data(), bytes.size());
}

Tensor copy_on_host(const Tensor& bound) { return from_bytes(bound.type(), dense_bytes(bound).data()); }

}  // namespace

void StateSlots::check(std::int32_t slot, const Tensor& value) const {
  check_type("state", names()[slot], plan_.graph.values[plan_.graph.n_inputs + slot].type, value);
}

void StateSlots::check_bindable(std::int32_t slot, const Tensor& value) const {
  check(slot, value);
  if (!value.dense()) throw TypeError(fmt::format("state '{}' must be dense to be bound", names()[slot]));
  refuse_inside_capture(value);
  member_.memory->check_apart(member_, static_cast<std::size_t>(slot), value);
}

void StateSlots::set(std::int32_t slot, const Tensor& value) {
  StateValue& mine = *member_.state[slot];
  if (value.impl() != mine.bound.impl()) {
    member_.memory->before_write(mine);
    mine.own();
    if (EagerDevice* const device = mine.device())
      write_to_device(*device, mine, value);
    else
      value.copy_to(mine.base, static_cast<std::size_t>(mine.type.bytes()), dtype_size(value.dtype()));
    if (mine.bound.defined()) mine.note_write();
  }
  member_.memory->set(mine);
}

void StateSlots::bind(std::int32_t slot, const Tensor& value) {
  Memory& memory = *member_.memory;
  const auto at = static_cast<std::size_t>(slot);
  if (!member_.state[at]->is_bound_to(value)) {
    if (sharing_ == StateSharing::by_tensor) {
      memory.point_at(member_, at, value);
    } else {
      memory.before_write(*member_.state[at]);  // other bytes are as good as a write, for all members that have the value
      memory.bind(member_, at, value);
    }
  }
  memory.set(*member_.state[at]);
}

Tensor StateSlots::read(std::int32_t slot, const Buffers& buffers) const {
  const StateValue& mine = *member_.state[slot];
  if (!mine.set && !mine.torn) throw ExecutionError(fmt::format("state '{}' was never set", names()[slot]));
  const Type& type = plan_.graph.values[plan_.graph.n_inputs + slot].type;
  if (type.bytes() == 0) return empty(type);
  if (mine.device()) return copy_on_host(mine.bound);
  buffers.fetch(buffers.table().state(slot));
  return from_bytes(type, buffers.address(buffers.table().state(slot)));
}

// ---- around a step ----

void StateSlots::refuse_if_torn() const {
  std::vector<std::string> torn;
  Name torn_by;
  for (std::size_t s = 0; s < member_.state.size(); ++s) {
    if (!member_.state[s]->torn) continue;
    torn.push_back(names()[s]);
    torn_by = member_.state[s]->torn_by;
  }
  if (!torn.empty())
    throw ExecutionError(
        fmt::format("an earlier run of '{}' failed after it had begun to write state; set it again first (still missing: {})",
                    torn_by.view(), listed(torn)));
}

void StateSlots::list_missing(std::vector<std::string>* missing) const {
  for (std::size_t s = 0; s < names().size(); ++s)
    if (!member_.state[s]->set) missing->push_back("state '" + names()[s] + "'");
}

void StateSlots::follow(Buffers& buffers) {
  if (ready()) return;
  buffers.follow_state();
  seen_changes_ = member_.memory->changes;
}

void StateSlots::begin_writing() {
  const State& state = member_.state;
  for (std::size_t s = 0; s < state.size(); ++s)
    if (updated_[s] && state[s]->bound.defined()) refuse_inside_capture(state[s]->bound);
  for (std::size_t s = 0; s < state.size(); ++s)
    if (updated_[s]) member_.memory->before_write(*state[s]);
  for (std::size_t s = 0; s < state.size(); ++s) {
    stamps_[s] = state[s]->written;
    given_up_[s] = lost_[s] = false;
  }
}

void StateSlots::note_writes(const SegmentWalk& walk) {
  for (std::size_t s = 0; s < member_.state.size(); ++s)
    if (walk.has_written(static_cast<std::int32_t>(s)) && member_.state[s]->bound.defined()) member_.state[s]->note_write();
}

void StateSlots::write_back(std::int32_t slot, const Tensor& value) {
  StateValue& mine = *member_.state[slot];
  member_.memory->before_write(mine);
  value.copy_to(mine.base, static_cast<std::size_t>(mine.type.bytes()), dtype_size(value.dtype()));
  if (mine.bound.defined()) mine.note_write();
}

void StateSlots::tear() {
  for (std::size_t s = 0; s < member_.state.size(); ++s)
    if (updated_[s]) member_.memory->tear(*member_.state[s], member_.name);
}

// ---- writes by others ----

void StateSlots::note_versions() {
  for (std::size_t s = 0; s < member_.state.size(); ++s)
    if (member_.state[s]->bound.defined()) versions_[s] = member_.state[s]->version();
}

bool StateSlots::written_since(std::int32_t slot) const {
  return member_.state[slot]->bound.defined() && member_.state[slot]->version() != versions_[slot];
}

bool StateSlots::written_by_caller(std::int32_t slot) const {
  return member_.state[slot]->bound.defined() && (given_up_[slot] || written_since(slot));
}

}  // namespace tapedeck::replay
