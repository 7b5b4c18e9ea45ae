// The view of a table of any number of rows. All rows have one height, so the view works out which of them are in sight, and
// never visits the others: a million rows cost it as little as ten. A tree view would make an item for each row instead.
#pragma once

#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTableView>

#include <functional>

namespace tapedeck::viewer {

// Home and End go to the first and the last row, and the arrows to the left and to the right move the columns. Tab leaves the
// table. The focus is on a whole row.
class RowsView : public QTableView {
 public:
  // `copy` is asked to copy the selected rows; `left` hears that the mouse left the rows.
  RowsView(std::function<void()> copy, std::function<void()> left, QWidget* parent = nullptr);

  QHeaderView* header() const { return horizontalHeader(); }
  // A view that nobody sees, as in a dock behind others, does not know its size yet: it scrolls when it is seen.
  void scrollTo(const QModelIndex& index, ScrollHint hint = EnsureVisible) override;

 protected:
  bool viewportEvent(QEvent* event) override;
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  QModelIndex moveCursor(CursorAction action, Qt::KeyboardModifiers modifiers) override;

 private:
  void fit_row_height();  // to the font and the style

  std::function<void()> copy_, left_;
  bool scrolls_later_ = false;  // to the current row, when it is painted
};

}  // namespace tapedeck::viewer
