// A table, its filter and its totals. The rows that a person sees are counted by their place; the rows of the table keep their
// numbers when it is sorted or filtered.
#include <tapedeck/viewer/tables/filtered_table.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/tables/filter_field.h>

#include <QtCore/QItemSelectionModel>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>

namespace tapedeck::viewer {

namespace {

// Names are cut in the middle, because their ends tell them apart; other texts at the end.
class Cutter : public QStyledItemDelegate {
 public:
  Cutter(const TableLayout& layout, QObject* parent) : QStyledItemDelegate(parent), layout_(layout) {}

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    option->state &= ~QStyle::State_HasFocus;  // the view draws the focus around the row
    option->textElideMode = layout_.columns[index.column()].kind == ColumnKind::name ? Qt::ElideMiddle : Qt::ElideRight;
  }

 private:
  const TableLayout& layout_;
};

}  // namespace

FilteredTable::FilteredTable(const TableLayout& layout, TableRows* rows, QWidget* parent)
    : QWidget(parent),
      layout_(layout),
      rows_(rows),
      field_(new FilterField(layout, [this] { filter_changed(); })),
      view_(new RowsView([this] { copy(); }, [this] { row_hovered(-1); })),
      totals_(new QLabel) {
  rows_->setParent(this);
  rows_->set_wake(
      [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { take_arranged(); }), Qt::QueuedConnection); });
  make_view();
  totals_->setTextFormat(Qt::PlainText);
  totals_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  totals_->setToolTip(
      QStringLiteral("The rows that pass the filter, and the sums of their columns. The bytes are those of all rows together: "
                     "most of them are not alive at the same time."));
  totals_->setWordWrap(true);  // a long line must not make the panel wider
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  column->addWidget(field_);
  column->addWidget(view_);
  column->addWidget(totals_);
  setMinimumHeight(60);  // a low window squeezes the parts, so that the pictures keep their room
}

FilteredTable::~FilteredTable() {
  rows_->stop();
  if (summing_) summing_->cancel();
}

void FilteredTable::make_view() {
  const TableLayout& layout = layout_;
  view_->setModel(rows_);
  view_->setItemDelegate(new Cutter(layout, view_));
  view_->setAccessibleName(QString::fromLatin1(layout.name));
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  QHeaderView* header = view_->header();
  const auto last = std::find_if(layout.columns.rbegin(), layout.columns.rend(), [](const Column& c) { return c.shown; });
  header->setStretchLastSection(!is_number(last->kind));  // a number far from its neighbours is hard to read
  header->setMinimumSectionSize(30);
  header->setSortIndicator(-1, Qt::AscendingOrder);
  header->setSortIndicatorClearable(true);  // a third click gives the order of the table back
  header->setContextMenuPolicy(Qt::CustomContextMenu);
  for (int c = 0; c < rows_->columnCount(); ++c) {
    view_->setColumnWidth(c, layout.columns[c].width);
    view_->setColumnHidden(c, !layout.columns[c].shown);
  }
  header->setSectionsClickable(true);
  header->setSortIndicatorShown(true);
  connect(header, &QHeaderView::sortIndicatorChanged, this, guarded(this, [this](int column, Qt::SortOrder order) {
            rows_shown([&] { rows_->sort(column, order); });
            order_changed();
            show_totals();
          }));
  connect(header, &QHeaderView::customContextMenuRequested, this, guarded(this, [this](const QPoint& at) { column_menu(at); }));
  connect(view_, &RowsView::customContextMenuRequested, this, guarded(this, [this](const QPoint& at) { row_menu(at); }));
  connect(view_, &RowsView::entered, this, guarded(this, [this](const QModelIndex& index) { row_hovered(index.row()); }));
  connect(view_, &RowsView::activated, this, guarded(this, [this] { row_activated(); }));
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          guarded(this, [this](const QModelIndex& now, const QModelIndex&) {
            if (!following_ && now.isValid()) row_chosen(now.row());
          }));
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this, guarded(this, [this] { show_totals(); }));
}

QLineEdit* FilteredTable::filter() { return field_->edit(); }
QString FilteredTable::filter_message() const { return field_->message(); }
QString FilteredTable::totals() const { return totals_->text(); }
const Filter& FilteredTable::filter_in_use() const { return field_->filter(); }
const RowIds& FilteredTable::ids_at(int place) const { return rows_->table()->ids(rows_->rows()[place]); }

void FilteredTable::follow(int place) {
  const QModelIndex index = place < 0 ? QModelIndex() : rows_->index(place, 0);
  if (index.isValid() && view_->currentIndex().row() == place) return;
  const bool outer = std::exchange(following_, true);
  if (index.isValid()) {
    view_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    layout()->activate();  // the line of totals of the selection makes the view lower
    view_->scrollTo(index);
  } else {
    view_->selectionModel()->clear();
  }
  following_ = outer;
}

void FilteredTable::rows_shown(const std::function<void()>& show) {
  const bool outer = std::exchange(following_, true);
  show();
  following_ = outer;
}

void FilteredTable::take_arranged() {
  bool taken = false;
  rows_shown([&] { taken = rows_->take_arranged(); });
  if (!taken) return;
  order_changed();
  show_totals();
}

bool FilteredTable::settled() const { return !rows_->is_arranging() && (!summing_ || !summing_->busy()); }

void FilteredTable::finish() {
  if (rows_->is_arranging()) {
    rows_shown([&] { rows_->finish(); });
    order_changed();
    show_totals();
  }
  if (!summing_ || !summing_->busy()) return;
  if (const std::optional<SelectedTotals> sum = summing_->wait()) show_selected_totals(*sum);
}

