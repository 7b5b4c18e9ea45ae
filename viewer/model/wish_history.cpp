#include <tapedeck/viewer/model/wish_history.h>

#include <utility>

namespace tapedeck::viewer {

void WishHistory::set(std::vector<Wish> wishes) {
  if (wishes == now()) return;
  states_.resize(at_ + 1);
  states_.push_back(std::move(wishes));
  ++at_;
}

bool WishHistory::undo() {
  if (at_ == 0) return false;
  --at_;
  return true;
}

bool WishHistory::redo() {
  if (at_ + 1 == states_.size()) return false;
  ++at_;
  return true;
}

std::vector<Wish> with_wish(std::vector<Wish> wishes, const Wish& wish) {
  wishes = without_wish(std::move(wishes), wish.pattern);
  wishes.push_back(wish);
  return wishes;
}

std::vector<Wish> without_wish(std::vector<Wish> wishes, const std::string& pattern) {
  std::erase_if(wishes, [&](const Wish& w) { return w.pattern == pattern; });
  return wishes;
}

}  // namespace tapedeck::viewer
