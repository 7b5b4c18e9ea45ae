#include <tapedeck/viewer/tables/table_rows.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/glossary.h>

#include <tapedeck/engine/ir/error.h>

#include <QtGui/QColor>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tapedeck::viewer {

namespace {

int alignment(ColumnKind kind) {
  return static_cast<int>((is_number(kind) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
}

// NaN stands for no time, and equals itself here.
bool same_times(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

}  // namespace

void TableRows::show(std::shared_ptr<const Table> table, const Filter& filter) {
  table_ = std::move(table);
  filter_ = filter;
  arrange();
}

void TableRows::sort(int column, Qt::SortOrder order) {
  by_ = {column, order == Qt::DescendingOrder};
  sorted_by(by_);
  arrange();
}

// All rows in their own order are no work.
bool TableRows::fits_at_once() const {
  return !wake_ || !table_ || table_->rows() <= rows_at_once_ || (filter_.empty() && by_.column < 0);
}

void TableRows::arrange() {
  if (fits_at_once()) {
    if (task_) task_->cancel();
    const std::atomic<bool> cancelled{false};
    return take(arranged_rows(table_, filter_, by_, false, cancelled));
  }
  if (!task_) task_ = std::make_unique<AwaitedTask<ArrangedRows>>(wake_);
  task_->start([table = table_, filter = filter_, by = by_](const std::atomic<bool>& cancelled) {
    return arranged_rows(table, filter, by, true, cancelled);
  });
}

void TableRows::take(ArrangedRows rows) {
  beginResetModel();
  shown_ = std::move(rows);
  rows_taken();
  endResetModel();
}

bool TableRows::take_arranged() {
  std::optional<ArrangedRows> rows = task_ ? task_->take() : std::nullopt;
  if (!rows) return false;
  if (!rows->error.empty()) throw UsageError("the table cannot be arranged: " + rows->error);
  take(std::move(*rows));
  return true;
}

void TableRows::finish() {
  std::optional<ArrangedRows> rows = task_ ? task_->wait() : std::nullopt;
  if (rows && rows->error.empty()) take(std::move(*rows));
}

void TableRows::stop() {
  if (task_) task_->cancel();
}

int TableRows::place_of(std::int32_t row) const {
  if (table() == nullptr || row < 0 || row >= table()->rows()) return -1;
  return shown_.place_of.empty() ? row : shown_.place_of[static_cast<std::size_t>(row)];
}

const Totals& TableRows::totals() const {
  if (!shown_.totals) shown_.totals = table()->totals(rows());
  return *shown_.totals;
}

int TableRows::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows().size()); }
int TableRows::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(layout_.columns.size());
}

QVariant TableRows::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const Column& column = layout_.columns[section];
  if (role == Qt::DisplayRole) return QString::fromLatin1(column.title);
  if (role == Qt::ToolTipRole)
    return tooltip_of(explain_term(column.key) + "\nIn the filter: " + column.key + (is_number(column.kind) ? ">" : ":"));
  return role == Qt::TextAlignmentRole ? QVariant(alignment(column.kind)) : QVariant();
}

QVariant TableRows::data(const QModelIndex& index, int role) const {
  const Table* shown = table();
  if (shown == nullptr || !index.isValid() || index.row() >= rowCount()) return {};
  const std::int32_t row = rows()[static_cast<std::size_t>(index.row())];
  const Column& column = layout_.columns[index.column()];
  if (role == Qt::DisplayRole) return QString::fromStdString(shown->shown(index.column(), row));
  if (role == Qt::TextAlignmentRole) return alignment(column.kind);
  const RowIds& ids = shown->ids(row);
  if (role == Qt::DecorationRole) return decoration(ids, index.column());
  if (role == Qt::ForegroundRole) return foreground(ids, index.column());
  if (role != Qt::ToolTipRole) return {};
  if (column.kind == ColumnKind::bytes) return tooltip_of(shown->exact(index.column(), row) + " bytes");
  const std::string tip = tooltip(ids);
  return tooltip_of(tip.empty() ? shown->shown(index.column(), row) : tip);
}

QModelIndexList TableRows::match(const QModelIndex& start, int role, const QVariant& value, int hits,
                                 Qt::MatchFlags flags) const {
  const Table* shown = table();
  const auto name =
      std::find_if(layout_.columns.begin(), layout_.columns.end(), [](const Column& c) { return c.kind == ColumnKind::name; });
  if (shown == nullptr || !start.isValid() || role != Qt::DisplayRole || name == layout_.columns.end())
    return QAbstractTableModel::match(start, role, value, hits, flags);
  const int column = static_cast<int>(name - layout_.columns.begin());
  const std::string word = in_small_letters(value.toString().toStdString());
  std::vector<char> begins = shown->texts_beginning(column, word);
  const std::vector<char> with_mark = shown->texts_beginning(column, "%" + word);  // nobody types the mark of a value
  for (std::size_t text = 0; text < begins.size(); ++text) begins[text] |= with_mark[text];
  const std::vector<std::int32_t>& text_of = shown->text_of(column);
  for (int i = 0; i < rowCount(); ++i) {
    const int place = (start.row() + i) % rowCount();
    if (begins[text_of[rows()[place]]] != 0) return {index(place, start.column())};
  }
  return {};
}

// ---- the tables of a plan ----

PlanRows::PlanRows(TableId id) : TableRows(layout_of(id)), id_(id) {}

void PlanRows::show(const std::shared_ptr<const PlanModel>& model, const Filter& filter,
                    const std::vector<double>& measured_us) {
  const bool same = model == model_ && same_times(measured_us, measured_us_);
  model_ = model;
  if (!same) {
    measured_us_ = measured_us;
    made_.reset();
    if (model && measured_us.empty()) made_ = std::shared_ptr<const Table>(model, &model->table(id_));
    if (model && !measured_us.empty()) made_ = std::make_shared<const Table>(with_measured(model->table(id_), measured_us));
  }
  TableRows::show(made_, filter);
}

QVariant PlanRows::decoration(const RowIds& ids, int column) const {
  const bool is_role = layout_of(id_).columns[column].key == std::string_view("role");
  return is_role && ids.value != kNone ? QVariant(qt(role_class_colour(role_of(shown_model_->plan(), ids.value)))) : QVariant();
}

QVariant PlanRows::foreground(const RowIds& ids, int column) const {
  const bool is_live = layout_of(id_).columns[column].key == std::string_view("live");
  return is_live && ids.node == shown_model_->peak_node() ? QVariant(qt(colours::kBudget)) : QVariant();
}

std::string PlanRows::tooltip(const RowIds& ids) const {
  return ids.node != kNone ? node_line(*shown_model_, ids.node) : std::string();
}

}  // namespace tapedeck::viewer
