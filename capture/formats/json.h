// Reads JSON of files that may be damaged or hostile into a flat, bounded document whose accessors check kinds, and writes
// JSON. Only json.cpp includes the JSON library, whose header is heavy.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Malformed JSON, or a value of the wrong kind. The caller that knows the file turns it into a FileError.
class JsonError : public Error {
 public:
  using Error::Error;
};

enum class JsonKind : std::uint8_t { null, boolean, integer, real, string, array, object };

struct JsonNode {
  JsonKind kind = JsonKind::null;
  std::uint32_t length = 0;  // items, members, bytes of a string
  std::uint32_t end = 0;     // the index behind this node and all inside it
  std::uint32_t line = 1;    // of the text where it begins, from 1; for an array or object, the line of its opening bracket
  union {
    std::int64_t integer = 0;  // also booleans, and where a string starts
    double real;
  };
};

class JsonDocument;

// A value in a document; valid as long as the document. A member of an object is its key (a string), then its value.
class JsonValue {
 public:
  JsonValue(const JsonDocument& document, std::uint32_t at) : document_(&document), at_(at) {}

  JsonKind kind() const { return node().kind; }
  std::uint32_t size() const { return node().length; }
  std::uint32_t line() const { return node().line; }  // of the text, from 1
  // Each throws JsonError if the value is of another kind.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_real() const;  // integers too, and the strings "inf", "-inf", "nan"
  std::string_view as_string() const;

  // Items of an array: for (JsonValue v : value.items()).  Members of an object: likewise, key and value.
  struct Iterator {
    const JsonDocument* document;
    std::uint32_t at;
    JsonValue operator*() const { return {*document, at}; }
    Iterator& operator++();
    bool operator!=(const Iterator& o) const { return at != o.at; }
  };
  struct Member;
  struct MemberIterator {
    const JsonDocument* document;
    std::uint32_t at;
    Member operator*() const;
    MemberIterator& operator++();
    bool operator!=(const MemberIterator& o) const { return at != o.at; }
  };
  template <class I>
  struct Range {
    I first, last;
    I begin() const { return first; }
    I end() const { return last; }
  };
  Range<Iterator> items() const;
  Range<MemberIterator> members() const;
  std::optional<JsonValue> find(std::string_view key) const;  // in an object; linear
  JsonValue member(std::string_view key) const;               // likewise; throws JsonError if there is none

 private:
  const JsonNode& node() const;
  [[noreturn]] void wrong(const char* wanted) const;

  const JsonDocument* document_;
  std::uint32_t at_;
};

struct JsonValue::Member {
  std::string_view key;
  JsonValue value;
};

// Memory: at most about a dozen times the text. Refuses duplicate keys, nesting deeper than 16, invalid UTF-8, anything but
// spaces behind the value.
class JsonDocument {
 public:
  explicit JsonDocument(std::string_view text);  // throws JsonError
  JsonValue root() const { return {*this, 0}; }
  const JsonNode& node(std::uint32_t at) const { return nodes_[at]; }
  std::string_view string(const JsonNode& node) const {
    return std::string_view(text_).substr(static_cast<std::size_t>(node.integer), node.length);
  }

 private:
  friend class JsonBuilder;
  std::vector<JsonNode> nodes_;
  std::string text_;  // of all strings
};

inline const JsonNode& JsonValue::node() const { return document_->node(at_); }

// Writes text piece by piece and sets the commas itself.
class JsonWriter {
 public:
  JsonWriter& open(char bracket);  // '{' or '['
  JsonWriter& close(char bracket);
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::int32_t number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(double number);  // shortest text that reads back the same
  JsonWriter& value(bool flag);
  JsonWriter& line();  // a line break, for readers; goes before the next item
  std::string take() { return std::move(text_); }

 private:
  void separate();
  std::string text_;
  bool fresh_ = true;  // nothing stands here yet, so no comma is needed
};

bool valid_utf8(std::string_view text);
// Each byte that is not UTF-8 becomes U+FFFD.
std::string to_utf8(std::string_view text);
// With quotes; each byte that is not UTF-8 becomes U+FFFD.
std::string quote_json(std::string_view text);
// A foreign string for a message: quoted, and cut if long.
std::string shown(std::string_view text);

}  // namespace TAPEDECK_API
