// The filter of a table. A row passes if all terms of the text hold:
//
//     word                       it occurs in a name, an op, a type or a module; "two words" in quotes
//     op:conv  reason:saved      it occurs in this column; op=add is exactly this
//     bytes>16k  us<5ms  runs>1  a number: > >= < <= =; k M G, KiB MiB GiB are 1024s and kB MB GB 1000s; ns us ms s
//     is:clone                   the row has this mark: clone, kept, recomputed, ...
//     -term                      the term does not hold
//
// Small and capital letters are the same. A term that cannot be read is a problem with its place in the text, and is left out.
// The last term of a text is still being typed: while it may become a right one, it is left out and no mistake.
#pragma once

#include <tapedeck/viewer/words/table.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

struct FilterProblem {
  std::size_t begin = 0, length = 0;  // the bytes of the text that it is about
  bool unfinished = false;            // the last term, only half typed
  std::string text;                   // a sentence that begins with the place: "column 7: ..."
};

class Filter {
 public:
  Filter(std::string_view text, const TableLayout& layout);

  const std::vector<FilterProblem>& problems() const { return problems_; }
  bool empty() const { return terms_.empty(); }  // then every row passes
  // By row of a table with the filter's layout: whether all terms hold. O(terms x rows), and no text is copied.
  std::vector<char> matches(const Table& table) const;
  // The rows of `order` that pass.
  std::vector<std::int32_t> kept(const Table& table, const std::vector<std::int32_t>& order) const;

 private:
  enum class Test : std::uint8_t { word, contains, equal_text, flag, more, at_least, less, at_most, equal };
  struct Term {
    Test test = Test::word;
    bool negated = false;
    int column = -1;  // or the flag
    std::string word;
    double number = 0;
  };
  friend class FilterReader;
  static bool holds(Test test, double number, double limit);
  static void add_matches(const Table& table, int column, const Term& term, std::vector<char>* rows);
  static std::vector<char> rows_of(const Term& term, const Table& table);

  std::vector<Term> terms_;
  std::vector<FilterProblem> problems_;
};

}  // namespace tapedeck::viewer
