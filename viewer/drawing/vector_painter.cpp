#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/drawing/vector_painter.h>

#include <QtGui/QFontMetricsF>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

namespace tapedeck::viewer {

namespace {

QRectF qt(const VectorBox& b) { return QRectF(QPointF(b.x0, b.y0), QPointF(b.x1, b.y1)); }

struct Painting {
  QPainter& painter;

  void operator()(const VectorRect& rect) const { painter.fillRect(qt(rect.box), qt(rect.colour)); }

  void operator()(const VectorPolygon& polygon) const {
    QPainterPath path;
    path.setFillRule(polygon.even_odd ? Qt::OddEvenFill : Qt::WindingFill);
    for (const VectorContour& contour : polygon.contours) {
      path.moveTo(contour[0].x, contour[0].y);
      for (const VectorPoint& p : contour) path.lineTo(p.x, p.y);
      path.closeSubpath();
    }
    painter.fillPath(path, qt(polygon.colour));
  }

  // The letters are as wide as in the picture, whatever the font of this machine is.
  void operator()(const VectorText& text) const {
    QFont font(text.fixed ? QStringLiteral("DejaVu Sans Mono") : QStringLiteral("DejaVu Sans"));
    font.setPixelSize(100);
    font.setBold(text.bold);
    const QString line = QString::fromStdString(text.text);
    const double wide = QFontMetricsF(font, painter.device()).horizontalAdvance(line);
    painter.save();
    painter.setClipRect(qt(text.clip));
    painter.setPen(qt(text.colour));
    painter.setFont(font);
    painter.translate(text.x, text.baseline);
    const double size = static_cast<double>(text.size) / 100;
    painter.scale(wide > 0 && text.width > 0 ? text.width / wide : size, size);
    painter.drawText(QPointF(0, 0), line);
    painter.restore();
  }

  void operator()(const VectorImage& image) const {
    painter.save();
    painter.setClipRect(qt(image.clip));
    painter.drawImage(qt(image.box), QImage::fromData(QByteArray::fromBase64(QByteArray::fromStdString(image.png)), "PNG"));
    painter.restore();
  }
};

}  // namespace

void paint(const VectorPicture& picture, QPainter& painter) {
  const Painting painting{painter};
  painting(VectorRect{{0, 0, picture.width(), picture.height()}, picture.ground()});
  for (const VectorShape& shape : picture.shapes()) std::visit(painting, shape);
}

}  // namespace tapedeck::viewer
