// The inputs of an executor: their names, and which of them have been given.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/replay/memory/buffers.h>

#include <string>
#include <vector>

namespace tapedeck::replay {

class InputSlots {
 public:
  explicit InputSlots(const Plan& plan);

  const std::vector<std::string>& names() const { return names_; }
  std::int32_t find(const std::string& name) const;  // UsageError if there is none of this name
  void check(std::int32_t slot, const Tensor& value) const;
  bool is_set(std::int32_t slot) const { return set_[slot]; }
  // `in_step`: a step is under way, which has not read the input yet.
  void mark_set(std::int32_t slot, bool in_step) {
    set_[slot] = true;
    if (!in_step) any_new_ = new_[slot] = true;
  }
  // The input has been set since the last step began, and that step did not see it.
  bool is_new(std::int32_t slot) const { return new_[slot]; }
  void begin_step();  // no input is new any more
  // After Buffers::share: an input in the parent's buffer has the value that the parent was given.
  void share(const InputSlots& parent, const Buffers& own_buffers, const Buffers& parent_buffers);

  bool all_set() const;
  void list_missing(std::vector<std::string>* missing) const;  // appends "input 'x'" for each that was never set

 private:
  const Plan& plan_;
  std::vector<std::string> names_;
  std::vector<bool> set_, new_;
  bool any_new_ = false;
};

}  // namespace tapedeck::replay
