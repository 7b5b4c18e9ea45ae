#include <tapedeck/capture/replay/input_slots.h>

#include <tapedeck/capture/replay/slot_checks.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <algorithm>

namespace tapedeck::replay {

InputSlots::InputSlots(const Plan& plan) : plan_(plan) {
  for (ValueId v = 0; v < plan.graph.n_inputs; ++v) names_.push_back(plan.graph.value_name(v));
  set_.resize(names_.size());
  new_.resize(names_.size());
}

std::int32_t InputSlots::find(const std::string& name) const { return slot_named(names_, "input", name); }

void InputSlots::check(std::int32_t slot, const Tensor& value) const {
  check_type("input", names_[slot], plan_.graph.values[slot].type, value);
}

void InputSlots::share(const InputSlots& parent, const Buffers& own_buffers, const Buffers& parent_buffers) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const BufferId b = own_buffers.table().input(static_cast<std::int32_t>(i));
    if (own_buffers.own()[b] == parent_buffers.own()[b]) set_[i] = parent.set_[i];
  }
}

void InputSlots::begin_step() {
  if (any_new_) new_.assign(new_.size(), false);
  any_new_ = false;
}

bool InputSlots::all_set() const { return std::find(set_.begin(), set_.end(), false) == set_.end(); }

void InputSlots::list_missing(std::vector<std::string>* missing) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!set_[i]) missing->push_back("input '" + names_[i] + "'");
}

}  // namespace tapedeck::replay
