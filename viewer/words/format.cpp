// Converts sizes, counts and budgets to text and back:
//   12897484 -> "12.30 MiB" or "12.30 MiB (12,897,484 bytes)"      0.634 -> "63.4 %"      "1.5GB" -> 1500000000      "60%" -> a
//   Budget
#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tapedeck::viewer {

namespace {

std::string printf_number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Takes a plain decimal number ("12", "1.5") from the front of `text`. Signs, exponents and locales are not read.
bool take_digits(std::string_view* text, double* value) {
  std::size_t n = 0;
  int digits = 0, points = 0;
  while (n < text->size() && (((*text)[n] >= '0' && (*text)[n] <= '9') || (*text)[n] == '.')) {
    ((*text)[n] == '.' ? points : digits)++;
    ++n;
  }
  if (digits == 0 || points > 1 || n > 40) return false;
  double result = 0, scale = 1;
  bool fraction = false;
  for (char c : text->substr(0, n)) {
    if (c == '.') {
      fraction = true;
    } else if (fraction) {
      result += (c - '0') * (scale /= 10);
    } else {
      result = result * 10 + (c - '0');
    }
  }
  *value = result;
  text->remove_prefix(n);
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string human_bytes(std::int64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (std::llabs(bytes) < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  int unit = 0;
  // The limit is below 1024, because 1023.995 would print as "1024.00".
  while (std::fabs(value) >= 1023.995 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return printf_number("%.2f ", value) + units[unit];
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;)
    digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(at -= 3), ',');
  return digits;
}

std::string grouped_numbers(std::string_view text) {
  constexpr std::size_t kShort = 3;  // digits, which are read at a glance
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_in_word = [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '%' || c == '.';
  };
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    const std::size_t digits = end - at;
    const bool begins_a_word = at == 0 || !is_in_word(text[at - 1]);
    const bool ends_a_word = end == text.size() || !is_in_word(text[end]) || text[end] == '.';
    if (digits > kShort && digits <= 18 && begins_a_word && ends_a_word && text[at] != '0') {
      result += grouped(std::strtoll(std::string(text.substr(at, digits)).c_str(), nullptr, 10));
    } else {
      end = std::max(end, at + 1);
      result += text.substr(at, end - at);
    }
    at = end;
  }
  return result;
}

std::string exact_bytes(std::int64_t bytes) {
  const std::string exact = grouped(bytes) + (bytes == 1 ? " byte" : " bytes");
  return std::llabs(bytes) < 1024 ? exact : human_bytes(bytes) + " (" + exact + ")";
}

ByteUnit ByteUnit::of(std::int64_t largest) {
  static const char* const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  ByteUnit unit;
  for (int i = 1; i < 5 && static_cast<double>(largest) >= unit.bytes * 1024 * (i == 2 ? 0.25 : 1.0); ++i)
    unit = {names[i], unit.bytes * 1024};
  return unit;
}

std::string ByteUnit::text(std::int64_t count) const {
  const double value = static_cast<double>(count) / bytes;
  if (bytes == 1) return std::to_string(count) + " B";
  if (count != 0 && std::fabs(value) < 0.0005) return std::string(count < 0 ? "-" : "") + "<0.001 " + name;
  return printf_number(count != 0 && std::fabs(value) < 0.9995 ? "%.3f " : "%.2f ", value) + name;
}

std::string ByteUnit::readable_text(std::int64_t count) const {
  const bool shows_no_digit = count != 0 && std::fabs(static_cast<double>(count) / bytes) < 0.0005;
  return shows_no_digit ? human_bytes(count) : text(count);
}

std::string ByteUnit::exact_text(std::int64_t count) const {
  const std::string exact = grouped(count) + (count == 1 ? " byte" : " bytes"), text = readable_text(count);
  return count == 0 || text.ends_with(" B") ? exact : text + " (" + exact + ")";
}

namespace {

bool takes(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

// Takes "996517848 bytes", or after such a size ", 2853376 less", from the front of the text, if it is long enough for the
// unit.
bool take_size(std::string_view* text, bool after_size, std::int64_t* bytes) {
  std::string_view rest = *text;
  if (after_size && !takes(&rest, ", ")) return false;
  std::size_t digits = 0;
  while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') ++digits;
  if (digits < 4 || digits > 18) return false;
  *bytes = std::strtoll(std::string(rest.substr(0, digits)).c_str(), nullptr, 10);
  rest.remove_prefix(digits);
  if (*bytes < 1024) return false;
  if (after_size ? !rest.starts_with(" less") && !rest.starts_with(" more") : !takes(&rest, " bytes")) return false;
  *text = rest;
  return true;
}

// Takes "150544.3 us" from the front of the text.
bool take_time(std::string_view* text, double* us) {
  std::string_view rest = *text;
  if (!take_digits(&rest, us) || !takes(&rest, " us") || (!rest.empty() && rest.front() >= 'a' && rest.front() <= 'z'))
    return false;
  *text = rest;
  return true;
}

}  // namespace

std::string in_unit(std::string_view text, const ByteUnit& unit) {
  std::string result, words;
  std::int64_t bytes = 0;
  double us = 0;
  for (bool begins_a_word = true; !text.empty();) {
    if (begins_a_word && take_time(&text, &us)) {
      result += grouped_numbers(std::exchange(words, {})) + human_us(us);
      begins_a_word = false;
      continue;
    }
    if (begins_a_word && take_size(&text, false, &bytes)) {
      result += grouped_numbers(std::exchange(words, {})) + unit.readable_text(bytes);
      if (take_size(&text, true, &bytes)) result += ", " + unit.readable_text(bytes);
      continue;
    }
    begins_a_word = text.front() == ' ' || text.front() == '(';
    words += text.front();
    text.remove_prefix(1);
  }
  return result + grouped_numbers(words);
}

std::string percent(double ratio) { return printf_number("%.1f %%", ratio * 100); }

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string human_us(double us) {
  if (us < 1000) return printf_number("%.1f us", us);
  if (us < 1e6) return printf_number("%.2f ms", us / 1e3);
  return printf_number("%.2f s", us / 1e6);
}

bool parse_bytes(std::string_view text, std::int64_t* bytes) {
  static constexpr struct {
    const char* name;
    double scale;
  } units[] = {{"", 1},      {"B", 1},       {"KB", 1e3},       {"MB", 1e6},          {"GB", 1e9},
               {"TB", 1e12}, {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.}};
  text = trimmed(text);
  double value = 0;
  if (!take_digits(&text, &value)) return false;
  text = trimmed(text);
  for (const auto& unit : units) {
    if (text != unit.name) continue;
    const double total = value * unit.scale;
    if (!(total <= 9e18)) return false;
    *bytes = static_cast<std::int64_t>(total + 0.5);
    return true;
  }
  return false;
}

bool parse_budget(std::string_view text, Budget* budget) {
  text = trimmed(text);
  if (!text.empty() && text.back() == '%') {
    text = trimmed(text.substr(0, text.size() - 1));
    double value = 0;
    if (!take_digits(&text, &value) || !text.empty() || value > 1e6) return false;
    *budget = Budget{-1, value};
    return true;
  }
  std::int64_t bytes = 0;
  if (!parse_bytes(text, &bytes)) return false;
  *budget = Budget{bytes, -1};
  return true;
}

}  // namespace tapedeck::viewer
