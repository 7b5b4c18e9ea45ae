// The look of those parts of windows that Qt draws.
#pragma once

#include <QtWidgets/QProxyStyle>

class QStyleOptionDockWidget;
class QStyleOptionHeader;

namespace tapedeck::viewer {

// Fusion with all its lengths scaled (icons, arrows, scroll bars, margins), and with the frames, headers and titles of this
// viewer in the colours of the theme in use. A style sheet would say the same in fewer lines, but it takes a third of the time
// in which a window is made and shown: Qt then looks up the rules of each widget again whenever it is measured, drawn or moved.
class WindowStyle : public QProxyStyle {
 public:
  explicit WindowStyle(double scale);
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override;
  QRect subElementRect(SubElement element, const QStyleOption* option, const QWidget* widget) const override;
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;

 private:
  int scaled(double pixels) const;
  void draw_header(const QStyleOptionHeader& header, QPainter* painter, const QWidget* widget) const;
  void draw_separator(const QRect& rect, QPainter* painter) const;
  void draw_title(const QStyleOptionDockWidget& dock, QPainter* painter) const;

  double scale_;
};

}  // namespace tapedeck::viewer
