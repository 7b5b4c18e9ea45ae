#include <tapedeck/engine/text/glob.h>

#include <cstddef>

namespace tapedeck {

// A star takes as few characters as it can. Where the rest does not match, only the last star takes one more: whatever an
// earlier star could take instead, the last star can take as well.
bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, after_star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tapedeck
