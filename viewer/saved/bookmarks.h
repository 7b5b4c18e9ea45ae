// The bookmarks of a file: named places, one of which is the current one.
#pragma once

#include <tapedeck/viewer/saved/saved_session.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

class Bookmarks {
 public:
  static constexpr std::size_t kMost = 1000;

  explicit Bookmarks(std::vector<Bookmark> all = {}) : all_(std::move(all)) {}

  const std::vector<Bookmark>& all() const { return all_; }
  const Bookmark* current() const { return at_ < all_.size() ? &all_[at_] : nullptr; }  // that was added or gone to last
  // Adds a bookmark behind the others; it becomes the current one. A name that is taken gets a number: "%h (2)". Returns null,
  // and adds nothing, if there are kMost.
  const Bookmark* add(const std::string& name, SavedPlace place);
  // Makes the bookmark `by` places further the current one, around the ends. Without a current one, it is the first or the
  // last. Null if there are none.
  const Bookmark* step(int by);
  void go_to(std::size_t at) { at_ = at; }  // REQUIRES at < all().size()
  // The current one. Both do nothing without one. After `remove` there is no current one.
  void rename(const std::string& name);
  void remove();

 private:
  std::string free_name(const std::string& name, const Bookmark* except) const;

  static constexpr std::size_t kNoBookmark = static_cast<std::size_t>(-1);
  std::vector<Bookmark> all_;
  std::size_t at_ = kNoBookmark;
};

}  // namespace tapedeck::viewer
