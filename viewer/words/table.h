// A table of facts about a plan in columns: nodes, values, parameters, decisions. Sorting, totals, the filter (filter.h), the
// text of a cell and CSV are the same for all; a table is only its layout and its cells.
//
//     layout   the columns: key (in filters and CSV), title, kind, width
//     cells    of a text column: the distinct texts, one behind the other, and which of them each row has. A filter searches
//              one long text faster than many short ones, and many short ones take several times the memory.
//              of a number column: the numbers; NaN where there is none
#pragma once

#include <tapedeck/viewer/words/format.h>

#include <tapedeck/engine/ir/graph.h>

#include <cmath>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck::viewer {

enum class TableId : std::uint8_t { nodes, values, parameters, decisions };
inline constexpr int kTableCount = 4;

enum class ColumnKind : std::uint8_t { name, text, bytes, us, count };
inline constexpr bool is_number(ColumnKind kind) { return kind >= ColumnKind::bytes; }

struct Column {
  const char* key;    // in the filter, in the first line of a CSV file, and in the glossary
  const char* title;  // in the header
  ColumnKind kind;
  int width;              // at first, in units
  bool shown = true;      // at first
  bool searched = false;  // by a word of the filter that names no column
  bool summed = false;    // in the totals
};

struct TableLayout {
  const char* name;                // "nodes": of the panel
  const char* one;                 // "node": in the totals
  const char* many;                // "nodes"
  const char* empty;               // what to say of a table without rows
  std::vector<Column> columns;     // the first `name` column is the value's name
  std::vector<const char*> flags;  // what `is:` may ask

  int column(std::string_view key) const;  // -1 if there is none
  int flag(std::string_view word) const;   // -1 if there is none
};

// The value or the node that a row stands for, which a click selects in the other panels.
struct RowIds {
  NodeId node = kNone;         // of the table of nodes
  ValueId value = kNone;       // the value that a click selects
  std::int32_t entry = kNone;  // its entry of the value log
};

struct Totals {
  std::int64_t rows = 0;
  std::vector<double> sums;  // by column; 0 for columns that are not summed
};

// How rows are ordered.
struct RowOrder {
  int column = -1;
  bool descending = false;
  bool operator<(const RowOrder& o) const { return column != o.column ? column < o.column : descending < o.descending; }
};

// The orders in which tables were shown last: the thread that makes a plan makes the orders of its tables, too. Any thread may
// call these functions.
void note_order(TableId table, RowOrder by);
std::vector<RowOrder> noted_orders(TableId table);

class Table {
 public:
  static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

  Table(const TableLayout& layout, std::int32_t rows);

  // ---- filling ----
  void set_text(int column, std::int32_t row, const std::string& text);
  void set_number(int column, std::int32_t row, double number) { cells_[column].numbers[row] = number; }
  void set_flag(int flag, std::int32_t row) { flags_[flag][row] = 1; }
  void set_ids(std::int32_t row, const RowIds& ids) { ids_[row] = ids; }
  void use_unit(const ByteUnit& unit) { unit_ = unit; }  // of all cells and totals of bytes; without one, each has its own
  void finish();                                         // REQUIRES: every cell of a text column was set
  void renew_orders();  // after numbers of a finished table changed: its orders and totals are its own, and made anew

  // ---- reading ----
  const TableLayout& layout() const { return *layout_; }
  std::int32_t rows() const { return static_cast<std::int32_t>(ids_.size()); }
  const RowIds& ids(std::int32_t row) const { return ids_[row]; }
  double number(int column, std::int32_t row) const { return cells_[column].numbers[row]; }
  std::string raw_text(int column, std::int32_t row) const {
    return std::string(text_at(cells_[column], cells_[column].text_of[row]));
  }
  std::string shown(int column, std::int32_t row) const;  // "1.50 KiB": as people read it
  std::string exact(int column, std::int32_t row) const;  // "1536": as programs read it
  std::int32_t row_of_node(NodeId n) const;               // kNone if no row stands for it
  std::int32_t row_of_entry(std::int32_t entry) const;    // the first such row; kNone if there is none

  // All rows in the order of a column; column -1: in their own order. Equal cells keep their order, and cells without a number
  // come last. An order is made once. Any thread may call it.
  std::shared_ptr<const std::vector<std::int32_t>> order(RowOrder by) const;
  std::vector<std::int32_t> sorted(int column, bool descending) const;  // as order(), made now
  Totals totals(std::span<const std::int32_t> rows) const;
  const Totals& totals_of_all() const { return totals_of_all_; }
  // "3 values · 1.50 KiB · 12.0 us".
  std::string totals_text(const Totals& totals) const;
  // A line of keys, then a line for each row; all columns, and numbers in full. A text with a comma, a quote or a line end is
  // quoted.
  void write_csv(std::ostream& out, std::span<const std::int32_t> rows) const;
  std::vector<std::int32_t> all_rows() const;

  // ---- for filters ----
  // By distinct text of the column: whether the word (in small letters) occurs in it, or is it.
  std::vector<char> texts_with(int column, const std::string& word) const;
  std::vector<char> texts_equal(int column, const std::string& word) const;
  std::vector<char> texts_beginning(int column, const std::string& word) const;
  const std::vector<std::int32_t>& text_of(int column) const { return cells_[column].text_of; }
  const std::vector<double>& numbers(int column) const { return cells_[column].numbers; }
  const std::vector<char>& flagged(int flag) const { return flags_[flag]; }

 private:
  struct Cells {
    std::string texts;                   // each with a '\n' behind it
    std::string lower;                   // the same in small letters; empty: they have no other letters
    std::vector<std::size_t> starts{0};  // by text, and one more: where it begins in both
    std::size_t count() const { return starts.size() - 1; }
    void add(const std::string& text);
    const std::string& in_small_letters() const { return lower.empty() ? texts : lower; }
    std::vector<std::int32_t> text_of;
    std::vector<double> numbers;
    std::unordered_map<std::string, std::int32_t> known;  // while it is filled; empty where all texts differ
    std::int32_t repeats = 0;                             // texts that were known already
  };
  std::vector<double> ranks(int column) const;
  static std::string_view text_at(const Cells& cells, std::int32_t text);
  std::string_view lower_text(int column, std::size_t text) const;

  std::string number_text(ColumnKind kind, double number) const;

  struct Orders;
  const TableLayout* layout_;
  std::optional<ByteUnit> unit_;
  Totals totals_of_all_;
  std::shared_ptr<Orders> orders_;
  std::vector<Cells> cells_;              // by column
  std::vector<std::vector<char>> flags_;  // by flag and row
  std::vector<RowIds> ids_;
  std::vector<std::int32_t> by_node_, by_entry_;
};

std::string in_small_letters(std::string_view text);  // of ASCII; other letters stay
// "v9" before "v10": runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace tapedeck::viewer
