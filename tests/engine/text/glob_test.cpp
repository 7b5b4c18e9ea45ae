// Tests patterns with wildcards against the definition: a recursive matcher, asked for every short pattern and text.
#include <tapedeck/engine/text/glob.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tapedeck {
namespace {

bool defined_to_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return defined_to_match(pattern.substr(1), text) || (!text.empty() && defined_to_match(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && defined_to_match(pattern.substr(1), text.substr(1));
}

// All words of at most `most` of these letters.
std::vector<std::string> words(const std::string& letters, std::size_t most) {
  std::vector<std::string> all = {""};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].size() < most)
      for (const char letter : letters) all.push_back(all[i] + letter);
  return all;
}

TEST(Glob, AgreesWithTheDefinition) {
  for (const std::string& pattern : words("ab*?", 5))
    for (const std::string& text : words("ab", 5))
      ASSERT_EQ(matches_glob(pattern, text), defined_to_match(pattern, text)) << "'" << pattern << "' and '" << text << "'";
}

TEST(Glob, ManyStarsTakeNoLongTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(20'000, 'a')));
  EXPECT_TRUE(matches_glob(pattern, std::string(20'000, 'a')));
}

}  // namespace
}  // namespace tapedeck
