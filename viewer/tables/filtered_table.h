// A table with its filter and its totals. A click on a column sorts by it; a right click on the header chooses the columns, and
// one on the rows copies or exports them.
#pragma once

#include <tapedeck/viewer/tables/rows_view.h>
#include <tapedeck/viewer/tables/table_rows.h>
#include <tapedeck/viewer/words/table.h>

#include <QtWidgets/QWidget>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

class QLabel;
class QLineEdit;

namespace tapedeck::viewer {

class FilterField;

// Rows are counted by their place: the order in which they are shown.
class FilteredTable : public QWidget {
 public:
  // `layout` outlives the table, and so do `rows`, whose parent becomes the table.
  FilteredTable(const TableLayout& layout, TableRows* rows, QWidget* parent = nullptr);
  ~FilteredTable() override;

  QLineEdit* filter();
  QString filter_message() const;  // what is wrong with the filter; empty if nothing is
  RowsView* table() { return view_; }
  QString totals() const;
  const TableLayout& layout_of_table() const { return layout_; }
  const RowIds& ids_at(int place) const;  // REQUIRES: the row is shown
  // The selected rows as text: a line each, and tabs between the columns that are shown.
  std::string selected_text() const;
  // Writes the rows that pass the filter, in their order, with all columns; waits for them. Throws FileError.
  void write_csv(const std::string& path);
  // A large table is arranged and summed in the background; the rows before are shown meanwhile.
  bool settled() const;
  virtual void finish();                  // waits for that
  void set_rows_at_once(int rows) const;  // for tests: what a large table is

 protected:
  TableRows& rows() { return *rows_; }
  const TableRows& rows() const { return *rows_; }
  const Filter& filter_in_use() const;
  virtual void filter_changed() = 0;
  virtual void row_chosen(int place) = 0;  // by a person
  virtual void row_hovered(int) {}         // -1: the mouse left
  virtual void row_activated() {}          // by a double click or Enter
  virtual void order_changed() {}
  void follow(int place);                              // marks and shows a row that was chosen elsewhere; -1: none
  void rows_shown(const std::function<void()>& show);  // runs `show`, which changes the rows, without choosing any
  void show_totals();

 private:
  struct SelectedTotals {
    Totals totals;
    std::string error;
  };
  void make_view();
  void take_arranged();
  PlaceRanges selected_places() const;
  std::string selected_totals();
  void take_selected_totals();
  void show_selected_totals(const SelectedTotals& sum);
  std::string totals_of_rows() const;
  void column_menu(const QPoint& at);
  void row_menu(const QPoint& at);
  void copy() const;
  void ask_export();

  const TableLayout& layout_;
  TableRows* rows_;
  FilterField* field_;
  RowsView* view_;
  QLabel* totals_;
  // True while the table copies a choice from elsewhere, which then is no choice of a person.
  bool following_ = false;
  std::unique_ptr<AwaitedTask<SelectedTotals>>
      summing_;  // null until many rows are selected; the last member: joins its thread
};

}  // namespace tapedeck::viewer
