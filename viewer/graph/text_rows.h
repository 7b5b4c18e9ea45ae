// The rows that the panel of the text shows: all lines of a text, or a difference, in which long runs of equal lines are folded
// to one row each. Rows are found by line, by the value that they define, and by a text that a person looks for.
#pragma once

#include <tapedeck/viewer/graph/graph_text.h>
#include <tapedeck/viewer/graph/text_diff.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

// A row: a line of one of the texts, or `folded` equal lines from this one on.
struct TextRow {
  LineKind kind = LineKind::same;
  std::int32_t before = -1, after = -1;
  std::int32_t folded = 0;
};

// The texts and the rows. Made again when something is folded or unfolded: O(lines).
class TextRows {
 public:
  static constexpr std::int32_t kContext = 3;  // equal lines that stay beside a change

  TextRows() = default;
  // Without `diff`, all lines of `after`. `folds`: fold the equal lines that are further than kContext from a change.
  TextRows(std::shared_ptr<const GraphText> before, std::shared_ptr<const GraphText> after,
           std::shared_ptr<const TextDiff> diff, bool folds);

  const std::vector<TextRow>& rows() const { return rows_; }
  std::int32_t count() const { return static_cast<std::int32_t>(rows_.size()); }
  const GraphText* after() const { return after_.get(); }
  const GraphText* text_of(const TextRow& row) const { return is_old(row) ? before_.get() : after_.get(); }
  std::int32_t line_of(const TextRow& row) const { return is_old(row) ? row.before : row.after; }
  std::string_view line(const TextRow& row) const { return text_of(row)->line(line_of(row)); }
  static bool is_old(const TextRow& row) {
    return row.kind == LineKind::removed || row.kind == LineKind::was || row.kind == LineKind::moved_from;
  }
  std::int32_t longest() const;

  void unfold(std::int32_t row);
  // The row that shows a line of `after`; it is unfolded if it must be. -1 for no such line.
  std::int32_t show_line(std::int32_t line);
  // The rows that hold a text, in order; small letters of `query` also find large ones.
  std::vector<std::int32_t> find(const std::string& query) const;
  // The first row of the next change after `row`, or of the one before it (by < 0); -1 if there is none.
  std::int32_t next_change(std::int32_t row, int by) const;

 private:
  void fill();

  std::shared_ptr<const GraphText> before_, after_;
  std::shared_ptr<const TextDiff> diff_;
  bool folds_ = false;
  std::set<std::int32_t> unfolded_;  // the first lines of `after` of folds that a person opened
  std::vector<TextRow> rows_;
  std::vector<std::int32_t> row_of_line_;  // by line of `after`: its row, or that of its fold
};

// The line in which the text defines a value; -1 if it does not. `word`: as word_of_value() gives it. O(length of the text).
std::int32_t line_defining(const GraphText& text, const std::string& word);

}  // namespace tapedeck::viewer
