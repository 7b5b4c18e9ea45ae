#include <tapedeck/viewer/panels/table_rows.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/words/glossary.h>

#include <QtGui/QColor>

#include <cstring>
#include <utility>

namespace tapedeck::viewer {

namespace {

QColor qt(Colour c) { return QColor(c.r, c.g, c.b); }

int alignment(ColumnKind kind) {
  return static_cast<int>((is_number(kind) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
}

// NaN stands for no time, and equals itself here.
bool same_times(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

}  // namespace

TableRows::TableRows(TableId id, QObject* parent)
    : QAbstractTableModel(parent), id_(id), layout_(layout_of(id)), filter_("", layout_) {}

void TableRows::show(std::shared_ptr<const PlanModel> model, const Filter& filter, const std::vector<double>& measured_us) {
  beginResetModel();
  const bool same = model == model_ && same_times(measured_us, measured_us_);
  model_ = std::move(model);
  filter_ = filter;
  if (!same) take(measured_us);
  arrange();
  endResetModel();
}

void TableRows::take(const std::vector<double>& measured_us) {
  measured_us_ = measured_us;
  measured_.reset();
  if (model_ && !measured_us.empty()) measured_ = with_measured(model_->table(id_), measured_us);
}

void TableRows::sort(int column, Qt::SortOrder order) {
  beginResetModel();
  by_ = {column, order == Qt::DescendingOrder};
  note_order(id_, by_);
  arrange();
  endResetModel();
}

void TableRows::arrange() {
  order_.reset();
  rows_.reset();
  place_of_.clear();
  const Table* shown = table();
  if (shown == nullptr) return;
  order_ = rows_ = shown->order(by_);
  if (!filter_.empty()) rows_ = std::make_shared<const std::vector<std::int32_t>>(filter_.kept(*shown, *order_));
  place_of_.assign(static_cast<std::size_t>(shown->rows()), -1);
  for (std::size_t i = 0; i < rows_->size(); ++i) place_of_[(*rows_)[i]] = static_cast<int>(i);
}

int TableRows::place_of(std::int32_t row) const {
  return row >= 0 && row < static_cast<std::int32_t>(place_of_.size()) ? place_of_[row] : -1;
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
  const bool is_role = column.key == std::string_view("role");
  if (role == Qt::DecorationRole && is_role && ids.value != kNone)
    return qt(role_class_colour(role_of(model_->plan(), ids.value)));
  if (role == Qt::ForegroundRole && column.key == std::string_view("live") && ids.node == model_->peak_node())
    return qt(colours::kBudget);
  if (role != Qt::ToolTipRole) return {};
  if (column.kind == ColumnKind::bytes) return tooltip_of(shown->exact(index.column(), row) + " bytes");
  if (ids.node != kNone) return tooltip_of(node_line(*model_, ids.node));
  return tooltip_of(shown->shown(index.column(), row));
}

}  // namespace tapedeck::viewer
