// A paint device that records what widgets draw:
//
//   QWidget::render --> QPainter --> Engine (shapes in pixels of the device) --> VectorPicture
#include <tapedeck/viewer/widget_vectors.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/drawing/theme.h>

#include <QtCore/QBuffer>
#include <QtGui/QPaintDevice>
#include <QtGui/QPaintEngine>
#include <QtGui/QPainterPath>
#include <QtGui/QTextItem>
#include <QtOpenGLWidgets/QOpenGLWidget>
#include <QtWidgets/QWidget>

#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kWidgetDotsPerInch = 96;

VectorBox to_box(const QRectF& r) {
  return {static_cast<float>(r.left()), static_cast<float>(r.top()), static_cast<float>(r.right()),
          static_cast<float>(r.bottom())};
}

Colour to_colour(const QColor& c, double opacity) {
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  return {byte(c.red()), byte(c.green()), byte(c.blue()), byte(qRound(c.alpha() * opacity))};
}

QColor mixed(const QColor& a, const QColor& b, double part) {
  const auto between = [part](int x, int y) { return qRound(x + (y - x) * part); };
  return QColor(between(a.red(), b.red()), between(a.green(), b.green()), between(a.blue(), b.blue()),
                between(a.alpha(), b.alpha()));
}

// The colour in the middle of a gradient.
QColor middle(const QGradient& gradient) {
  const QGradientStops stops = gradient.stops();
  if (stops.isEmpty()) return QColor();
  for (qsizetype i = 1; i < stops.size(); ++i)
    if (stops[i].first >= 0.5 && stops[i].first > stops[i - 1].first)
      return mixed(stops[i - 1].second, stops[i].second, (0.5 - stops[i - 1].first) / (stops[i].first - stops[i - 1].first));
  return stops.last().second;
}

QColor colour_of(const QBrush& brush) { return brush.gradient() != nullptr ? middle(*brush.gradient()) : brush.color(); }

VectorPolygon to_polygon(const QPainterPath& path, Colour colour) {
  VectorPolygon polygon;
  polygon.colour = colour;
  polygon.even_odd = path.fillRule() == Qt::OddEvenFill;
  const QList<QPolygonF> parts = path.toSubpathPolygons();
  for (const QPolygonF& part : parts) {
    VectorContour contour;
    for (const QPointF& p : part) contour.push_back({static_cast<float>(p.x()), static_cast<float>(p.y())});
    const bool closed = contour.size() > 1 && part.first() == part.last();
    if (closed) contour.pop_back();
    polygon.contours.push_back(std::move(contour));
  }
  return polygon;
}

class Engine : public QPaintEngine {
 public:
  explicit Engine(VectorPicture& out) : QPaintEngine(QPaintEngine::AllFeatures), out_(out) {}

  bool begin(QPaintDevice*) override { return true; }
  bool end() override { return true; }
  Type type() const override { return User; }

  void updateState(const QPaintEngineState& now) override {
    const DirtyFlags changed = now.state();
    if (changed & DirtyClipRegion) clip_with(now, now.transform().map(now.clipRegion()));
    if (changed & DirtyClipPath) clip_with(now, now.transform().map(now.clipPath()).boundingRect().toAlignedRect());
    if (changed & DirtyClipEnabled) clip_enabled_ = now.isClipEnabled();
  }

