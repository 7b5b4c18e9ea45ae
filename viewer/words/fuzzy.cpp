// Finds the best way to lay the typed letters over the text, letter by letter: best[i] is the best score of the letters so far
// if the last of them lies at place i of the text.
#include <tapedeck/viewer/words/fuzzy.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace tapedeck::viewer {

namespace {

constexpr int kNever = -1, kLetter = 4, kFollows = 9, kBeginsWord = 8;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_word_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool begins_word(std::string_view text, std::size_t i) {
  return i == 0 || (is_word_letter(text[i]) && !is_word_letter(text[i - 1]));
}

// Adds one letter to all ways so far.
std::vector<int> with_letter(const std::vector<int>& before, char letter, std::string_view text, bool first) {
  std::vector<int> best(text.size(), kNever);
  int reached = first ? 0 : kNever;  // the best of all ways that end before place i
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) == letter && reached != kNever) {
      best[i] = reached + kLetter + (begins_word(text, i) ? kBeginsWord : 0);
      if (i > 0 && !first && before[i - 1] != kNever) best[i] = std::max(best[i], before[i - 1] + kLetter + kFollows);
    }
    if (!first) reached = std::max(reached, before[i]);
  }
  return best;
}

}  // namespace

int fuzzy_score(std::string_view typed, std::string_view text) {
  std::vector<int> best;
  bool first = true;
  for (char c : typed) {
    if (c == ' ') continue;
    best = with_letter(best, lower(c), text, first);
    first = false;
  }
  if (first) return 1;
  return std::max(0, best.empty() ? 0 : *std::max_element(best.begin(), best.end()));
}

}  // namespace tapedeck::viewer
