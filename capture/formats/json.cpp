// Reading: the JSON library parses the text and calls a builder for each event; the builder refuses duplicate keys, deep
// nesting and bad text with an error of ours. Writing: values are printed as they come.
#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

namespace tapedeck {

namespace {

// An iterator over a text that notes how far the library has read.
struct NotingIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** read_to = nullptr;

  reference operator*() const { return *at; }
  NotingIterator& operator++() {
    *read_to = ++at;
    return *this;
  }
  NotingIterator operator++(int) {
    const NotingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const NotingIterator& o) const { return at == o.at; }
  bool operator!=(const NotingIterator& o) const { return at != o.at; }
};

constexpr int kNumberTooLarge = 406;  // the library's number of this error

}  // namespace

// Takes the events of the library and lays the document out flat. Returns false as soon as a bound is passed.
class JsonBuilder {
 public:
  JsonBuilder(JsonDocument& document, std::string_view text)
      : document_(document), counted_to_(text.data()), read_to_(text.data()) {}
  const std::string& error() const { return error_; }
  const char** read_to() { return &read_to_; }

  bool null() { return add({}); }
  bool boolean(bool flag) { return add_integer(JsonKind::boolean, flag); }
  bool number_integer(std::int64_t number) { return add_integer(JsonKind::integer, number); }
  bool number_unsigned(std::uint64_t number) {
    if (std::in_range<std::int64_t>(number)) return number_integer(static_cast<std::int64_t>(number));
    return number_float(static_cast<double>(number), {});
  }
  bool number_float(double number, const std::string&) {
    JsonNode node;
    node.kind = JsonKind::real;
    node.real = number;
    return add(node);
  }
  bool string(const std::string& text) {
    JsonNode node;
    node.kind = JsonKind::string;
    node.length = static_cast<std::uint32_t>(text.size());
    node.integer = static_cast<std::int64_t>(document_.text_.size());
    document_.text_ += text;
    return add(node);
  }
  bool binary(const std::vector<std::uint8_t>&) { return fail("binary data"); }
  bool start_object(std::size_t) { return start(JsonKind::object); }
  bool start_array(std::size_t) { return start(JsonKind::array); }
  bool end_array() { return end(); }
  bool key(const std::string& name) {
    --document_.nodes_[open_.back()].length;  // a member counts once
    return string(name);
  }
  bool end_object() {
    std::vector<std::string_view> keys;
    const std::uint32_t object = open_.back();
    document_.nodes_[object].end = size();
    for (const auto& member : JsonValue(document_, object).members()) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) return fail(fmt::format("key {} appears twice", shown(*twice)));
    return end();
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    if (e.id == kNumberTooLarge) return fail(fmt::format("a number that is too large, on line {}", line()));
    return fail(fmt::format("not JSON at byte {}, line {}", position, line()));
  }

 private:
  static constexpr std::size_t kMaxDepth = 16;
  static constexpr std::size_t kMaxNodes = std::numeric_limits<std::int32_t>::max();

  std::uint32_t size() const { return static_cast<std::uint32_t>(document_.nodes_.size()); }
  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  bool add(JsonNode node) {
    if (document_.nodes_.size() >= kMaxNodes) return fail("too many values");
    if (!open_.empty()) ++document_.nodes_[open_.back()].length;
    node.end = size() + 1;
    node.line = line();
    document_.nodes_.push_back(node);
    return true;
  }
  bool add_integer(JsonKind kind, std::int64_t number) {
    JsonNode node;
    node.kind = kind;
    node.integer = number;
    return add(node);
  }
  bool start(JsonKind kind) {
    if (open_.size() >= kMaxDepth) return fail(fmt::format("nested deeper than {}", kMaxDepth));
    if (!add_integer(kind, 0)) return false;
    open_.push_back(size() - 1);
    return true;
  }
  bool end() {
    document_.nodes_[open_.back()].end = size();
    open_.pop_back();
    return true;
  }

  // Of the token whose event this is. A line break that was read last is behind the token: the library reads one character
  // ahead where a number ends.
  std::uint32_t line() {
    const char* const token_end = read_to_ == counted_to_ ? counted_to_ : read_to_ - 1;
    line_ += static_cast<std::uint32_t>(std::count(counted_to_, token_end, '\n'));
    counted_to_ = token_end;
    return line_;
  }

  JsonDocument& document_;
  std::uint32_t line_ = 1;
  const char* counted_to_;  // the line breaks before here are counted
  const char* read_to_;     // by the library
  std::vector<std::uint32_t> open_;
  std::string error_;
};

