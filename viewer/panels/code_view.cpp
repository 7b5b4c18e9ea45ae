// The scroll area of graph text. A row is painted in this order: its ground (change, selection, match), the gutter with the
// sign and the number of the line, the words.
//
//     gutter            text
//     +   1,204         %h.1: f32[64,10] = matmul(%x, %w)       [of=%h]
//         ⋯ 300 lines without a change: click to show them
#include <tapedeck/viewer/panels/code_view.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/format.h>

#include <QtGui/QFontMetricsF>
#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

Colour colour_of_word(WordKind kind) {
  switch (kind) {
    case WordKind::value:
      return colours::kLink;
    case WordKind::op:
      return colours::kWordOp;
    case WordKind::type:
      return colours::kWordType;
    case WordKind::number:
      return colours::kWordNumber;
    case WordKind::string:
      return colours::kWordString;
    case WordKind::note:
      return colours::kFaint;
    case WordKind::keyword:
    case WordKind::plain:
      break;
  }
  return colours::kText;
}

struct Change {
  const char* sign;
  const Colour* ground;
};
Change change_of(LineKind kind) {
  switch (kind) {
    case LineKind::removed:
      return {"-", &colours::kRemovedGround};
    case LineKind::added:
      return {"+", &colours::kAddedGround};
    case LineKind::was:
      return {"~", &colours::kRemovedGround};
    case LineKind::is:
      return {"~", &colours::kAddedGround};
    case LineKind::moved_from:
      return {"<", &colours::kMovedGround};
    case LineKind::moved_to:
      return {">", &colours::kMovedGround};
    case LineKind::same:
      break;
  }
  return {"", nullptr};
}

QString text_of(std::string_view bytes) { return QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size())); }
QString fold_text(const TextRow& row) {
  return QStringLiteral("⋯ %1 lines without a change: click to show them").arg(QString::fromStdString(grouped(row.folded)));
}

}  // namespace

CodeView::CodeView(QWidget* parent) : QAbstractScrollArea(parent) {
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  viewport()->setBackgroundRole(QPalette::Base);
  setAccessibleName(QStringLiteral("text of the graph"));
  set_font();
}

// Of the size of the other text of the window.
void CodeView::set_font() {
  QFont fixed = font();
  fixed.setFamily(QStringLiteral("DejaVu Sans Mono"));
  fixed.setStyleHint(QFont::Monospace);
  if (fixed != viewport()->font()) viewport()->setFont(fixed);
  set_bars();
}

int CodeView::row_height() const { return static_cast<int>(std::ceil(QFontMetricsF(viewport()->font()).height())) + 2; }

int CodeView::gutter() const {
  const std::int32_t lines = rows_.after() == nullptr ? 0 : rows_.after()->lines();
  const double digit = QFontMetricsF(viewport()->font()).horizontalAdvance(QLatin1Char('0'));
  return static_cast<int>(std::ceil(digit * (static_cast<double>(grouped(lines).size()) + 4)));
}

void CodeView::set_bars() {
  const int whole = std::max(viewport()->height() / row_height(), 1);
  verticalScrollBar()->setRange(0, std::max(rows_.count() - whole, 0));
  verticalScrollBar()->setPageStep(whole);
  const double letter = QFontMetricsF(viewport()->font()).horizontalAdvance(QLatin1Char('0'));
  const int width = gutter() + static_cast<int>(std::ceil(letter * (rows_.longest() + 2)));
  horizontalScrollBar()->setRange(0, std::max(width - viewport()->width(), 0));
  horizontalScrollBar()->setPageStep(viewport()->width());
  horizontalScrollBar()->setSingleStep(static_cast<int>(letter * 4));
  viewport()->update();
}

void CodeView::show_rows(TextRows rows) {
  rows_ = std::move(rows);
  current_ = -1;
  matches_ = rows_.find(query_);
  set_bars();
  verticalScrollBar()->setValue(0);
  viewport()->update();
}

void CodeView::mark(const std::string& selected, std::int32_t line, const std::string& hovered) {
  if (selected == selected_ && line == selected_line_ && hovered == hovered_) return;
  selected_ = selected;
  selected_line_ = line;
  hovered_ = hovered;
  viewport()->update();
}

std::int32_t CodeView::first_row_in_view() const { return verticalScrollBar()->value(); }
std::int32_t CodeView::rows_in_view() const { return std::max(viewport()->height() / row_height(), 1); }

void CodeView::reveal_line(std::int32_t line) {
  const std::int32_t count = rows_.count(), row = rows_.show_line(line);
  if (row < 0) return;
  if (rows_.count() != count) {
    matches_ = rows_.find(query_);
    set_bars();
  }
  const std::int32_t first = first_row_in_view();
  if (row < first || row >= first + rows_in_view()) verticalScrollBar()->setValue(row - rows_in_view() / 3);
}

