#include <tapedeck/engine/text/suggest.h>

#include <algorithm>
#include <cstdlib>

namespace tapedeck {
namespace {

constexpr std::size_t kLongest = 64;

// Optimal string alignment distance (edit distance with swaps of neighbours). Three rows of the table are kept.
int edit_distance(std::string_view a, std::string_view b) {
  int rows[3][kLongest + 1];
  int *older = rows[0], *above = rows[1], *row = rows[2];
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], older[j - 2] + 1);
    }
    std::swap(older, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() < 2 || word.size() > kLongest) return {};
  int best = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  std::string_view found;
  for (std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    if (std::abs(static_cast<int>(candidate.size()) - static_cast<int>(word.size())) >= best) continue;
    const int distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    found = candidate;
  }
  return std::string(found);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string near = closest(word, candidates);
  return near.empty() ? "" : ": did you mean '" + near + "'?";
}

}  // namespace tapedeck
