// The view of a table; see rows_view.h. It is a table of Qt without a grid and without a column of row numbers, which behaves
// as a list of rows.
#include <tapedeck/viewer/tables/rows_view.h>

#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStyle>
#include <QtWidgets/QStyleOption>

#include <utility>

namespace tapedeck::viewer {

RowsView::RowsView(std::function<void()> copy, std::function<void()> left, QWidget* parent)
    : QTableView(parent), copy_(std::move(copy)), left_(std::move(left)) {
  verticalHeader()->setVisible(false);
  verticalHeader()->setMinimumSectionSize(1);
  verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  setShowGrid(false);
  setWordWrap(false);
  setAlternatingRowColors(true);
  setIconSize(QSize(10, 10));
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  setTabKeyNavigation(false);
  setMouseTracking(true);
  header()->setHighlightSections(false);
  header()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  header()->setSectionsMovable(true);
  fit_row_height();
}

void RowsView::fit_row_height() {
  ensurePolished();
  QStyleOptionViewItem row;
  initViewItemOption(&row);
  row.text = QStringLiteral("X");
  row.features |= QStyleOptionViewItem::HasDisplay;
  const int height = style()->sizeFromContents(QStyle::CT_ItemViewItem, &row, QSize(), this).height();
  if (height != verticalHeader()->defaultSectionSize()) verticalHeader()->setDefaultSectionSize(height);
}

bool RowsView::event(QEvent* event) {
  const bool taken = QTableView::event(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange || event->type() == QEvent::Polish)
    fit_row_height();
  return taken;
}

bool RowsView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) left_();
  return QTableView::viewportEvent(event);
}

void RowsView::keyPressEvent(QKeyEvent* event) {
  if (!event->matches(QKeySequence::Copy)) return QTableView::keyPressEvent(event);  // the base class copies one cell
  copy_();
  event->accept();
}

QModelIndex RowsView::moveCursor(CursorAction action, Qt::KeyboardModifiers modifiers) {
  const QModelIndex now = currentIndex();
  const int column = now.isValid() ? now.column() : 0;
  QScrollBar& columns = *horizontalScrollBar();
  switch (action) {
    case MoveHome:
      return model()->index(0, column);
    case MoveEnd:
      return model()->index(model()->rowCount() - 1, column);
    case MoveLeft:
      columns.setValue(columns.value() - columns.singleStep());
      return now;
    case MoveRight:
      columns.setValue(columns.value() + columns.singleStep());
      return now;
    default:
      return QTableView::moveCursor(action, modifiers);
  }
}

void RowsView::scrollTo(const QModelIndex& index, ScrollHint hint) {
  scrolls_later_ = !isVisible() || visibleRegion().isEmpty();
  if (!scrolls_later_) QTableView::scrollTo(index, hint);
}

// The delegate leaves the frame of the focus out of cells: it goes around the whole row.
void RowsView::paintEvent(QPaintEvent* event) {
  if (std::exchange(scrolls_later_, false) && currentIndex().isValid()) scrollTo(currentIndex());
  QTableView::paintEvent(event);
  if (!hasFocus() || !currentIndex().isValid()) return;
  QStyleOptionFocusRect frame;
  frame.initFrom(this);
  frame.rect = QRect(0, rowViewportPosition(currentIndex().row()), viewport()->width(), rowHeight(currentIndex().row()));
  frame.state |= QStyle::State_KeyboardFocusChange;
  frame.backgroundColor = palette().color(QPalette::Base);
  QPainter painter(viewport());
  if (frame.rect.intersects(viewport()->rect())) style()->drawPrimitive(QStyle::PE_FrameFocusRect, &frame, &painter, this);
}

}  // namespace tapedeck::viewer
