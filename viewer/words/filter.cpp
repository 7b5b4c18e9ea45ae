// Reads a filter term by term, and holds each term against whole columns: a text column is searched once per distinct text.
//
//   "conv bytes>1MiB -is:clone"  ->  the terms {word conv}, {bytes > 1048576}, {not the mark clone}
#include <tapedeck/viewer/words/filter.h>

#include <tapedeck/engine/text/suggest.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tapedeck::viewer {

namespace {

struct Unit {
  std::string_view name;  // in small letters
  double scale;
};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"b", 1},
                               {"byte", 1},
                               {"bytes", 1},
                               {"k", 1024},
                               {"ki", 1024},
                               {"kib", 1024},
                               {"kb", 1e3},
                               {"m", 1048576},
                               {"mi", 1048576},
                               {"mib", 1048576},
                               {"mb", 1e6},
                               {"g", 1073741824.},
                               {"gi", 1073741824.},
                               {"gib", 1073741824.},
                               {"gb", 1e9},
                               {"t", 1099511627776.},
                               {"ti", 1099511627776.},
                               {"tib", 1099511627776.},
                               {"tb", 1e12}};
constexpr Unit kTimeUnits[] = {{"", 1}, {"us", 1}, {"µs", 1}, {"μs", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"s", 1e6}, {"min", 6e7}};
constexpr Unit kNoUnits[] = {{"", 1}};

std::span<const Unit> units_of(ColumnKind kind) {
  if (kind == ColumnKind::bytes) return kByteUnits;
  return kind == ColumnKind::us ? std::span<const Unit>(kTimeUnits) : std::span<const Unit>(kNoUnits);
}

const char* example_of(ColumnKind kind) {
  if (kind == ColumnKind::bytes) return "a size such as 4096, 16k or 1.5MiB";
  return kind == ColumnKind::us ? "a time such as 100, 5ms or 2s" : "a number such as 2";
}

// "1,234.5" at the front of a text: digits with one point; a comma between digits is left out.
std::optional<double> take_number(std::string_view* text) {
  double number = 0, scale = 1;
  bool digit = false, point = false;
  std::size_t at = 0;
  for (; at < text->size() && at < 40; ++at) {
    const char c = (*text)[at];
    if (c >= '0' && c <= '9') {
      digit = true;
      if (point)
        number += (c - '0') * (scale /= 10);
      else
        number = number * 10 + (c - '0');
    } else if (c == '.' && !point) {
      point = true;
    } else if (c != ',' || !digit || point) {
      break;
    }
  }
  text->remove_prefix(at);
  return digit ? std::optional(number) : std::nullopt;
}

enum class Reading : std::uint8_t { right, wrong, begun };

