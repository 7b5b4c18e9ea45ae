// A text as numbers. Each kind of character that occurs in the text has a number, in the order of the character codes.
#pragma once

#include <tapedeck/tapedeck.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace samples {

// The text that the programs learn by default. Debian and related systems install it everywhere.
inline constexpr const char* kLicense = "/usr/share/common-licenses/GPL-3";

// A text and its kinds of characters.
struct Text {
  std::string characters;  // the character of each number
  std::vector<std::int32_t> numbers;
  std::int64_t kinds() const { return static_cast<std::int64_t>(characters.size()); }
  std::int64_t length() const { return static_cast<std::int64_t>(numbers.size()); }

  std::vector<std::int32_t> encode(const std::string& text) const {
    std::vector<std::int32_t> result;
    for (char c : text) result.push_back(static_cast<std::int32_t>(characters.find(c)));
    return result;
  }
  // `rows` pieces of `steps` characters, one from each place: [rows,steps].
  tapedeck::Tensor pieces(const std::vector<std::int64_t>& places, std::int64_t steps) const {
    std::vector<std::int32_t> all;
    for (std::int64_t at : places) all.insert(all.end(), numbers.begin() + at, numbers.begin() + at + steps);
    return tapedeck::from_vector(all, {static_cast<std::int64_t>(places.size()), steps});
  }
};

// Reads a text. If there is no such file, prints a note to stderr and returns an empty text.
inline Text read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "there is no %s here to learn; --data FILE takes any other text\n", path.c_str());
    return {};
  }
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::set<char> kinds(all.begin(), all.end());
  Text text{{kinds.begin(), kinds.end()}, {}};
  text.numbers = text.encode(all);
  return text;
}

}  // namespace samples
