// Reads and prints lists of buffers as CSV; buffers_csv.h describes the format. Parsing works in three stages:
//
//   1. the header: the place of each known column, and names that look misspelt
//   2. the rows: numbers, lives and gaps, each checked; the first fault throws a ParseError
//   3. steps: the times of the file, which may lie far apart, become dense numbers
#include <tapedeck/capture/planner/place/buffers_csv.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostCsvBytes = std::int64_t{1} << 60;  // the most bytes of a size, an offset or an alignment
constexpr std::size_t kMostBuffers = std::size_t{1} << 26;

enum Column { kId, kLower, kUpper, kEnd, kSize, kAlignment, kHint, kOffset, kGaps, kColumns };

struct ColumnName {
  const char* name;
  Column column;
};
constexpr ColumnName kNames[] = {{"id", kId},       {"buffer", kId},           {"buffer_id", kId}, {"lower", kLower},
                                 {"start", kLower}, {"begin", kLower},         {"upper", kUpper},  {"end", kEnd},
                                 {"size", kSize},   {"alignment", kAlignment}, {"hint", kHint},    {"offset", kOffset},
                                 {"gaps", kGaps}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split_fields(std::string_view line, char at) {
  std::vector<std::string> fields;
  for (std::size_t from = 0;;) {
    const std::size_t to = line.find(at, from);
    fields.emplace_back(trimmed(line.substr(from, to - from)));
    if (to == std::string_view::npos) return fields;
    from = to + 1;
  }
}

// Splits a line at commas, except for commas inside double quotes (RFC 4180). The fields keep their quotes, so that they can be
// printed as they were read. Returns nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_row(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t from = 0;;) {
    std::size_t to = from;
    for (bool quoted = false; to < line.size() && (quoted || line[to] != ','); ++to) {
      if (line[to] == '"') quoted = !quoted;
      if (quoted && to + 1 == line.size()) return std::nullopt;
    }
    fields.emplace_back(trimmed(line.substr(from, to - from)));
    if (to >= line.size()) return fields;
    from = to + 1;
  }
}

std::string_view unquoted(std::string_view field) {
  const bool quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return quoted ? field.substr(1, field.size() - 2) : field;
}

// The column with this name in a header, or kColumns for an unknown column.
Column column_named(std::string_view field) {
  const auto known =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const ColumnName& n) { return unquoted(field) == n.name; });
  return known == std::end(kNames) ? kColumns : known->column;
}

// A piece of the file for a message: printable, and cut if it is long.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  for (std::size_t n = std::min(text.size(), kMost);; --n) {
    const std::string escaped = quoted(text.substr(0, n));
    if (escaped.size() <= kMost + 2) return escaped.substr(1, escaped.size() - 2) + (n < text.size() ? "..." : "");
  }
}