// A number with a unit. `begun`: more letters can make it right.
Reading read_number(std::string_view text, ColumnKind kind, double* number) {
  const std::optional<double> value = take_number(&text);
  if (!value) return Reading::wrong;
  Reading reading = Reading::wrong;
  for (const Unit& unit : units_of(kind)) {
    if (unit.name == text) {
      *number = *value * unit.scale;
      return Reading::right;
    }
    if (unit.name.starts_with(text)) reading = Reading::begun;
  }
  return reading;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t letters(std::string_view text) {  // of UTF-8
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

// Reads one text.
class FilterReader {
 public:
  FilterReader(std::string_view text, const TableLayout& layout, Filter* filter)
      : text_(text), layout_(layout), filter_(filter) {}

  void read() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\t') {
        ++at_;
        continue;
      }
      begin_ = at_;
      take_term();
      const bool last = at_ == text_.size();
      read_term(text_.substr(begin_, at_ - begin_), last);
    }
  }

 private:
  // To the next space outside of quotes.
  void take_term() {
    for (bool quoted = false; at_ < text_.size() && (quoted || (text_[at_] != ' ' && text_[at_] != '\t')); ++at_)
      if (text_[at_] == '"') quoted = !quoted;
  }

  void problem(std::string_view part, bool unfinished, const std::string& sentence) {
    const std::size_t begin = static_cast<std::size_t>(part.data() - text_.data());
    const std::string place = "column " + std::to_string(letters(text_.substr(0, begin)) + 1) + ": ";
    filter_->problems_.push_back({begin, part.size(), unfinished, place + sentence});
  }

  // A term without anything: a mistake, unless it is still being typed.
  void nothing(std::string_view term, bool last) {
    const std::string shown = "'" + std::string(term) + "'";
    if (last)
      problem(term, true, shown + " is not finished, and is left out so far");
    else
      problem(term, false, "nothing follows " + shown + "; write the term without a space");
  }

  void read_term(std::string_view term, bool last) {
    Filter::Term read;
    std::string_view body = term;
    if (body.front() == '-') {
      read.negated = true;
      body.remove_prefix(1);
    }
    if (body.empty()) return nothing(term, last);
    const std::size_t key = key_length(body);
    if (key == 0) {
      read.word = unquoted(body);
      if (read.word.empty()) return nothing(term, last);
      filter_->terms_.push_back(read);
      return;
    }
    const std::size_t sign = body.substr(key).starts_with(">=") || body.substr(key).starts_with("<=") ? 2 : 1;
    read_condition(term, body.substr(0, key), body.substr(key, sign), body.substr(key + sign), last, &read);
  }

  // The letters before a sign; 0 if the term is a word.
  static std::size_t key_length(std::string_view body) {
    std::size_t n = 0;
    while (n < body.size() && is_letter(body[n])) ++n;
    return n < body.size() && std::string_view(":<>=").find(body[n]) != std::string_view::npos ? n : 0;
  }

  static std::string unquoted(std::string_view word) {
    std::string text = in_small_letters(word);
    std::erase(text, '"');
    return text;
  }

  void read_condition(std::string_view term, std::string_view key, std::string_view sign, std::string_view value, bool last,
                      Filter::Term* read) {
    const std::string name = in_small_letters(key);
    if (name == "is") return read_flag(term, value, sign, last, read);
    read->column = layout_.column(name);
    if (read->column < 0) return problem(key, false, unknown(name));
    const ColumnKind kind = layout_.columns[read->column].kind;
    if (!fits(kind, sign)) return problem(term, false, wrong_sign(name, kind));
    if (unquoted(value).empty()) return nothing(term, last);
    if (!is_number(kind)) {
      read->test = sign == "=" ? Filter::Test::equal_text : Filter::Test::contains;
      read->word = unquoted(value);
    } else {
      read->test = test_of(sign);
      const Reading reading = read_number(unquoted(value), kind, &read->number);
      if (reading == Reading::begun && last) return nothing(term, last);
      if (reading != Reading::right)
        return problem(value, false, "'" + std::string(value) + "' cannot be read; write " + example_of(kind));
    }
    filter_->terms_.push_back(*read);
  }

  void read_flag(std::string_view term, std::string_view value, std::string_view sign, bool last, Filter::Term* read) {
    if (sign != ":" && sign != "=")
      return problem(term, false, "'is' asks for a mark: write is:" + std::string(layout_.flags[0]));
    const std::string word = unquoted(value);
    if (word.empty()) return nothing(term, last);
    read->test = Filter::Test::flag;
    read->column = layout_.flag(word);
    if (read->column >= 0) return filter_->terms_.push_back(*read);
    const bool begun = std::any_of(layout_.flags.begin(), layout_.flags.end(),
                                   [&](const char* f) { return std::string_view(f).starts_with(word); });
    if (begun && last) return nothing(term, last);
    problem(value, false, "no row can be '" + word + "'" + near(word, {layout_.flags.begin(), layout_.flags.end()}));
  }

  static bool fits(ColumnKind kind, std::string_view sign) {
    return is_number(kind) ? sign != ":" : sign == ":" || sign == "=";
  }

  static std::string wrong_sign(const std::string& name, ColumnKind kind) {
    return is_number(kind) ? "'" + name + "' is a number: write " + name + ">2 or " + name + "<2"
                           : "'" + name + "' is a text: write " + name + ":word";
  }

  static Filter::Test test_of(std::string_view sign) {
    if (sign == ">") return Filter::Test::more;
    if (sign == ">=") return Filter::Test::at_least;
    if (sign == "<") return Filter::Test::less;
    return sign == "<=" ? Filter::Test::at_most : Filter::Test::equal;
  }

  // A near word, or all words.
  static std::string near(const std::string& word, const std::vector<std::string_view>& known) {
    if (const std::string hint = did_you_mean(word, known); !hint.empty()) return hint;
    std::string list;
    for (const std::string_view k : known) list += (list.empty() ? "; there are " : ", ") + std::string(k);
    return list;
  }

  std::string unknown(const std::string& name) const {
    std::vector<std::string_view> known{"is"};
    for (const Column& column : layout_.columns) known.emplace_back(column.key);
    return "this table has no column '" + name + "'" + near(name, known);
  }

  std::string_view text_;
  const TableLayout& layout_;
  Filter* filter_;
  std::size_t at_ = 0, begin_ = 0;
};

Filter::Filter(std::string_view text, const TableLayout& layout) { FilterReader(text, layout, this).read(); }

bool Filter::holds(Test test, double number, double limit) {
  switch (test) {
    case Test::more:
      return number > limit;
    case Test::at_least:
      return number >= limit;
    case Test::less:
      return number < limit;
    case Test::at_most:
      return number <= limit;
    default:
      return number == limit;
  }
}

// Sets the rows whose text in this column holds the word.
void Filter::add_matches(const Table& table, int column, const Term& term, std::vector<char>* rows) {
  const std::vector<std::int32_t>& text_of = table.text_of(column);
  const std::vector<char> found =
      term.test == Test::equal_text ? table.texts_equal(column, term.word) : table.texts_with(column, term.word);
  for (std::size_t row = 0; row < rows->size(); ++row) (*rows)[row] |= found[text_of[row]];
}

std::vector<char> Filter::rows_of(const Term& term, const Table& table) {
  std::vector<char> rows(static_cast<std::size_t>(table.rows()));
  if (rows.empty()) return rows;
  if (term.test == Test::flag) return table.flagged(term.column);
  if (term.test == Test::word) {
    for (int c = 0; c < static_cast<int>(table.layout().columns.size()); ++c)
      if (table.layout().columns[c].searched) add_matches(table, c, term, &rows);
    return rows;
  }
  if (term.test == Test::contains || term.test == Test::equal_text) {
    add_matches(table, term.column, term, &rows);
    return rows;
  }
  const std::vector<double>& numbers = table.numbers(term.column);
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = !std::isnan(numbers[row]) && holds(term.test, numbers[row], term.number);
  return rows;
}

std::vector<char> Filter::matches(const Table& table) const {
  std::vector<char> all(static_cast<std::size_t>(table.rows()), 1);
  for (const Term& term : terms_) {
    const std::vector<char> rows = rows_of(term, table);
    for (std::size_t row = 0; row < all.size(); ++row)
      all[row] &= static_cast<char>(rows[row] != static_cast<char>(term.negated));
  }
  return all;
}

std::vector<std::int32_t> Filter::kept(const Table& table, const std::vector<std::int32_t>& order) const {
  if (empty()) return order;
  const std::vector<char> passes = matches(table);
  std::vector<std::int32_t> rows;
  rows.reserve(order.size());
  for (const std::int32_t row : order)
    if (passes[row]) rows.push_back(row);
  return rows;
}

}  // namespace tapedeck::viewer