void CodeView::go_to_row(std::int32_t row) {
  current_ = row;
  const std::int32_t first = first_row_in_view();
  if (row < first || row >= first + rows_in_view()) verticalScrollBar()->setValue(row - rows_in_view() / 3);
  viewport()->update();
}

// ---- looking for text and changes ----

std::int32_t CodeView::find(const std::string& query) {
  query_ = query;
  matches_ = rows_.find(query);
  const std::int32_t from = std::max(current_, first_row_in_view());
  const auto at = std::lower_bound(matches_.begin(), matches_.end(), from);
  if (!matches_.empty()) go_to_row(at == matches_.end() ? matches_.front() : *at);
  viewport()->update();
  return static_cast<std::int32_t>(matches_.size());
}

void CodeView::step_match(int by) {
  if (matches_.empty()) return;
  const auto at = std::lower_bound(matches_.begin(), matches_.end(), current_);
  const bool here = at != matches_.end() && *at == current_;
  const auto count = std::ssize(matches_);
  std::ptrdiff_t next = at - matches_.begin() + (by > 0 ? here : -1);
  next = (next + count) % count;
  go_to_row(matches_[static_cast<std::size_t>(next)]);
}

std::int32_t CodeView::match() const {
  const auto at = std::lower_bound(matches_.begin(), matches_.end(), current_);
  return at == matches_.end() || *at != current_ ? -1 : static_cast<std::int32_t>(at - matches_.begin());
}

bool CodeView::step_change(int by) {
  const std::int32_t next = rows_.next_change(current_, by);
  if (next < 0) return false;
  go_to_row(next);
  return true;
}

// ---- painting ----

std::vector<CodeView::Piece> CodeView::pieces_of(const TextRow& row) const {
  std::vector<Piece> pieces;
  const QFontMetricsF metrics(viewport()->font());
  const std::string_view line = rows_.line(row);
  double x = gutter() - horizontalScrollBar()->value();
  std::size_t at = 0;
  const auto add = [&](std::size_t end, WordKind kind, bool is_word) {
    if (end <= at) return;
    const std::string_view bytes = line.substr(at, end - at);
    Piece piece{text_of(bytes), bytes, kind, is_word, x, 0};
    piece.width = metrics.horizontalAdvance(piece.text);
    x += piece.width;
    pieces.push_back(std::move(piece));
    at = end;
  };
  for (const Word& word : words_of(line)) {
    add(word.begin, WordKind::plain, false);
    add(word.end, word.kind, true);
  }
  add(line.size(), WordKind::plain, false);
  return pieces;
}

void CodeView::paint_fold(QPainter& painter, const TextRow& row, int y) const {
  painter.fillRect(QRect(0, y, viewport()->width(), row_height()), qt(colours::kPanel));
  painter.setPen(qt(colours::kFaint));
  painter.drawText(QRect(gutter(), y, viewport()->width(), row_height()), Qt::AlignLeft | Qt::AlignVCenter, fold_text(row));
}

void CodeView::paint_row(QPainter& painter, std::int32_t number, int y) const {
  const TextRow& row = rows_.rows()[static_cast<std::size_t>(number)];
  if (row.folded > 0) return paint_fold(painter, row, y);
  const int height = row_height(), width = viewport()->width();
  const QRect all(0, y, width, height);
  const Change change = change_of(row.kind);
  const std::vector<Piece> pieces = pieces_of(row);
  const auto has = [&](const std::string& word) {
    return !word.empty() && std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.bytes == word; });
  };
  if (change.ground != nullptr) painter.fillRect(all, qt(*change.ground));
  const bool defines = !TextRows::is_old(row) && row.after == selected_line_ && selected_line_ >= 0;
  if (defines || has(selected_)) {
    const Colour ground = change.ground != nullptr ? *change.ground : colours::kCanvas;
    painter.fillRect(all, qt(mixed(ground, colours::kHighlight, defines ? 0.55 : 0.22)));
  }
  for (const Piece& piece : pieces) {
    const QRectF box(piece.x, y, piece.width, height);
    if (piece.is_word && piece.kind == WordKind::value && (piece.bytes == selected_ || piece.bytes == hovered_)) {
      painter.setPen(qt(piece.bytes == selected_ ? colours::kSelect : colours::kHover));
      painter.drawRect(box.adjusted(-1, 0, 0, -1));
    }
    painter.setPen(qt(colour_of_word(piece.kind)));
    painter.drawText(QPointF(piece.x, y + 1 + QFontMetricsF(painter.font()).ascent()), piece.text);
  }
  if (std::binary_search(matches_.begin(), matches_.end(), number)) {
    const std::string_view line = rows_.line(row);
    const std::string_view lower = rows_.text_of(row)->lower_line(rows_.line_of(row));
    std::size_t at = line.find(query_);
    if (at == std::string_view::npos) at = lower.find(query_);
    const QFontMetricsF metrics(painter.font());
    const double x = gutter() - horizontalScrollBar()->value() + metrics.horizontalAdvance(text_of(line.substr(0, at)));
    painter.fillRect(QRectF(x, y + height - 3, metrics.horizontalAdvance(text_of(line.substr(at, query_.size()))), 2),
                     qt(colours::kHover));
  }
  // The gutter lies over text that is scrolled to the left.
  painter.fillRect(QRect(0, y, gutter() - 6, height), qt(change.ground != nullptr ? *change.ground : colours::kCanvas));
  painter.setPen(qt(colours::kText));
  painter.drawText(QRect(4, y, gutter(), height), Qt::AlignLeft | Qt::AlignVCenter, QString::fromLatin1(change.sign));
  painter.setPen(qt(colours::kFaint));
  painter.drawText(QRect(0, y, gutter() - 12, height), Qt::AlignRight | Qt::AlignVCenter,
                   QString::fromStdString(grouped(rows_.line_of(row) + 1)));
  if (number == current_) painter.fillRect(QRect(0, y, 3, height), qt(colours::kHover));
}