namespace {

// No valid text has more values: all but the outermost one stand behind one of these signs, and take two characters with it. A
// document of a large plan that grew instead would hold its values twice.
std::size_t most_values(std::string_view text) {
  const auto signs =
      std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; });
  return std::min(static_cast<std::size_t>(signs), text.size() / 2) + 1;
}

}  // namespace

JsonDocument::JsonDocument(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw JsonError("more than 4 GiB of JSON");
  nodes_.reserve(most_values(text));
  JsonBuilder builder(*this, text);
  const NotingIterator first{text.data(), builder.read_to()}, last{text.data() + text.size(), builder.read_to()};
  if (!nlohmann::json::sax_parse(first, last, &builder)) throw JsonError(builder.error());
}

// ---- reading ----

void JsonValue::wrong(const char* wanted) const {
  constexpr const char* names[] = {"null", "a boolean", "an integer", "a real number", "a string", "an array", "an object"};
  throw JsonError(fmt::format("{} where {} should be", names[static_cast<int>(kind())], wanted));
}

bool JsonValue::as_bool() const {
  if (kind() != JsonKind::boolean) wrong("a boolean");
  return node().integer != 0;
}

std::int64_t JsonValue::as_integer() const {
  if (kind() != JsonKind::integer) wrong("an integer below 2^63");
  return node().integer;
}

double JsonValue::as_real() const {
  if (kind() == JsonKind::real) return node().real;
  if (kind() == JsonKind::integer) return static_cast<double>(node().integer);
  if (kind() == JsonKind::string) {
    if (as_string() == "inf") return std::numeric_limits<double>::infinity();
    if (as_string() == "-inf") return -std::numeric_limits<double>::infinity();
    if (as_string() == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  wrong("a number");
}

std::string_view JsonValue::as_string() const {
  if (kind() != JsonKind::string) wrong("a string");
  return document_->string(node());
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  at = document->node(at).end;
  return *this;
}

JsonValue::Member JsonValue::MemberIterator::operator*() const {
  return {document->string(document->node(at)), {*document, at + 1}};
}

JsonValue::MemberIterator& JsonValue::MemberIterator::operator++() {
  at = document->node(at + 1).end;
  return *this;
}

JsonValue::Range<JsonValue::Iterator> JsonValue::items() const {
  if (kind() != JsonKind::array) wrong("an array");
  return {{document_, at_ + 1}, {document_, node().end}};
}

JsonValue::Range<JsonValue::MemberIterator> JsonValue::members() const {
  if (kind() != JsonKind::object) wrong("an object");
  return {{document_, at_ + 1}, {document_, node().end}};
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (const Member& member : members())
    if (member.key == key) return member.value;
  return std::nullopt;
}

JsonValue JsonValue::member(std::string_view key) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) throw JsonError(fmt::format("there is no {}", key));
  return *value;
}

// ---- writing ----

void JsonWriter::separate() {
  if (!std::exchange(fresh_, false)) text_ += ',';
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  fresh_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  fresh_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  fresh_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += quote_json(text);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return value(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  separate();
  fmt::format_to(std::back_inserter(text_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::line() {
  separate();
  text_ += '\n';
  fresh_ = true;
  return *this;
}

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the well-formed UTF-8 sequence at the front; 0 if there is none (overlong, surrogate, beyond U+10FFFF, cut off).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return tail(1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    const bool legal = tail(1) && tail(2) && (a != 0xE0 || b >= 0xA0) && (a != 0xED || b < 0xA0);
    return legal ? 3 : 0;
  }
  if (a < 0xF0 || a > 0xF4) return 0;
  const bool legal = tail(1) && tail(2) && tail(3) && (a != 0xF0 || b >= 0x90) && (a != 0xF4 || b < 0x90);
  return legal ? 4 : 0;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    valid += n > 0 ? text.substr(0, n) : kReplacement;
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return valid;
}

std::string quote_json(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    const char c = text[0];
    if (n == 0)
      quoted += kReplacement;
    else if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      fmt::format_to(std::back_inserter(quoted), "\\u{:04x}", static_cast<unsigned>(c));
    else
      quoted += text.substr(0, n);
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return quoted + '"';
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  return text.size() <= kLongest ? quote_json(text) : quote_json(text.substr(0, kLongest)) + "...";
}

}  // namespace tapedeck