void FilteredTable::set_rows_at_once(int rows) const { rows_->set_rows_at_once(rows); }

// ---- totals ----

// The ranges of the selection model may overlap, and stand in the order in which they were selected.
PlaceRanges FilteredTable::selected_places() const {
  PlaceRanges ranges, merged;
  for (const QItemSelectionRange& range : view_->selectionModel()->selection())
    ranges.emplace_back(range.top(), range.bottom());
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [top, bottom] : ranges) {
    const int first = merged.empty() ? top : std::max(top, merged.back().second + 1);
    if (first <= bottom) merged.emplace_back(first, bottom);
  }
  return merged;
}

// "12 nodes · 3.00 MiB · 24.0 us, of 80".
std::string FilteredTable::totals_of_rows() const {
  const Table& table = *rows_->table();
  if (table.rows() == 0) return table.layout().empty;
  const std::string all = table.totals_text(table.totals_of_all());
  std::string text = rows_->shows_all() ? all : table.totals_text(rows_->totals());
  if (rows_->rowCount() < table.rows()) text += ", of " + all;
  return text;
}

// Sums of many rows are worked out in the background: "…" stands for them.
std::string FilteredTable::selected_totals() {
  const PlaceRanges places = selected_places();
  const std::int64_t count = count_of(places);
  if (count == 0) return "";
  const Table& table = *rows_->table();
  const auto line = [&](const Totals& totals) { return "\nselected: " + table.totals_text(totals); };
  if (count == rows_->rowCount()) return line(rows_->shows_all() ? table.totals_of_all() : rows_->totals());
  if (count <= rows_->rows_at_once()) return line(table.totals(rows_at(rows_->rows(), places)));
  if (!summing_)
    summing_ = std::make_unique<AwaitedTask<SelectedTotals>>(
        [this] { QMetaObject::invokeMethod(this, guarded(this, [this] { take_selected_totals(); }), Qt::QueuedConnection); });
  summing_->start([table = rows_->arranged().table, rows = rows_->arranged().shown, places](const std::atomic<bool>&) {
    return SelectedTotals{table->totals(rows_at(*rows, places)), ""};
  });
  return "\nselected: " + grouped(count) + " " + layout_.many + " · …";
}

void FilteredTable::take_selected_totals() {
  if (const std::optional<SelectedTotals> sum = summing_->take()) show_selected_totals(*sum);
}

void FilteredTable::show_selected_totals(const SelectedTotals& sum) {
  const std::string text = sum.error.empty() ? rows_->table()->totals_text(sum.totals) : sum.error;
  totals_->setText(QString::fromStdString(totals_of_rows() + "\nselected: " + text));
}

// "12 nodes · 3.00 MiB · 24.0 us, of 80; selected: 2 nodes · ..."
void FilteredTable::show_totals() {
  if (summing_) summing_->cancel();
  if (rows_->is_arranging())
    return totals_->setText(
        QString::fromStdString("arranging " + grouped(rows_->rows_to_arrange()) + " " + layout_.many + "…"));
  if (rows_->table() == nullptr) return totals_->clear();
  totals_->setText(QString::fromStdString(totals_of_rows() + selected_totals()));
}

// ---- copies and files ----

std::string FilteredTable::selected_text() const {
  const Table* table = rows_->table();
  std::string text;
  if (table == nullptr) return text;
  for (const std::int32_t row : rows_at(rows_->rows(), selected_places())) {
    std::string line;
    for (int c = 0; c < rows_->columnCount(); ++c) {
      const int column = view_->header()->logicalIndex(c);
      if (!view_->isColumnHidden(column)) line += (line.empty() ? "" : "\t") + table->shown(column, row);
    }
    text += line + "\n";
  }
  return text;
}

void FilteredTable::copy() const { QGuiApplication::clipboard()->setText(QString::fromStdString(selected_text())); }

void FilteredTable::write_csv(const std::string& path) {
  finish();
  std::ostringstream text;
  if (rows_->table() != nullptr) rows_->table()->write_csv(text, rows_->rows());
  AtomicWriter out(path);
  out.write(text.str());
  out.commit();
}

void FilteredTable::ask_export() {
  const QString name = QString::fromLatin1(layout_.name) + QStringLiteral(".csv");
  const QString path = QFileDialog::getSaveFileName(this, QStringLiteral("Export CSV"), name, QStringLiteral("CSV (*.csv)"));
  if (!path.isEmpty()) write_csv(path.toStdString());
}

// ---- menus ----

void FilteredTable::column_menu(const QPoint& at) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  for (int c = 0; c < rows_->columnCount(); ++c) {
    QAction* action = menu->addAction(QString::fromLatin1(layout_.columns[c].title));
    action->setCheckable(true);
    action->setChecked(!view_->isColumnHidden(c));
    action->setEnabled(c != 0);  // a table without any column would have no header to bring one back
    connect(action, &QAction::toggled, this, guarded(this, [this, c](bool on) { view_->setColumnHidden(c, !on); }));
  }
  menu->popup(view_->header()->mapToGlobal(at));
}

void FilteredTable::row_menu(const QPoint& at) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  connect(menu->addAction(QStringLiteral("Copy the selected rows\tCtrl+C")), &QAction::triggered, this,
          guarded(this, [this] { copy(); }));
  connect(menu->addAction(QStringLiteral("Export CSV…")), &QAction::triggered, this, guarded(this, [this] { ask_export(); }));
  menu->popup(view_->viewport()->mapToGlobal(at));
}

}  // namespace tapedeck::viewer
