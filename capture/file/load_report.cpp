#include <tapedeck/capture/file/load_report.h>

#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace tapedeck {
namespace {

constexpr std::size_t kMostNames = 8;  // in a message; the report has all
constexpr std::size_t kMostNotes = 8;

// Adds "a", "b" and 3 more.
template <class Items, class Text>
void add_names(std::string* text, const Items& items, Text&& text_of) {
  for (std::size_t i = 0; i < std::min(items.size(), kMostNames); ++i) *text += (i ? ", " : "") + text_of(items[i]);
  if (items.size() > kMostNames) *text += fmt::format(" and {} more", items.size() - kMostNames);
}

// Notes that say the same are one line: "a.bias", "b.bias" and 3 more: this layer was made with .bias = false here. Only the
// first sentences count, so a hostile file of many sentences costs no more than one of few.
void add_notes(std::string* text, const std::vector<LoadReport::Note>& notes) {
  struct Sentence {
    std::string text;
    std::vector<std::string> names;
  };
  std::vector<Sentence> sentences;
  for (const LoadReport::Note& note : notes) {
    auto at = std::find_if(sentences.begin(), sentences.end(), [&](const Sentence& s) { return s.text == note.text; });
    if (at == sentences.end() && sentences.size() == kMostNotes) continue;
    if (at == sentences.end()) at = sentences.insert(at, {note.text, {}});
    at->names.push_back(note.name);
  }
  for (const Sentence& sentence : sentences) {
    *text += "\n  ";
    add_names(text, sentence.names, [](const std::string& name) { return shown(name); });
    *text += ": " + sentence.text;
  }
}

// Adds "missing: "a", "b" and 3 more". Names of a file may be hostile, so they are quoted and cut.
template <class Items, class Text>
void add_line(std::string* text, const char* kind, const Items& items, Text&& text_of) {
  if (items.empty()) return;
  *text += fmt::format("{}{}: ", text->empty() ? "" : "\n", kind);
  add_names(text, items, text_of);
}

}  // namespace

std::string LoadReport::to_string() const {
  std::string text;
  add_line(&text, "missing", missing, [](const std::string& name) { return shown(name); });
  add_line(&text, "unexpected", unexpected, [](const std::string& name) { return shown(name); });
  add_line(&text, "mismatched", mismatched,
           [](const Mismatch& m) { return fmt::format("{} is {} in the file, not {}", shown(m.name), m.in_file, m.wanted); });
  add_notes(&text, notes);
  return text;
}

}  // namespace tapedeck
