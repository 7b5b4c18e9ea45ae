// A table of the model (model/table.h) as Qt's views read it: the rows that pass a filter, in the order of a column. One class
// serves all tables.
#pragma once

#include <tapedeck/viewer/model/filter.h>
#include <tapedeck/viewer/model/plan_model.h>

#include <QtCore/QAbstractTableModel>

#include <memory>
#include <optional>
#include <vector>

namespace tapedeck::viewer {

class TableRows : public QAbstractTableModel {
 public:
  TableRows(TableId id, QObject* parent);

  // A null model: no rows. `measured_us` is by node, for the table of nodes; empty: nothing was measured.
  void show(std::shared_ptr<const PlanModel> model, const Filter& filter, const std::vector<double>& measured_us = {});
  const Table* table() const { return measured_ ? &*measured_ : model_ ? &model_->table(id_) : nullptr; }
  const std::vector<std::int32_t>& rows() const { return rows_; }  // of the table, in the order in which they are shown
  int place_of(std::int32_t row) const;                            // where a row of the table is shown; -1 if it is not

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  void sort(int column, Qt::SortOrder order) override;  // column -1: the table's own order

 private:
  void take(const std::vector<double>& measured_us);
  void arrange();

  TableId id_;
  const TableLayout& layout_;
  std::shared_ptr<const PlanModel> model_;
  std::vector<double> measured_us_;
  std::optional<Table> measured_;  // in place of the table of the model
  Filter filter_;
  int sorted_by_ = -1;
  bool descending_ = false;
  std::vector<std::int32_t> order_;  // all rows of the table
  std::vector<std::int32_t> rows_;   // those that pass
  std::vector<int> place_of_;        // by row of the table
};

}  // namespace tapedeck::viewer
