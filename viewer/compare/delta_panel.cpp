#include <tapedeck/viewer/compare/delta_panel.h>

#include <QtWidgets/QLineEdit>

#include <utility>

namespace tapedeck::viewer {

DeltaPanel::DeltaPanel(ComparePicture& picture, std::function<void()> repaint, QWidget* parent)
    : FilteredTable(delta_layout(), new TableRows(delta_layout()), parent), picture_(picture), repaint_(std::move(repaint)) {
  made_ = true;
  filter()->setPlaceholderText(QStringLiteral("Filter: conv  op:matmul  is:changed  runs_right>1  -change:moved"));
  refill();
}

void DeltaPanel::refill() { filter_changed(); }

void DeltaPanel::filter_changed() {
  if (!made_) return;
  rows_shown([this] { rows().show(picture_.table(), filter_in_use()); });
  follow_selection();
  show_totals();
}

int DeltaPanel::side_of(int place) const { return ids_at(place).entry == kNone ? 0 : 1; }

void DeltaPanel::row_chosen(int place) {
  picture_.select(side_of(place), ids_at(place).value);
  repaint_();
}

void DeltaPanel::row_hovered(int place) {
  if (place < 0)
    picture_.hover(0, kNone);
  else
    picture_.hover(side_of(place), ids_at(place).value);
  repaint_();
}

void DeltaPanel::follow_selection() {
  for (const int side : {1, 0}) {
    const ValueId v = picture_.selected(side);
    if (v == kNone) continue;
    const std::int32_t entry = picture_.plans().side(side).model->values().entry_of(v);
    const std::vector<MatchedValue>& values = picture_.plans().values();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i].entry[static_cast<std::size_t>(side)] == entry)
        return follow(rows().place_of(static_cast<std::int32_t>(i)));
  }
  follow(-1);
}

}  // namespace tapedeck::viewer
