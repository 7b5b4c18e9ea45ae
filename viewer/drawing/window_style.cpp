#include <tapedeck/viewer/drawing/window_style.h>

#include <tapedeck/viewer/drawing/theme.h>

#include <QtGui/QPainter>
#include <QtWidgets/QAbstractSpinBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QStyleFactory>
#include <QtWidgets/QStyleOptionComplex>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QTreeWidget>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

void draw_frame(QPainter& painter, const QRect& rect, Colour colour) {
  painter.save();
  painter.setPen(qt(colour));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect.adjusted(0, 0, -1, -1));
  painter.restore();
}

// Whether the frame of the widget has the colour of edges.
bool has_edge(const QWidget* widget) {
  return qobject_cast<const QTableView*>(widget) != nullptr || qobject_cast<const QTextBrowser*>(widget) != nullptr ||
         qobject_cast<const QTreeWidget*>(widget) != nullptr ||
         (widget != nullptr && widget->objectName() == QLatin1String("palette"));
}

template <class Owner>
bool is_part_of(const QWidget* widget) {
  return widget != nullptr && qobject_cast<const Owner*>(widget->parentWidget()) != nullptr;
}

// A field by itself, which is no part of a spin box or of a list to choose from.
bool is_field(const QWidget* widget) { return !is_part_of<QAbstractSpinBox>(widget) && !is_part_of<QComboBox>(widget); }

}  // namespace

WindowStyle::WindowStyle(double scale) : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), scale_(scale) {}

int WindowStyle::scaled(double pixels) const { return std::max(1, qRound(pixels * scale_)); }

int WindowStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  if (metric == PM_DockWidgetSeparatorExtent || metric == PM_DockWidgetTitleMargin) return scaled(4);
  const int length = QProxyStyle::pixelMetric(metric, option, widget);
  return length > 1 ? std::max(1, qRound(length * scale_)) : length;
}

QSize WindowStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                    const QWidget* widget) const {
  if (type == CT_HeaderSection)
    return QProxyStyle::sizeFromContents(type, option, size, widget) + QSize(scaled(6) + scaled(14) + 1, 2 * scaled(3));
  // A field is no higher than its text and its frame. Fusion makes fields 4 pixels higher, and spin boxes 3 pixels lower than
  // the field in them needs.
  if (type == CT_SpinBox) return QProxyStyle::sizeFromContents(type, option, size, widget) + QSize(0, 3);
  if (const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
      frame != nullptr && type == CT_LineEdit && !is_part_of<QComboBox>(widget))
    return size + QSize(2 * frame->lineWidth, 2 * frame->lineWidth);
  return QProxyStyle::sizeFromContents(type, option, size, widget);
}

QRect WindowStyle::subElementRect(SubElement element, const QStyleOption* option, const QWidget* widget) const {
  if (element == SE_HeaderLabel) return option->rect.adjusted(scaled(6), scaled(3), -scaled(14) - 1, -scaled(3));
  if (element == SE_LineEditContents && is_field(widget)) return option->rect.adjusted(1, 1, -1, -1);
  return QProxyStyle::subElementRect(element, option, widget);
}

void WindowStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                const QWidget* widget) const {
  switch (element) {
    case PE_FrameStatusBarItem:
      return;
    case PE_IndicatorDockWidgetResizeHandle:
      return painter->fillRect(option->rect, qt(colours::kSeparator));
    case PE_PanelTipLabel:
      painter->fillRect(option->rect, qt(colours::kPanel));
      return draw_frame(*painter, option->rect, colours::kFrame);
    case PE_Frame:
      if (has_edge(widget)) return draw_frame(*painter, option->rect, colours::kEdge);
      break;
    case PE_PanelLineEdit:
      if (!is_field(widget)) break;
      painter->fillRect(option->rect.adjusted(1, 1, -1, -1), option->palette.brush(QPalette::Base));
      return draw_frame(*painter, option->rect, colours::kEdge);
    case PE_IndicatorCheckBox:
      // Fusion's own frames, of boxes to check and of fields, cannot be seen on dark grounds.
      QProxyStyle::drawPrimitive(element, option, painter, widget);
      return draw_frame(*painter, option->rect, option->state.testFlag(State_Enabled) ? colours::kFaint : colours::kDisabled);
    default:
      break;
  }
  QProxyStyle::drawPrimitive(element, option, painter, widget);
}

void WindowStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                              const QWidget* widget) const {
  if (const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option); header != nullptr && element == CE_Header)
    return draw_header(*header, painter, widget);
  if (const auto* dock = qstyleoption_cast<const QStyleOptionDockWidget*>(option);
      dock != nullptr && element == CE_DockWidgetTitle)
    return draw_title(*dock, painter);
  if (const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option);
      item != nullptr && element == CE_MenuItem && item->menuItemType == QStyleOptionMenuItem::Separator)
    return draw_separator(item->rect, painter);
  QProxyStyle::drawControl(element, option, painter, widget);
}

// A section of the header of a table.
void WindowStyle::draw_header(const QStyleOptionHeader& header, QPainter* painter, const QWidget* widget) const {
  painter->save();
  painter->setClipRect(header.rect);
  painter->fillRect(header.rect, qt(colours::kPanel));
  painter->fillRect(QRect(header.rect.right(), header.rect.top(), 1, header.rect.height()), qt(colours::kEdge));
  QStyleOptionHeader part = header;
  part.rect = subElementRect(SE_HeaderLabel, &header, widget);
  part.palette.setColor(QPalette::ButtonText, qt(colours::kFaint));
  QProxyStyle::drawControl(CE_HeaderLabel, &part, painter, widget);
  if (header.sortIndicator != QStyleOptionHeader::None) {
    part.rect = subElementRect(SE_HeaderArrow, &header, widget);
    part.palette = header.palette;
    drawPrimitive(PE_IndicatorHeaderArrow, &part, painter, widget);
  }
  painter->restore();
}

// The line between two commands of a menu. Fusion mixes its colour from the ground, and it cannot be seen on black.
void WindowStyle::draw_separator(const QRect& rect, QPainter* painter) const {
  const int margin = scaled(5);
  painter->fillRect(QRect(rect.left() + margin, rect.center().y(), rect.width() - 2 * margin, 1), qt(colours::kEdge));
}

// The title bar of a dock, without its buttons.
void WindowStyle::draw_title(const QStyleOptionDockWidget& dock, QPainter* painter) const {
  painter->fillRect(dock.rect, qt(colours::kPanel));
  const QRect rect = dock.rect.adjusted(scaled(12), scaled(4), -scaled(8), -scaled(4));
  const QString text = painter->fontMetrics().elidedText(dock.title, Qt::ElideRight, rect.width());
  drawItemText(painter, rect, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextShowMnemonic, dock.palette,
               dock.state.testFlag(State_Enabled), text, QPalette::WindowText);
}

void WindowStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                     const QWidget* widget) const {
  QProxyStyle::drawComplexControl(control, option, painter, widget);
  if (control == CC_SpinBox) draw_frame(*painter, option->rect, colours::kEdge);
}

}  // namespace tapedeck::viewer
