// The table of interned strings behind Name. Texts are never freed: a Name may outlive everything, static destructors included.
#include <tapedeck/kernels/attrs.h>

#include <mutex>
#include <string>
#include <unordered_set>

namespace tapedeck {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_set<std::string> texts;  // node based: addresses of elements are stable
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
