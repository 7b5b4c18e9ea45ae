#include <tapedeck/viewer/tables/table_rows.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/glossary.h>

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
  beginResetModel();
  table_ = std::move(table);
  filter_ = filter;
  arrange();
  endResetModel();
}

void TableRows::sort(int column, Qt::SortOrder order) {
  beginResetModel();
  by_ = {column, order == Qt::DescendingOrder};
  sorted_by(by_);
  arrange();
  endResetModel();
}

void TableRows::arrange() {
  order_.reset();
  rows_.reset();
  place_of_.clear();
  totals_.reset();
  const Table* shown = table();
  if (shown == nullptr) return;
  order_ = rows_ = shown->order(by_);
  if (!filter_.empty()) rows_ = std::make_shared<const std::vector<std::int32_t>>(filter_.kept(*shown, *order_));
  if (shows_all() && by_.column < 0) return;  // every row is at its own place
  place_of_.assign(static_cast<std::size_t>(shown->rows()), -1);
  for (std::size_t i = 0; i < rows_->size(); ++i) place_of_[(*rows_)[i]] = static_cast<int>(i);
}

int TableRows::place_of(std::int32_t row) const {
  if (table() == nullptr || row < 0 || row >= table()->rows()) return -1;
  return place_of_.empty() ? row : place_of_[row];
}

const Totals& TableRows::totals() const {
  if (!totals_) totals_ = table()->totals(rows());
  return *totals_;
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
  const std::int32_t row = (*rows_)[index.row()];
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
    shown_.reset();
    if (model && measured_us.empty()) shown_ = std::shared_ptr<const Table>(model, &model->table(id_));
    if (model && !measured_us.empty()) shown_ = std::make_shared<const Table>(with_measured(model->table(id_), measured_us));
  }
  TableRows::show(shown_, filter);
}

QVariant PlanRows::decoration(const RowIds& ids, int column) const {
  const bool is_role = layout_of(id_).columns[column].key == std::string_view("role");
  return is_role && ids.value != kNone ? QVariant(qt(role_class_colour(role_of(model_->plan(), ids.value)))) : QVariant();
}

QVariant PlanRows::foreground(const RowIds& ids, int column) const {
  const bool is_live = layout_of(id_).columns[column].key == std::string_view("live");
  return is_live && ids.node == model_->peak_node() ? QVariant(qt(colours::kBudget)) : QVariant();
}

std::string PlanRows::tooltip(const RowIds& ids) const {
  return ids.node != kNone ? node_line(*model_, ids.node) : std::string();
}

}  // namespace tapedeck::viewer
