#include <tapedeck/capture/file/load_report.h>

#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace tapedeck {
namespace {

constexpr std::size_t kMostNames = 8;  // in a message; the report has all

// Adds "missing: "a", "b" and 3 more". Names of a file may be hostile, so they are quoted and cut.
template <class Items, class Text>
void add_line(std::string* text, const char* kind, const Items& items, Text&& text_of) {
  if (items.empty()) return;
  *text += fmt::format("{}{}: ", text->empty() ? "" : "\n", kind);
  for (std::size_t i = 0; i < std::min(items.size(), kMostNames); ++i) *text += (i ? ", " : "") + text_of(items[i]);
  if (items.size() > kMostNames) *text += fmt::format(" and {} more", items.size() - kMostNames);
}

}  // namespace

std::string LoadReport::to_string() const {
  std::string text;
  add_line(&text, "missing", missing, [](const std::string& name) { return shown(name); });
  add_line(&text, "unexpected", unexpected, [](const std::string& name) { return shown(name); });
  add_line(&text, "mismatched", mismatched,
           [](const Mismatch& m) { return fmt::format("{} is {} in the file, not {}", shown(m.name), m.in_file, m.wanted); });
  return text;
}

}  // namespace tapedeck
