// A table (words/table.h) as Qt's views read it: the rows that pass a filter, in the order of a column.
//
//     show(), sort() ----> a small table: the new rows at once
//                    ----> a large one: a thread arranges them, and the rows before are shown until they come
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/tables/arranged_rows.h>

#include <QtCore/QAbstractTableModel>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class TableRows : public QAbstractTableModel {
 public:
  explicit TableRows(const TableLayout& layout) : layout_(layout), filter_("", layout) {}

  // Tables of more rows than these are arranged in the background, once there is a `wake`: it asks the UI thread to call
  // take_arranged(), from any thread.
  static constexpr std::int32_t kRowsAtOnce = 100'000;
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  void set_rows_at_once(std::int32_t rows) { rows_at_once_ = rows; }  // for tests
  std::int32_t rows_at_once() const { return rows_at_once_; }

  void show(std::shared_ptr<const Table> table, const Filter& filter);  // a null table: no rows
  bool is_arranging() const { return task_ && task_->busy(); }  // the rows of the last show() or sort() are on their way
  std::int32_t rows_to_arrange() const { return table_ ? table_->rows() : 0; }
  bool take_arranged();  // shows the rows if they are there; false if they are not. Throws UsageError where they failed
  void finish();         // waits for them
  void stop();           // no thread calls `wake` any more, and no rows come

  // All that follows is about the rows that are shown.
  const Table* table() const { return shown_.table.get(); }
  const ArrangedRows& arranged() const { return shown_; }
  // Of the table, in the order in which they are shown.
  const std::vector<std::int32_t>& rows() const { return shown_.shown ? *shown_.shown : nothing_; }
  bool shows_all() const { return shown_.shows_all(); }  // no filter hides a row
  const Totals& totals() const;                          // of the rows; worked out once. REQUIRES a table
  int place_of(std::int32_t row) const;                  // where a row of the table is shown; -1 if it is not

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
  virtual void rows_taken() {}  // other rows are shown from now on

 private:
  bool in_range(int row, int column) const {
    return row >= 0 && column >= 0 && static_cast<std::size_t>(row) < rows().size() &&
           static_cast<std::size_t>(column) < layout_.columns.size();
  }
  bool fits_at_once() const;
  void arrange();
  void take(ArrangedRows rows);

  const TableLayout& layout_;
  // The rows that were asked for.
  std::shared_ptr<const Table> table_;
  Filter filter_;
  RowOrder by_;

  mutable ArrangedRows shown_;  // its totals are worked out when they are wanted
  const std::vector<std::int32_t> nothing_;
  std::int32_t rows_at_once_ = kRowsAtOnce;
  std::function<void()> wake_;
  std::unique_ptr<AwaitedTask<ArrangedRows>> task_;  // null until a large table is arranged; the last member: joins its thread
};

// The rows of a table of the plan, with the colours of roles.
class PlanRows : public TableRows {
 public:
  explicit PlanRows(TableId id);
  // A null model: no rows. `measured_us` is by node, for the table of nodes; empty: nothing was measured.
  void show(const std::shared_ptr<const PlanModel>& model, const Filter& filter, const std::vector<double>& measured_us = {});
  const PlanModel* shown_model() const { return shown_model_.get(); }  // that the rows are of; null: there are none

 protected:
  QVariant decoration(const RowIds& ids, int column) const override;
  QVariant foreground(const RowIds& ids, int column) const override;
  std::string tooltip(const RowIds& ids) const override;
  void sorted_by(RowOrder by) override { note_order(id_, by); }
  void rows_taken() override { shown_model_ = model_; }

 private:
  TableId id_;
  std::shared_ptr<const PlanModel> model_, shown_model_;  // that was asked for last, and that the shown rows are of
  std::vector<double> measured_us_;
  std::shared_ptr<const Table> made_;  // the table of model_
};

}  // namespace tapedeck::viewer