void CodeView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.setFont(viewport()->font());
  painter.fillRect(viewport()->rect(), qt(colours::kCanvas));
  const int height = row_height();
  const std::int32_t first = first_row_in_view(), end = std::min(rows_.count(), first + rows_in_view() + 1);
  for (std::int32_t row = first; row < end; ++row) paint_row(painter, row, (row - first) * height);
}

// ---- events ----

std::int32_t CodeView::row_at(int y) const {
  const std::int32_t row = first_row_in_view() + y / row_height();
  return y >= 0 && row < rows_.count() ? row : -1;
}

CodeView::Place CodeView::place_at(const QPoint& at) const {
  Place place;
  const std::int32_t number = row_at(at.y());
  if (number < 0) return place;
  const TextRow& row = rows_.rows()[static_cast<std::size_t>(number)];
  if (row.folded > 0) return place;
  place.is_old = TextRows::is_old(row);
  place.line = rows_.line_of(row);
  for (const Piece& piece : pieces_of(row))
    if (piece.is_word && at.x() >= piece.x && at.x() < piece.x + piece.width) {
      place.word = std::string(piece.bytes);
      place.kind = piece.kind;
    }
  return place;
}

QPoint CodeView::middle_of(std::int32_t row, std::string_view word) const {
  const int y = (row - first_row_in_view()) * row_height() + row_height() / 2;
  for (const Piece& piece : pieces_of(rows_.rows()[static_cast<std::size_t>(row)]))
    if (piece.bytes == word) return QPoint(static_cast<int>(piece.x + piece.width / 2), y);
  return QPoint(2, y);
}

bool CodeView::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto& key = static_cast<const QKeyEvent&>(*event);
    const bool moves = key.key() >= Qt::Key_Home && key.key() <= Qt::Key_PageDown;
    if (key.matches(QKeySequence::Find) || (moves && key.modifiers() == Qt::NoModifier)) {
      event->accept();
      return true;
    }
  }
  return QAbstractScrollArea::event(event);
}

void CodeView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Find) && on_find) return on_find();
  if (event->key() == Qt::Key_Home) return verticalScrollBar()->setValue(0);
  if (event->key() == Qt::Key_End) return verticalScrollBar()->setValue(verticalScrollBar()->maximum());
  QAbstractScrollArea::keyPressEvent(event);
}

void CodeView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const std::int32_t row = row_at(event->pos().y());
  if (row >= 0 && rows_.rows()[static_cast<std::size_t>(row)].folded > 0) {
    rows_.unfold(row);
    matches_ = rows_.find(query_);
    return set_bars();
  }
  if (const Place place = place_at(event->pos()); place.line >= 0 && on_click) on_click(place);
}

void CodeView::mouseMoveEvent(QMouseEvent* event) {
  const Place place = place_at(event->pos());
  viewport()->setCursor(place.kind == WordKind::value ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (on_hover) on_hover(place);
}

bool CodeView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave && on_hover) on_hover({});
  if (event->type() == QEvent::ToolTip && explain) {
    const auto& help = static_cast<const QHelpEvent&>(*event);
    const QString text = explain(place_at(help.pos()));
    if (text.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help.globalPos(), text, viewport());
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void CodeView::resizeEvent(QResizeEvent*) { set_bars(); }

void CodeView::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::ParentChange) set_font();
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) viewport()->update();
}

}  // namespace tapedeck::viewer
