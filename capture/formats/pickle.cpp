#include <tapedeck/capture/formats/pickle.h>

#include <tapedeck/capture/formats/json.h>

#include <limits>

namespace tapedeck {

namespace {

// Every byte that is no part of a character of UTF-8, replaced.
std::string as_utf8(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    while (length < 4 && at + length < text.size() && !valid_utf8(text.substr(at, length))) ++length;
    if (valid_utf8(text.substr(at, length))) {
      clean += text.substr(at, length);
      at += length;
    } else {
      clean += "\xEF\xBF\xBD";
      ++at;
    }
  }
  return clean;
}

}  // namespace

void PickleWriter::little_endian(std::uint64_t number, int n_bytes) {
  for (int i = 0; i < n_bytes; ++i) bytes_ += static_cast<char>(number >> (8 * i) & 0xff);
}

void PickleWriter::indexed(char short_code, char long_code, std::uint32_t index) {
  put(index < 256 ? short_code : long_code);
  little_endian(index, index < 256 ? 1 : 4);
}

PickleWriter& PickleWriter::value(std::string_view text) {
  if (!valid_utf8(text)) return value(std::string_view(as_utf8(text)));
  const auto [known, fresh] = memo_.try_emplace(std::string(text), static_cast<std::uint32_t>(memo_.size()));
  if (!fresh) {
    indexed('h', 'j', known->second);  // BINGET, LONG_BINGET
    return *this;
  }
  put('X');  // BINUNICODE
  little_endian(text.size(), 4);
  bytes_ += text;
  indexed('q', 'r', known->second);  // BINPUT, LONG_BINPUT
  return *this;
}

PickleWriter& PickleWriter::value(std::int64_t number) {
  if (number >= 0 && number < 256) {
    put('K');  // BININT1
    little_endian(static_cast<std::uint64_t>(number), 1);
  } else if (number >= 0 && number < 65536) {
    put('M');  // BININT2
    little_endian(static_cast<std::uint64_t>(number), 2);
  } else if (number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max()) {
    put('J');  // BININT
    little_endian(static_cast<std::uint64_t>(number), 4);
  } else {
    put('\x8a').put('\x08');  // LONG1 of eight bytes
    little_endian(static_cast<std::uint64_t>(number), 8);
  }
  return *this;
}

}  // namespace tapedeck
