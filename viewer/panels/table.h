// The panel of a table: the filter, the rows, and the totals of what passes and of what is selected. Nodes, values, parameters
// and decisions are this class with another table.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/words/table.h>

#include <QtWidgets/QWidget>

#include <string>

class QLabel;
class QLineEdit;
class QTreeView;

namespace tapedeck::viewer {

class FilterField;
class TableRows;

// A click on a row selects its node or value in the session, and a selection elsewhere marks and shows its row. A click on a
// column sorts by it; a right click on the header chooses the columns, and one on the rows copies or exports them.
class TablePanel : public QWidget, public Observer {
 public:
  TablePanel(TableId id, Session& session, QWidget* parent = nullptr);
  ~TablePanel() override;

  void opened() override {}
  void closed() override;
  void selection_changed() override;
  void plan_changed() override;

  TableId id() const { return id_; }
  QLineEdit* filter();
  QString filter_message() const;  // what is wrong with the filter; empty if nothing is
  QTreeView* table() { return view_; }
  QString totals() const;
  const RowIds& ids_at(int place) const;  // REQUIRES: the row is shown
  NodeId node_at(int place) const;        // of the table of nodes; kNone beyond the last row
  int row_of(NodeId n) const;             // -1 if the filter hides the node
  // The selected rows as text: a line each, and tabs between the columns that are shown.
  std::string selected_text() const;
  // Writes the rows that pass the filter, in their order, with all columns. Throws FileError.
  void write_csv(const std::string& path) const;

 private:
  void make_view();
  void refill();
  void select_row(int place);
  int place_of_selection() const;
  void show_totals();
  std::vector<std::int32_t> selected_rows() const;
  void column_menu(const QPoint& at);
  void row_menu(const QPoint& at);
  void copy() const;
  void ask_export();

  TableId id_;
  Session& session_;
  TableRows* rows_;
  FilterField* field_;
  QTreeView* view_;
  QLabel* totals_;
  std::uint64_t shown_ = 0;           // the serial number of the model in the table
  std::uint64_t shown_measured_ = 0;  // and that of the measurements
  // True while the table copies the session's selection, so that the table does not change the session.
  bool following_ = false;
};

}  // namespace tapedeck::viewer