// A half-open interval of times, [first, end).
struct Times {
  std::int64_t first = 0, end = 0;
};
struct Life {
  Times whole;
  std::vector<Times> gaps;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name, std::int64_t default_alignment)
      : rest_(text), name_(name), default_alignment_(default_alignment) {}

  BufferList parse() {
    if (!next_line()) {
      line_number_ = 1;
      fail("no header row");
    }
    read_header();
    while (next_line()) {
      if (list_.rows.size() == kMostBuffers) fail("too many buffers");
      read_row();
    }
    set_steps();
    count_unread();
    find_arenas();
    return std::move(list_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw ParseError(fmt::format("{}:{}: error: {}", name_, line_number_, message));
  }

  // Moves to the next line. Returns false at the end of the text, or at a blank line.
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++line_number_;
    return !trimmed(line_).empty();
  }

  void count_unread() {
    while (!rest_.empty()) list_.unread_lines += next_line() ? 1 : 0;
  }

  void read_header() {
    if (line_.starts_with("\xEF\xBB\xBF")) line_.remove_prefix(3);  // a byte order mark
    if (line_.starts_with("\x1F\x8B")) fail("this is gzip; unpack it first (gzip -dc FILE | tapedeck offsets -)");
    list_.columns = fields_of_line();
    for (std::size_t i = 0; i < list_.columns.size(); ++i) {
      const Column known = column_named(list_.columns[i]);
      if (known == kColumns) continue;
      if (at_[known]) fail(fmt::format("column '{}' says again what '{}' says", unquoted(list_.columns[i]), named(known)));
      at_[known] = i;
    }
    if (at_[kUpper] && at_[kEnd]) fail("both 'upper' and 'end' (the last time itself): one is enough");
    for (const auto& [name, column] : {ColumnName{"id", kId}, ColumnName{"lower", kLower}, ColumnName{"size", kSize}})
      if (!at_[column])
        fail(fmt::format("no column '{}' in the header '{}'; there must be id, lower, upper and size", name,
                         shown(trimmed(line_))));
    if (!at_[kUpper] && !at_[kEnd])
      fail(fmt::format("no column 'upper' in the header '{}'; there must be id, lower, upper and size", shown(trimmed(line_))));
    for (const std::string& column : list_.columns) look_for_misspelling(unquoted(column));
  }

  // Refuses nothing, but notes a column like `aligment`: unknown columns are allowed, and this one is probably a misspelt known
  // column.
  void look_for_misspelling(std::string_view column) {
    if (column_named(column) != kColumns) return;
    std::vector<std::string_view> missing;
    for (const ColumnName& n : kNames)
      if (!at_[n.column] && n.column != kUpper && n.column != kEnd) missing.push_back(n.name);
    std::string lower(column);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (const std::string near = closest(lower, missing); !near.empty())
      list_.doubts.push_back(fmt::format("column '{}' is not looked at: did you mean '{}'?", shown(column), near));
  }

  // The name that the file gives to a column which it has.
  std::string_view named(Column column) const { return unquoted(list_.columns[*at_[column]]); }

  std::vector<std::string> fields_of_line() const {
    std::optional<std::vector<std::string>> fields = split_row(line_);
    if (!fields) fail("a quote is not closed (a field goes over one line only)");
    return std::move(*fields);
  }

  std::string_view field(Column column) const { return unquoted(list_.rows.back()[*at_[column]]); }

  // The number in a column of the current row. REQUIRES, like the functions below: the file has this column.
  std::int64_t number(Column column, std::int64_t least, std::int64_t most) const {
    const std::string_view text = field(column), what = named(column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range)
      fail(fmt::format("{} {} is too {}", what, shown(text), text.front() == '-' ? "small" : "large"));
    if (error != std::errc() || end != text.data() + text.size())
      fail(fmt::format("{} '{}' is not a whole number", what, shown(text)));
    if (value < least || value > most) fail(fmt::format("{} {} is not within {}..{}", what, value, least, most));
    return value;
  }
  std::int64_t time(Column column) const { return number(column, -kMostCsvBytes, kMostCsvBytes); }

  std::int64_t optional(Column column, std::int64_t least, std::int64_t missing) const {
    if (!at_[column] || field(column).empty()) return missing;
    const std::int64_t value = number(column, std::min(least, missing), kMostCsvBytes);
    if (value < least && value != missing) fail(fmt::format("{} {} is less than {}", named(column), value, least));
    return value;
  }

  void read_row() {
    list_.rows.push_back(fields_of_line());
    if (list_.rows.back().size() != list_.columns.size())
      fail(fmt::format("{} fields, but the header has {}", list_.rows.back().size(), list_.columns.size()));
    if (field(kId).empty()) fail("no id");
    if (const auto [first, is_new] = ids_.emplace(field(kId), line_number_); !is_new)
      fail(fmt::format("buffer {} is there already, in line {}", shown(field(kId)), first->second));
    Tenant b;
    b.bytes = number(kSize, 0, kMostCsvBytes);
    if (b.bytes > kMostCsvBytes - sum_) fail(fmt::format("the sizes up to here sum up to more than {} bytes", kMostCsvBytes));
    sum_ += b.bytes;
    b.alignment = optional(kAlignment, 1, default_alignment_);
    b.hint = optional(kHint, 0, -1);
    b.fixed = optional(kOffset, 0, -1);
    if (b.fixed >= 0 && b.fixed % b.alignment != 0)
      fail(fmt::format("offset {} is not a multiple of the alignment, {}", b.fixed, b.alignment));
    list_.buffers.push_back(std::move(b));
    read_life();
  }

  void read_life() {
    Life life;
    life.whole.first = time(kLower);
    life.whole.end = at_[kUpper] ? time(kUpper) : time(kEnd) + 1;
    if (life.whole.first >= life.whole.end) fail_never_alive();
    if (at_[kGaps])
      for (const std::string& gap : split_fields(field(kGaps), ' ')) {
        if (gap.empty()) continue;
        const Times times = read_gap(gap.substr(0, gap.find('@')), life.whole);
        if (gap.find('@') == std::string::npos || is_empty_window(gap)) life.gaps.push_back(times);
      }
    std::sort(life.gaps.begin(), life.gaps.end(), [](const Times& a, const Times& b) { return a.first < b.first; });
    // The end of the gaps so far, if they cover the life from its start. Gaps that cover the whole life are refused.
    std::int64_t from = life.whole.first;
    for (const Times& gap : life.gaps) from = gap.first <= from ? std::max(from, gap.end) : life.whole.first - 1;
    if (!life.gaps.empty() && from == life.whole.end)
      fail(fmt::format("gaps leave nothing of the life of buffer {}", shown(field(kId))));
    lives_.push_back(std::move(life));
  }

  [[noreturn]] void fail_never_alive() const {
    const Column last = at_[kUpper] ? kUpper : kEnd;
    fail(fmt::format("buffer {} is never alive: {} {} is not {} {} {}", shown(field(kId)), named(last), field(last),
                     last == kUpper ? "above" : "at or above", named(kLower), field(kLower)));
  }

  // True if the window of a gap a-b@lo:hi is empty, false if it is the whole buffer. Throws for any other window.
  bool is_empty_window(const std::string& gap) const {
    const std::string window = gap.substr(gap.find('@') + 1);
    const std::size_t colon = window.find(':');
    const char *const begin = window.data(), *const end = begin + window.size(),
                      *const middle = colon == std::string::npos ? end : begin + colon;
    std::int64_t low = 0, high = 0;
    if (middle == end || !is_number(begin, middle, &low) || !is_number(middle + 1, end, &high))
      fail(fmt::format("gap '{}' is not of the form a-b or a-b@lo:hi, of whole numbers", shown(gap)));
    const std::int64_t size = list_.buffers.back().bytes;
    if (low < 0 || low > high || high > size)
      fail(fmt::format("gap '{}': its window is not within the {} bytes of the buffer", shown(gap), size));
    if (low != high && high - low != size)
      fail(
          fmt::format("gap '{}': that part of a buffer is needed in a gap (a-b@lo:hi) is not supported, but none (0:0) and all "
                      "of it (0:{})",
                      shown(gap), size));
    return low == high;
  }

  static bool is_number(const char* begin, const char* end, std::int64_t* value) {
    const auto read = std::from_chars(begin, end, *value);
    return begin != end && read.ec == std::errc() && read.ptr == end;
  }

  Times read_gap(const std::string& text, const Times& whole) const {
    const std::size_t dash = text.find('-', 1);  // the first '-' may be a sign
    if (dash == std::string::npos) fail(fmt::format("gap '{}' is not of the form a-b, of whole numbers", shown(text)));
    Times gap;
    const char *const begin = text.data(), *const middle = begin + dash, *const end = begin + text.size();
    const auto first = std::from_chars(begin, middle, gap.first), last = std::from_chars(middle + 1, end, gap.end);
    if (first.ptr != middle || last.ptr != end || dash + 1 == text.size())
      fail(fmt::format("gap '{}' is not of the form a-b, of whole numbers", shown(text)));
    if (first.ec != std::errc() || last.ec != std::errc())
      fail(fmt::format("gap '{}' is not within the life {}..{}", shown(text), whole.first, whole.end));
    if (gap.first >= gap.end || gap.first < whole.first || gap.end > whole.end)
      fail(fmt::format("gap '{}' is not within the life {}..{}, or empty", shown(text), whole.first, whole.end));
    return gap;
  }

  // Turns times into steps: everything between two times that the file names becomes one step.
  void set_steps() {
    std::vector<std::int64_t> times;
    for (const Life& life : lives_) {
      times.push_back(life.whole.first), times.push_back(life.whole.end);
      for (const Times& gap : life.gaps) times.push_back(gap.first), times.push_back(gap.end);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto step = [&](std::int64_t time) {
      return static_cast<std::int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    if (times.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) fail("too many different times");
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      Tenant& b = list_.buffers[i];
      b.birth = step(lives_[i].whole.first);
      b.death = step(lives_[i].whole.end) - 1;
      for (const Times& gap : lives_[i].gaps) {
        const Steps hole{step(gap.first), step(gap.end) - 1};
        if (!b.holes.empty() && hole.first <= b.holes.back().last + 1)
          b.holes.back().last = std::max(b.holes.back().last, hole.last);
        else
          b.holes.push_back(hole);
      }
    }
  }

  void find_arenas() {
    const auto named = [](const std::string& column) { return unquoted(column) == "arena"; };
    const auto at =
        static_cast<std::size_t>(std::find_if(list_.columns.begin(), list_.columns.end(), named) - list_.columns.begin());
    if (at == list_.columns.size()) return;
    for (const std::vector<std::string>& row : list_.rows) list_.has_arenas |= row[at] != list_.rows[0][at];
  }

  std::string_view rest_, line_;
  const std::string& name_;
  const std::int64_t default_alignment_;
  std::size_t line_number_ = 0;
  std::optional<std::size_t> at_[kColumns];           // where each known column is, if the file has it
  std::unordered_map<std::string, std::size_t> ids_;  // the line of each id
  std::int64_t sum_ = 0;
  std::vector<Life> lives_;
  BufferList list_;
};

