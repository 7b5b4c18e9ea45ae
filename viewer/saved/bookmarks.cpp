#include <tapedeck/viewer/saved/bookmarks.h>

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <utility>

namespace tapedeck::viewer {

std::string Bookmarks::free_name(const std::string& name, const Bookmark* except) const {
  std::set<std::string> taken;
  for (const Bookmark& bookmark : all_)
    if (&bookmark != except) taken.insert(bookmark.name);
  std::string wanted = name;
  for (int number = 2; taken.count(wanted) > 0; ++number) wanted = fmt::format("{} ({})", name, number);
  return wanted;
}

const Bookmark* Bookmarks::add(const std::string& name, SavedPlace place) {
  if (all_.size() >= kMost) return nullptr;
  all_.push_back({free_name(name, nullptr), std::move(place)});
  at_ = all_.size() - 1;
  return current();
}

const Bookmark* Bookmarks::step(int by) {
  if (all_.empty()) return nullptr;
  const std::ptrdiff_t count = std::ssize(all_);
  // Without a current one, the step begins before the first or behind the last.
  const std::ptrdiff_t from = current() != nullptr ? static_cast<std::ptrdiff_t>(at_) : by > 0 ? -1 : count;
  at_ = static_cast<std::size_t>(((from + by) % count + count) % count);
  return current();
}

void Bookmarks::rename(const std::string& name) {
  if (current() == nullptr || name.empty() || name == current()->name) return;
  all_[at_].name = free_name(name, current());
}

void Bookmarks::remove() {
  if (current() == nullptr) return;
  all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = kNoBookmark;
}

}  // namespace tapedeck::viewer
