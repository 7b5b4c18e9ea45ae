#include <tapedeck/capture/import/simrd_lines.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/import/foreign_values.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tapedeck {

namespace {

struct Instruction {
  std::string_view word;
  TraceEvent event;
};

constexpr Instruction kInstructions[] = {
    {"CONSTANT", TraceEvent::constant},   {"MEMORY", TraceEvent::memory},   {"CALL", TraceEvent::call},
    {"ALIAS", TraceEvent::alias},         {"MUTATE", TraceEvent::mutate},   {"COPY", TraceEvent::copy},
    {"COPY_FROM", TraceEvent::copy_from}, {"RELEASE", TraceEvent::release}, {"ANNOTATE", TraceEvent::annotate},
};

constexpr double kMostNanoseconds = 1000 * kMostMicroseconds;

// The members of one line.
class LineReader {
 public:
  LineReader(JsonValue root, const std::string& file, std::uint32_t number) : root_(root), file_(file), number_(number) {}

  TraceLine read() {
    if (root_.kind() != JsonKind::object) fail(fmt::format("{} where an object should be", shown(root_)));
    TraceLine line;
    line.number = number_;
    line.event = event();
    switch (line.event) {
      case TraceEvent::constant:
      case TraceEvent::release:
        line.name = text("NAME");
        break;
      case TraceEvent::annotate:
        line.name = text("ANNOTATION");
        break;
      case TraceEvent::memory:
        line.name = text("NAME");
        line.number_of = number("MEMORY", 0, kMaxTypeBytes, "a number of bytes from 0 to 2^46");
        break;
      case TraceEvent::alias:
        line.name = text("NAME");
        line.number_of = number("ALIAS", -1, kMostArguments, "-1 or the number of an argument");
        break;
      case TraceEvent::copy:
      case TraceEvent::copy_from:
        line.name = text("DST");
        line.source = text("SRC");
        break;
      case TraceEvent::call:
        read_call(&line);
        line.results = texts("RESULT");
        break;
      case TraceEvent::mutate:
        read_call(&line);
        line.mutated = places("MUTATE", line.args.size());
        break;
    }
    return line;
  }

 private:
  static constexpr std::int64_t kMostArguments = std::int64_t{1} << 31;

  [[noreturn]] void fail(const std::string& reason) const { refuse(file_, number_, reason); }

  TraceEvent event() {
    word_ = "the line";
    const std::string word = text("INSTRUCTION");
    for (const Instruction& known : kInstructions)
      if (known.word == word) return word_ = word, known.event;
    fail(fmt::format("the instruction {} is not known", shown(std::string_view(word))));
  }

  void read_call(TraceLine* line) const {
    line->name = text("NAME");
    line->args = texts("ARGS");
    line->nanoseconds = static_cast<double>(
        number("TIME", 0, static_cast<std::int64_t>(kMostNanoseconds), "a whole number of nanoseconds from 0 to 10^18"));
  }

  JsonValue member(const char* key) const {
    const std::optional<JsonValue> found = root_.find(key);
    if (!found) fail(fmt::format("{} has no \"{}\"", word_, key));
    return *found;
  }

  std::string text(const char* key) const {
    const JsonValue value = member(key);
    if (value.kind() != JsonKind::string) fail(fmt::format("{}: \"{}\" is {} and not a string", word_, key, shown(value)));
    return std::string(value.as_string());
  }

  JsonValue list(const char* key) const {
    const JsonValue value = member(key);
    if (value.kind() != JsonKind::array) fail(fmt::format("{}: \"{}\" is {} and not a list", word_, key, shown(value)));
    return value;
  }

  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> all;
    for (const JsonValue item : list(key).items()) {
      if (item.kind() != JsonKind::string) fail(fmt::format("{}: \"{}\" holds {} and not a string", word_, key, shown(item)));
      all.emplace_back(item.as_string());
    }
    return all;
  }

  std::vector<std::int64_t> places(const char* key, std::size_t count) const {
    std::vector<std::int64_t> all;
    for (const JsonValue item : list(key).items()) {
      const std::optional<std::int64_t> place = whole_number(item);
      if (!place || *place < 0 || static_cast<std::uint64_t>(*place) >= count)
        fail(fmt::format("{}: \"{}\" holds {}; it must be the number of one of its {} arguments", word_, key, shown(item),
                         count));
      all.push_back(*place);
    }
    return all;
  }

  std::int64_t number(const char* key, std::int64_t least, std::int64_t most, const char* wanted) const {
    const JsonValue value = member(key);
    const std::optional<std::int64_t> found = whole_number(value);
    if (!found || *found < least || *found > most)
      fail(fmt::format("{}: \"{}\" is {}; it must be {}", word_, key, shown(value), wanted));
    return *found;
  }

  JsonValue root_;
  const std::string& file_;
  std::uint32_t number_;
  std::string word_;  // the instruction, for messages
};

// The document is one line, so its own count of lines says nothing.
std::string without_line(std::string text) {
  constexpr std::string_view kFirstLine = ", line 1";
  if (text.ends_with(kFirstLine)) text.resize(text.size() - kFirstLine.size());
  return text;
}

}  // namespace

bool TraceLines::next(TraceLine* line) {
  while (!left_.empty()) {
    stop_if_interrupted();
    const std::string_view text = left_.substr(0, left_.find('\n'));
    left_.remove_prefix(std::min(text.size() + 1, left_.size()));
    ++number_;
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    try {
      const JsonDocument document(text);
      *line = LineReader(document.root(), file_, number_).read();
    } catch (const JsonError& e) {
      refuse(file_, number_, without_line(e.what()));
    }
    return true;
  }
  return false;
}

}  // namespace tapedeck
