#include <tapedeck/viewer/panels/table.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/plan/tables.h>

#include <QtCore/QTimer>

#include <memory>
#include <utility>

namespace tapedeck::viewer {

TablePanel::TablePanel(TableId id, Session& session, QWidget* parent)
    : FilteredTable(layout_of(id), new PlanRows(id), parent), id_(id), session_(session) {
  session_.attach(this);
  refill();
}

TablePanel::~TablePanel() { session_.detach(this); }

NodeId TablePanel::node_at(int place) const { return place >= 0 && place < rows().rowCount() ? ids_at(place).node : kNone; }
int TablePanel::row_of(NodeId n) const {
  return rows().table() == nullptr ? -1 : rows().place_of(rows().table()->row_of_node(n));
}

void TablePanel::row_chosen(int place) {
  if (is_stale()) return;
  const RowIds ids = ids_at(place);
  if (ids.node != kNone)
    session_.select_node(ids.node);
  else if (ids.value != kNone)
    session_.select_value(ids.value);
}

void TablePanel::row_hovered(int place) {
  if (!is_stale()) session_.hover(place < 0 ? kNone : ids_at(place).value);
}

// Several rows may stand for one value; the one that is current already is as good as the first.
int TablePanel::place_of_selection() {
  const Table* shown = rows().table();
  const Selection& selection = session_.selection();
  if (shown == nullptr || is_stale()) return -1;
  if (id_ == TableId::nodes) return rows().place_of(shown->row_of_node(selection.node));
  if (selection.value == kNone) return -1;
  const std::int32_t entry = session_.model()->values().entry_of(selection.value);
  const int current = table()->currentIndex().row();
  if (current >= 0 && ids_at(current).entry == entry) return current;
  return rows().place_of(shown->row_of_entry(entry));
}

void TablePanel::selection_changed() { follow(place_of_selection()); }

// The tables of a large plan come after its pictures, and into a view that nobody sees when it is seen.
void TablePanel::refill() {
  const PlanModel* model = session_.model();
  fill(model != nullptr && model->is_complete() && visibleRegion().isEmpty() &&
       model->table(id_).rows() > rows().rows_at_once());
}

void TablePanel::fill(bool later) {
  std::shared_ptr<const PlanModel> model = session_.shared_model();
  if (model && !model->is_complete()) model.reset();
  shown_ = model ? model->serial() : 0;
  owed_ = later;
  if (owed_) model.reset();
  rows_shown([&] {
    plan_rows().show(model, filter_in_use(), id_ == TableId::nodes ? session_.measured_us() : std::vector<double>());
  });
  selection_changed();
  show_totals();
}

void TablePanel::fill_if_owed() {
  if (owed_) fill(false);
}

void TablePanel::paintEvent(QPaintEvent* event) {
  FilteredTable::paintEvent(event);
  if (owed_) QTimer::singleShot(0, this, guarded(this, [this] { fill_if_owed(); }));
}

void TablePanel::finish() {
  fill_if_owed();
  FilteredTable::finish();
}

void TablePanel::closed() {
  shown_ = 0;
  owed_ = false;
  plan_rows().show(nullptr, filter_in_use());
  show_totals();
}

// The column of measured times is there while there are any.
void TablePanel::plan_changed() {
  if (session_.measured_serial() != shown_measured_) {
    shown_measured_ = session_.measured_serial();
    if (id_ == TableId::nodes) table()->setColumnHidden(layout_of(id_).column("measured"), session_.measured_us().empty());
    return refill();
  }
  if (session_.model() == nullptr || session_.model()->serial() != shown_) refill();
}

}  // namespace tapedeck::viewer
