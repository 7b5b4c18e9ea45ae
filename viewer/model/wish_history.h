// The wishes of a person for single values, with undo and redo.
#pragma once

#include <tapedeck/capture/plan/wishes.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class WishHistory {
 public:
  explicit WishHistory(std::vector<Wish> first = {}) : states_{std::move(first)} {}

  const std::vector<Wish>& now() const { return states_[at_]; }
  void set(std::vector<Wish> wishes);  // what was undone before is forgotten; equal wishes change nothing
  bool undo();                         // false if there is nothing to undo
  bool redo();

 private:
  std::vector<std::vector<Wish>> states_;
  std::size_t at_ = 0;
};

// The wishes with the wish of one value set to keep or recompute, or taken away. Wishes for patterns stay; a wish of one value
// comes last, so that it counts.
std::vector<Wish> with_wish(std::vector<Wish> wishes, const Wish& wish);
std::vector<Wish> without_wish(std::vector<Wish> wishes, const std::string& pattern);

}  // namespace tapedeck::viewer
