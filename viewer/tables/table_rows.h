// A table (words/table.h) as Qt's views read it: the rows that pass a filter, in the order of a column.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/filter.h>

#include <QtCore/QAbstractTableModel>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class TableRows : public QAbstractTableModel {
 public:
  explicit TableRows(const TableLayout& layout) : layout_(layout), filter_("", layout) {}

  void show(std::shared_ptr<const Table> table, const Filter& filter);  // a null table: no rows
  const Table* table() const { return table_.get(); }
  // Of the table, in the order in which they are shown.
  const std::vector<std::int32_t>& rows() const { return rows_ ? *rows_ : nothing_; }
  bool shows_all() const { return rows_ == order_; }  // no filter hides a row
  const Totals& totals() const;                       // of the rows; worked out once. REQUIRES a table
  int place_of(std::int32_t row) const;               // where a row of the table is shown; -1 if it is not

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override {
    return parent.isValid() || !in_range(row, column) ? QModelIndex() : createIndex(row, column);
  }
  Qt::ItemFlags flags(const QModelIndex& index) const override {
    if (!index.isValid()) return Qt::NoItemFlags;
    return Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
  }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  // A view asks for the row that a person means by typing letters: the first one from `start` on whose name begins so.
  QModelIndexList match(const QModelIndex& start, int role, const QVariant& value, int hits,
                        Qt::MatchFlags flags) const override;
  void sort(int column, Qt::SortOrder order) override;  // column -1: the table's own order

 protected:
  virtual QVariant decoration(const RowIds&, int) const { return {}; }  // before the text of a column
  virtual QVariant foreground(const RowIds&, int) const { return {}; }
  virtual std::string tooltip(const RowIds&) const { return {}; }  // empty: the text of the cell
  virtual void sorted_by(RowOrder) {}

 private:
  bool in_range(int row, int column) const {
    return row >= 0 && column >= 0 && static_cast<std::size_t>(row) < rows().size() &&
           static_cast<std::size_t>(column) < layout_.columns.size();
  }
  void arrange();

  const TableLayout& layout_;
  std::shared_ptr<const Table> table_;
  Filter filter_;
  RowOrder by_;
  using Rows = std::shared_ptr<const std::vector<std::int32_t>>;
  Rows order_;  // all rows of the table; null: there is no table
  Rows rows_;   // those that pass
  const std::vector<std::int32_t> nothing_;
  std::vector<int> place_of_;  // by row of the table; empty: each row is at its own place
  mutable std::optional<Totals> totals_;
};

// The rows of a table of the plan, with the colours of roles.
class PlanRows : public TableRows {
 public:
  explicit PlanRows(TableId id);
  // A null model: no rows. `measured_us` is by node, for the table of nodes; empty: nothing was measured.
  void show(const std::shared_ptr<const PlanModel>& model, const Filter& filter, const std::vector<double>& measured_us = {});

 protected:
  QVariant decoration(const RowIds& ids, int column) const override;
  QVariant foreground(const RowIds& ids, int column) const override;
  std::string tooltip(const RowIds& ids) const override;
  void sorted_by(RowOrder by) override { note_order(id_, by); }

 private:
  TableId id_;
  std::shared_ptr<const PlanModel> model_;
  std::vector<double> measured_us_;
  std::shared_ptr<const Table> shown_;
};

}  // namespace tapedeck::viewer