  void drawRects(const QRectF* rects, int count) override {
    for (int i = 0; i < count; ++i) {
      QPainterPath path;
      path.addRect(rects[i]);
      drawPath(path);
    }
  }
  void drawPath(const QPainterPath& path) override {
    fill(path);
    outline(path);
  }
  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    QPainterPath path;
    path.setFillRule(mode == WindingMode ? Qt::WindingFill : Qt::OddEvenFill);
    path.addPolygon(QPolygonF(QList<QPointF>(points, points + count)));
    if (mode == PolylineMode) return outline(path);
    path.closeSubpath();
    drawPath(path);
  }

  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    clip_to_bounds();
    const QTransform& to = state->transform();
    const QPointF place = to.map(at);
    const QFont font = item.font();
    VectorText text;
    text.x = static_cast<float>(place.x());
    text.baseline = static_cast<float>(place.y());
    text.width = static_cast<float>(item.width() * to.m11());
    text.size = static_cast<float>(font.pixelSize() > 0 ? font.pixelSize() : font.pointSizeF() * kWidgetDotsPerInch / 72) *
                static_cast<float>(to.m22());
    text.bold = font.bold();
    text.fixed = font.family().contains(QStringLiteral("mono"), Qt::CaseInsensitive);
    text.colour = to_colour(state->pen().color(), state->opacity());
    text.text = item.text().toStdString();
    out_.add(std::move(text));
  }

  void drawPixmap(const QRectF& target, const QPixmap& pixmap, const QRectF& source) override {
    drawImage(target, pixmap.toImage(), source, Qt::AutoColor);
  }
  void drawImage(const QRectF& target, const QImage& image, const QRectF& source, Qt::ImageConversionFlags) override {
    clip_to_bounds();
    QByteArray png;
    QBuffer buffer(&png);
    buffer.open(QIODevice::WriteOnly);
    const QRect part = source.toAlignedRect() & image.rect();
    if (part.isEmpty() || !image.copy(part).convertToFormat(QImage::Format_ARGB32).save(&buffer, "PNG")) return;
    out_.add(VectorImage{to_box(state->transform().mapRect(target)), png.toBase64().toStdString(), {}});
  }

 private:
  void clip_with(const QPaintEngineState& now, const QRegion& region) {
    const bool first = now.clipOperation() == Qt::ReplaceClip || !clipped_;
    clipped_ = now.clipOperation() != Qt::NoClip;
    clip_enabled_ = true;
    clip_ = first ? region : clip_ & region;
  }

  // The clip of the painter and that of the widget, which Qt keeps apart.
  QRegion clip() const {
    QRegion region(0, 0, static_cast<int>(out_.width()), static_cast<int>(out_.height()));
    if (clipped_ && clip_enabled_) region &= clip_;
    if (!systemClip().isEmpty()) region &= systemClip();
    return region;
  }
  void clip_to_bounds() { out_.set_clip(to_box(QRectF(clip().boundingRect()))); }

  void fill(const QPainterPath& path) {
    if (state->brush().style() == Qt::NoBrush) return;
    add(state->transform().map(path), to_colour(colour_of(state->brush()), state->opacity()));
  }

  // A line without smooth edges covers the pixels to the lower right of its places.
  void outline(const QPainterPath& path) {
    const QPen& pen = state->pen();
    if (pen.style() == Qt::NoPen || pen.brush().style() == Qt::NoBrush) return;
    QPen used = pen;
    const bool thin = pen.isCosmetic() || pen.widthF() == 0;
    if (pen.widthF() == 0) used.setWidthF(1);
    const QPainterPathStroker stroker(used);
    const QTransform& to = state->transform();
    QPainterPath stroke = thin ? stroker.createStroke(to.map(path)) : to.map(stroker.createStroke(path));
    if (!state->renderHints().testFlag(QPainter::Antialiasing)) stroke.translate(0.5, 0.5);
    stroke.setFillRule(Qt::WindingFill);
    add(stroke, to_colour(colour_of(pen.brush()), state->opacity()));
  }

  // Adds the shape once for each rectangle of the clip.
  void add(const QPainterPath& path, Colour colour) {
    for (const QRect& part : clip()) {
      out_.set_clip(to_box(QRectF(part)));
      add_part(path, colour);
    }
  }
  void add_part(const QPainterPath& path, Colour colour) {
    VectorPolygon polygon = to_polygon(path, colour);
    const QRectF box = path.boundingRect();
    const bool whole = path.elementCount() == 5 && polygon.contours.size() == 1 && polygon.contours[0].size() == 4;
    if (whole && is_upright(polygon.contours[0]))
      out_.add(VectorRect{to_box(box), colour});
    else
      out_.add(std::move(polygon));
  }

  static bool is_upright(const VectorContour& c) {
    for (std::size_t i = 0; i < 4; ++i)
      if (c[i].x != c[(i + 1) % 4].x && c[i].y != c[(i + 1) % 4].y) return false;
    return true;
  }

  VectorPicture& out_;
  QRegion clip_;
  bool clipped_ = false, clip_enabled_ = true;
};

