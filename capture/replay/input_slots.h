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
  void mark_set(std::int32_t slot) { set_[slot] = true; }
  // After Buffers::share: an input in the parent's buffer has the value that the parent was given.
  void share(const InputSlots& parent, const Buffers& own_buffers, const Buffers& parent_buffers);

  bool all_set() const;
  void list_missing(std::vector<std::string>* missing) const;  // appends "input 'x'" for each that was never set

 private:
  const Plan& plan_;
  std::vector<std::string> names_;
  std::vector<bool> set_;
};

}  // namespace tapedeck::replay
