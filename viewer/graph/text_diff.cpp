// The difference of two graph texts, in three steps: a key for every line, which is unique in its text; the longest increasing
// chain of the matched keys, which stays in place; the merge of both texts along this chain.
#include <tapedeck/viewer/graph/text_diff.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tapedeck::viewer {

namespace {

// "%h" of "%h: f32[4] = exp(%x)"; empty if the line defines nothing.
std::string_view first_value(std::string_view line) {
  const std::size_t at = line.find('%');
  const std::size_t sign = std::min(line.find('('), line.find('['));
  if (at == std::string_view::npos || at > sign) return {};
  const bool quoted = at + 1 < line.size() && line[at + 1] == '"';
  std::size_t end = at + (quoted ? 2 : 1);
  if (quoted) {
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    return line.substr(at, std::min(end + 1, line.size()) - at);
  }
  while (end < line.size() && line[end] != ':' && line[end] != ' ' && line[end] != ',') ++end;
  return line.substr(at, end - at);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text without the numbers of values that have no name, which shift when nodes come and go.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '%')
      while (i + 1 < text.size() && is_digit(text[i + 1])) ++i;
  }
  return out;
}

std::string key_of_value(std::string_view word, std::string_view line, Numbers numbers) {
  if (!std::all_of(word.begin() + 1, word.end(), is_digit)) return std::string(word);
  return numbers == Numbers::become_names ? "%v" + std::string(word.substr(1)) : without_numbers(line);
}

std::string own_key(std::string_view line, Numbers numbers) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view rest = line.substr(indent);
  for (const std::string_view start : {"graph ", "return", "update ", "}"})
    if (rest.starts_with(start)) return std::string(start);
  if (const std::string_view value = first_value(rest); !value.empty()) return key_of_value(value, rest, numbers);
  return std::string(rest.substr(0, rest.find('[')));
}

// A line in a region belongs to its node, so that equal names of two regions are told apart.
std::vector<std::string> keys_of(const GraphText& text, Numbers numbers) {
  std::vector<std::string> keys;
  std::unordered_map<std::string, std::int32_t> seen;
  for (std::int32_t n = 0; n < text.lines(); ++n) {
    std::string key = own_key(text.line(n), numbers);
    if (text.is_nested(n)) key = keys[static_cast<std::size_t>(text.line_of(text.node_of(n)))] + "/" + key;
    const std::int32_t times = seen[key]++;
    keys.push_back(times == 0 ? std::move(key) : key + "#" + std::to_string(times));
  }
  return keys;
}

// By line of `after`: the line of `before` with the same key; -1 if there is none.
std::vector<std::int32_t> matches(const GraphText& before, const GraphText& after, Numbers numbers) {
  std::unordered_map<std::string, std::int32_t> places;
  std::vector<std::string> keys = keys_of(before, numbers);
  for (std::size_t n = 0; n < keys.size(); ++n) places.emplace(std::move(keys[n]), static_cast<std::int32_t>(n));
  std::vector<std::int32_t> match;
  for (const std::string& key : keys_of(after, Numbers::shift)) {
    const auto found = places.find(key);
    match.push_back(found == places.end() ? -1 : found->second);
  }
  return match;
}

// Which lines of `after` stay in place: a longest increasing chain of the matches. O(n log n).
std::vector<bool> chain(const std::vector<std::int32_t>& match) {
  std::vector<std::int32_t> ends;  // by length: the line that ends the best chain of this length
  std::vector<std::int32_t> previous(match.size(), -1);
  for (std::size_t n = 0; n < match.size(); ++n) {
    if (match[n] < 0) continue;
    const auto less = [&](std::int32_t line, std::int32_t value) { return match[static_cast<std::size_t>(line)] < value; };
    const auto at = std::lower_bound(ends.begin(), ends.end(), match[n], less);
    if (at != ends.begin()) previous[n] = *(at - 1);
    if (at == ends.end())
      ends.push_back(static_cast<std::int32_t>(n));
    else
      *at = static_cast<std::int32_t>(n);
  }
  std::vector<bool> stays(match.size());
  for (std::int32_t n = ends.empty() ? -1 : ends.back(); n >= 0; n = previous[static_cast<std::size_t>(n)])
    stays[static_cast<std::size_t>(n)] = true;
  return stays;
}

class Merge {
 public:
  Merge(const GraphText& before, const GraphText& after, Numbers numbers)
      : before_(before), after_(after), match_(matches(before, after, numbers)) {
    is_matched_.resize(static_cast<std::size_t>(before.lines()));
    for (const std::int32_t line : match_)
      if (line >= 0) is_matched_[static_cast<std::size_t>(line)] = true;
  }

  TextDiff run() {
    const std::vector<bool> stays = chain(match_);
    std::int32_t b = 0;
    std::int32_t waiting = 0;  // the first line of `after` that is not written yet
    for (std::int32_t a = 0; a < after_.lines(); ++a) {
      if (!stays[static_cast<std::size_t>(a)]) continue;
      const std::int32_t at = match_[static_cast<std::size_t>(a)];
      old_lines(b, at);
      new_lines(waiting, a);
      common_line(at, a);
      b = at + 1;
      waiting = a + 1;
    }
    old_lines(b, before_.lines());
    new_lines(waiting, after_.lines());
    return std::move(diff_);
  }

 private:
  void old_lines(std::int32_t from, std::int32_t to) {
    for (std::int32_t n = from; n < to; ++n) {
      const bool moved = is_matched_[static_cast<std::size_t>(n)];
      ++(moved ? diff_.moved : diff_.removed);
      diff_.lines.push_back({moved ? LineKind::moved_from : LineKind::removed, n, -1});
    }
  }
  void new_lines(std::int32_t from, std::int32_t to) {
    for (std::int32_t n = from; n < to; ++n) {
      const bool moved = match_[static_cast<std::size_t>(n)] >= 0;
      diff_.added += !moved;
      diff_.lines.push_back({moved ? LineKind::moved_to : LineKind::added, -1, n});
    }
  }
  void common_line(std::int32_t b, std::int32_t a) {
    if (before_.line(b) == after_.line(a)) return diff_.lines.push_back({LineKind::same, b, a});
    ++diff_.changed;
    diff_.lines.push_back({LineKind::was, b, a});
    diff_.lines.push_back({LineKind::is, b, a});
  }

  const GraphText &before_, &after_;
  std::vector<std::int32_t> match_;  // by line of `after`
  std::vector<bool> is_matched_;     // by line of `before`
  TextDiff diff_;
};

}  // namespace

TextDiff diff_texts(const GraphText& before, const GraphText& after, Numbers numbers) {
  return Merge(before, after, numbers).run();
}

}  // namespace tapedeck::viewer
