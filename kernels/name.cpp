// The table of interned strings behind Name. The table never frees a text, because a Name may outlive even static destructors.
#include <tapedeck/kernels/attrs.h>

#include <mutex>
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

Name::Name(std::string_view text) {
  if (text.empty()) return;
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  text_ = &*t.texts.emplace(text).first;
}

}  // namespace tapedeck
