// The table of interned strings behind Name. The table never frees a text, because a Name may outlive even static destructors.
#include <tapedeck/kernels/names.h>

#include <bit>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace tapedeck {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_set<std::string> texts;  // each text has its own node, so that its address stays the same when the table grows
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
  text_ = &*t.texts.emplace(text).first;
}

Name borrowed_name(const std::string& text) {
  const std::string* const at = &text;
  static_assert(sizeof(Name) == sizeof(at));  // a Name is the address of its text
  return std::bit_cast<Name>(at);
}

std::size_t interned_names() {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  return t.texts.size();
}

}  // namespace tapedeck
