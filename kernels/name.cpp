// The table of interned strings behind Name. The table never frees a text, because a Name may outlive even static destructors.
#include <tapedeck/kernels/names.h>

#include <bit>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck {
namespace {

// A hash table with open addressing: reading a large graph asks for half a million names, and each question costs one or two
// misses of the cache.
class Table {
 public:
  // REQUIRES the lock.
  const std::string* find_or_add(std::string_view text) {
    const std::size_t hash = std::hash<std::string_view>()(text);
    const Slot& known = slot_of(text, hash);
    if (known.text != nullptr) return known.text;
    if (texts_.size() * 2 >= slots_.size()) grow();
    texts_.emplace_back(text);
    slot_of(text, hash) = {&texts_.back(), hash};
    return &texts_.back();
  }
  std::size_t size() const { return texts_.size(); }

  std::mutex mutex;

 private:
  struct Slot {
    const std::string* text = nullptr;
    std::size_t hash = 0;
  };

  // The slot of the text, or the free slot where it belongs.
  Slot& slot_of(std::string_view text, std::size_t hash) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].text != nullptr && (slots_[at].hash != hash || *slots_[at].text != text)) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    const std::size_t mask = larger.size() - 1;
    for (const Slot& slot : slots_) {
      if (slot.text == nullptr) continue;
      std::size_t at = slot.hash & mask;
      while (larger[at].text != nullptr) at = (at + 1) & mask;
      larger[at] = slot;
    }
    slots_ = std::move(larger);
  }

  std::deque<std::string> texts_;                      // their addresses stay the same when it grows
  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two; at most half of them are taken
};

Table& table() {
  static Table* const forever = new Table;
  return *forever;
}

}  // namespace

void refuse_long_list(std::size_t size, const char* file, int line) {
  throw std::length_error("a list of axes, sizes or strides holds at most " + std::to_string(kMaxRank) + " numbers, not " +
                          std::to_string(size) + " (" + file + ":" + std::to_string(line) + ")");
}

Name::Name(std::string_view text) {
  if (text.empty()) return;
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  text_ = t.find_or_add(text);
}

Name borrowed_name(const std::string& text) {
  const std::string* const at = &text;
  static_assert(sizeof(Name) == sizeof(at));  // a Name is the address of its text
  return std::bit_cast<Name>(at);
}

std::size_t interned_names() {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  return t.size();
}

}  // namespace tapedeck