// The index of a column; adds the column if it does not exist.
std::size_t column_of(std::vector<std::string>& columns, const char* name) {
  const auto known =
      std::find_if(columns.begin(), columns.end(), [&](const std::string& column) { return unquoted(column) == name; });
  const auto at = static_cast<std::size_t>(known - columns.begin());
  if (known == columns.end()) columns.emplace_back(name);
  return at;
}

}  // namespace

BufferList parse_buffers(std::string_view text, const std::string& name, std::int64_t default_alignment) {
  return Parser(text, name, default_alignment).parse();
}

std::string shown_id(const BufferList& list, std::size_t i) {
  const auto column = std::find_if(list.columns.begin(), list.columns.end(),
                                   [](const std::string& name) { return column_named(name) == kId; }) -
                      list.columns.begin();
  return shown(unquoted(list.rows[i][column]));
}

std::string print_buffers(const BufferList& list, const Offsets& placed) {
  std::vector<std::string> columns = list.columns;
  const std::size_t offset = column_of(columns, "offset"), arena = column_of(columns, "arena");
  const auto line = [&](std::vector<std::string> fields) {
    if (placed.arena.empty())
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(arena));  // the column belongs to an earlier placement
    return fmt::format("{}\n", fmt::join(fields, ","));
  };
  std::string text = line(columns);
  for (std::size_t i = 0; i < list.rows.size(); ++i) {
    std::vector<std::string> fields = list.rows[i];
    fields.resize(columns.size());
    fields[offset] = std::to_string(placed.offsets[i]);
    if (!placed.arena.empty()) fields[arena] = std::to_string(placed.arena[i]);
    text += line(fields);
  }
  return text;
}

}  // namespace tapedeck