class Device : public QPaintDevice {
 public:
  explicit Device(VectorPicture& out) : out_(out), engine_(out) {}
  QPaintEngine* paintEngine() const override { return &engine_; }

 protected:
  int metric(PaintDeviceMetric metric) const override {
    switch (metric) {
      case PdmWidth:
        return static_cast<int>(out_.width());
      case PdmHeight:
        return static_cast<int>(out_.height());
      case PdmDepth:
        return 32;
      case PdmNumColors:
        return 1 << 24;
      case PdmDpiX:
      case PdmDpiY:
      case PdmPhysicalDpiX:
      case PdmPhysicalDpiY:
        return kWidgetDotsPerInch;
      case PdmWidthMM:
        return qRound(static_cast<double>(out_.width()) * 25.4 / kWidgetDotsPerInch);
      case PdmHeightMM:
        return qRound(static_cast<double>(out_.height()) * 25.4 / kWidgetDotsPerInch);
      case PdmDevicePixelRatio:
        return 1;
      case PdmDevicePixelRatioScaled:
        return static_cast<int>(devicePixelRatioFScale());
      default:
        return QPaintDevice::metric(metric);
    }
  }

 private:
  VectorPicture& out_;
  mutable Engine engine_;
};

// Hides the surfaces of OpenGL, because their pixels would lie over the shapes.
class WithoutSurfaces {
 public:
  explicit WithoutSurfaces(QWidget& widget) {
    for (QOpenGLWidget* surface : widget.findChildren<QOpenGLWidget*>())
      if (surface->isVisible()) hidden_ << surface;
    for (QOpenGLWidget* surface : hidden_) surface->hide();
  }
  ~WithoutSurfaces() {
    for (QOpenGLWidget* surface : hidden_) surface->show();
  }
  WithoutSurfaces(const WithoutSurfaces&) = delete;

 private:
  QList<QOpenGLWidget*> hidden_;
};

QList<Canvas*> canvases_in(QWidget& widget) {
  QList<Canvas*> canvases;
  for (QWidget* child : widget.findChildren<QWidget*>())
    if (auto* canvas = dynamic_cast<Canvas*>(child)) canvases << canvas;
  return canvases;
}

}  // namespace

VectorPicture widget_vectors(QWidget& widget, int width, int height) {
  const WithoutSurfaces hidden(widget);
  const QList<Canvas*> canvases = canvases_in(widget);
  for (Canvas* canvas : canvases) canvas->leave_out(true);
  VectorPicture out(static_cast<float>(width), static_cast<float>(height), colours::kWindow);
  Device device(out);
  widget.render(&device);
  for (Canvas* canvas : canvases) canvas->leave_out(false);
  for (Canvas* canvas : canvases) {
    if (!canvas->isVisibleTo(&widget) || canvas->visibleRegion().isEmpty()) continue;
    const QPoint at = canvas->mapTo(&widget, QPoint(0, 0));
    out.clear_clip();
    out.set_clip(to_box(canvas->visibleRegion().boundingRect().translated(at)));
    out.add(picture_vectors(canvas->picture(), canvas->width(), canvas->height(), look_in_use().scale),
            static_cast<float>(at.x()), static_cast<float>(at.y()));
  }
  out.clear_clip();
  return out;
}

}  // namespace tapedeck::viewer
