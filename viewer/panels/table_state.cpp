#include <tapedeck/viewer/panels/table_state.h>

#include <tapedeck/viewer/panels/table.h>
#include <tapedeck/viewer/plan/tables.h>

#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>

#include <set>

namespace tapedeck::viewer {

namespace {

void restore_columns(const SavedTable& saved, double scale, TablePanel& panel) {
  const TableLayout& layout = layout_of(panel.id());
  QHeaderView& header = *panel.table()->header();
  std::set<int> placed;
  for (const SavedColumn& column : saved.columns) {
    const int c = layout.column(column.key);
    if (c < 0 || !placed.insert(c).second) continue;
    header.moveSection(header.visualIndex(c), static_cast<int>(placed.size()) - 1);
    if (column.width > 0) header.resizeSection(c, qRound(column.width * scale));
    panel.table()->setColumnHidden(c, column.hidden && c != 0);  // a table needs one column, to bring the others back
  }
}

}  // namespace

SavedTable table_state(const std::string& name, double scale, TablePanel& panel) {
  const TableLayout& layout = layout_of(panel.id());
  const QHeaderView& header = *panel.table()->header();
  SavedTable saved;
  saved.name = name;
  saved.filter = panel.filter()->text().toStdString();
  if (const int by = header.sortIndicatorSection(); by >= 0 && by < header.count()) {
    saved.sort = layout.columns[by].key;
    saved.descending = header.sortIndicatorOrder() == Qt::DescendingOrder;
  }
  for (int place = 0; place < header.count(); ++place) {
    const int c = header.logicalIndex(place);
    // The size of a hidden column is 0: its width is not known.
    saved.columns.push_back({layout.columns[c].key, header.sectionSize(c) / scale, header.isSectionHidden(c)});
  }
  return saved;
}

void restore_table(const SavedTable& saved, double scale, TablePanel& panel) {
  restore_columns(saved, scale, panel);
  const int by = saved.sort.empty() ? -1 : layout_of(panel.id()).column(saved.sort);
  panel.table()->header()->setSortIndicator(by, saved.descending ? Qt::DescendingOrder : Qt::AscendingOrder);
  panel.filter()->setText(QString::fromStdString(saved.filter));
}

}  // namespace tapedeck::viewer
