// Two halves, each below a line of text:
//
//     [0,0,:,:], 56 x 56: 0 to 3   how often, 3,136 elements
//     +---------------+                    ##
//     |  . : # # : .  |                  ######
//     |  : # # # # :  |                ##########
//     +---------------+            -1.2          3.4
#include <tapedeck/viewer/panels/value_picture.h>

#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>
#include <QtGui/QHelpEvent>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kPictureGap = 12;

// The colour of a mean: the ground of a plot for the least, the colour of a measurement for the greatest.
QRgb colour_of(double mean, const HeatMap& map) {
  if (std::isnan(mean)) return qt(colours::kProblem).rgb();
  const double share = map.max > map.min ? (mean - map.min) / (map.max - map.min) : 0.5;
  const auto mix = [&](int low, int high) { return static_cast<int>(std::lround(low + (high - low) * share)); };
  const Colour &low = colours::kPlot, &high = colours::kMeasured;
  return qRgb(mix(low.r, high.r), mix(low.g, high.g), mix(low.b, high.b));
}

std::string part_text(std::int64_t first, std::int64_t end) {
  return end == first + 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, end - 1);
}

std::string map_text(const HeatMap& map) {
  return fmt::format("{}{}{} x {}: {:.3g} to {:.3g}", map.place, map.place.empty() ? "" : ", ", grouped(map.height),
                     grouped(map.width), map.min, map.max);
}

}  // namespace

ValuePicture::ValuePicture(QWidget* parent) : QWidget(parent) {
  setAccessibleName(QStringLiteral("heat map and histogram of the selected value"));
  setMouseTracking(true);
}

void ValuePicture::show_value(LookedAt seen) {
  seen_ = std::move(seen);
  update();
}

int ValuePicture::label_height() const { return fontMetrics().height() + 2; }

// The cells are squares where there is room for them.
QRect ValuePicture::map_area() const {
  const HeatMap& map = seen_.map;
  const QRect half(0, label_height(), (width() - kPictureGap) / 2, height() - label_height());
  if (map.rows == 0 || half.width() < 1 || half.height() < 1) return {};
  const double scale = std::min(static_cast<double>(half.width()) / map.columns, static_cast<double>(half.height()) / map.rows);
  const int most = 24;  // pixels of one cell
  const double cell = std::min<double>(scale, most);
  return {half.left(), half.top(), std::max(static_cast<int>(cell * map.columns), 1),
          std::max(static_cast<int>(cell * map.rows), 1)};
}

QRect ValuePicture::histogram_area() const {
  const int left = (width() + kPictureGap) / 2;
  const QRect area(left, label_height(), width() - left, height() - 2 * label_height());
  return seen_.histogram.counts.empty() || area.width() < 1 || area.height() < 1 ? QRect() : area;
}

void ValuePicture::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_map(painter);
  paint_histogram(painter);
}

void ValuePicture::paint_map(QPainter& painter) const {
  const QRect area = map_area();
  if (area.isEmpty()) return;
  const HeatMap& map = seen_.map;
  QImage image(map.columns, map.rows, QImage::Format_RGB32);
  for (int row = 0; row < map.rows; ++row)
    for (int column = 0; column < map.columns; ++column)
      image.setPixel(column, row, colour_of(static_cast<double>(map.cell(row, column)), map));
  painter.setPen(qt(colours::kFaint));
  painter.drawText(QRect(0, 0, (width() - kPictureGap) / 2, label_height()), Qt::AlignLeft | Qt::AlignVCenter,
                   QString::fromStdString(map_text(map)));
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.drawImage(area, image);
  painter.setPen(qt(colours::kFrame));
  painter.drawRect(area.adjusted(0, 0, -1, -1));
}

void ValuePicture::paint_histogram(QPainter& painter) const {
  const QRect area = histogram_area();
  if (area.isEmpty()) return;
  const Histogram& h = seen_.histogram;
  const std::int64_t most = *std::max_element(h.counts.begin(), h.counts.end());
  const auto bins = static_cast<int>(h.counts.size());
  painter.setPen(qt(colours::kFaint));
  painter.drawText(QRect(area.left(), 0, area.width(), label_height()), Qt::AlignLeft | Qt::AlignVCenter,
                   QString::fromStdString(fmt::format("how often, of {} elements", grouped(seen_.statistics.elements))));
  const QRect below(area.left(), area.bottom() + 1, area.width(), label_height());
  painter.drawText(below, Qt::AlignLeft | Qt::AlignVCenter, QString::fromStdString(fmt::format("{:.4g}", h.min)));
  painter.drawText(below, Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(fmt::format("{:.4g}", h.max)));
  painter.fillRect(area, qt(colours::kPlot));
  for (int bin = 0; bin < bins; ++bin) {
    const std::int64_t count = h.counts[static_cast<std::size_t>(bin)];
    const int left = area.left() + area.width() * bin / bins, right = area.left() + area.width() * (bin + 1) / bins;
    const auto tall = static_cast<int>(std::ceil(static_cast<double>(count) / static_cast<double>(most) * area.height()));
    painter.fillRect(QRect(left, area.bottom() + 1 - tall, std::max(right - left - 1, 1), tall), qt(colours::kMeasured));
  }
}

QString ValuePicture::text_at(const QPoint& at) const {
  if (const QRect area = map_area(); area.contains(at)) {
    const HeatMap& map = seen_.map;
    const int row = (at.y() - area.top()) * map.rows / area.height(),
              column = (at.x() - area.left()) * map.columns / area.width();
    const auto mean = static_cast<double>(map.cell(row, column));
    return QString::fromStdString(fmt::format("row {}, column {}: {}", part_text(map.top_of(row), map.top_of(row + 1)),
                                              part_text(map.left_of(column), map.left_of(column + 1)),
                                              std::isnan(mean) ? "not finite" : fmt::format("{:.6g} in the mean", mean)));
  }
  if (const QRect area = histogram_area(); area.contains(at)) {
    const Histogram& h = seen_.histogram;
    const auto bin = static_cast<std::size_t>((at.x() - area.left()) * static_cast<int>(h.counts.size()) / area.width());
    return QString::fromStdString(
        fmt::format("{} elements from {:.6g} to {:.6g}", grouped(h.counts[bin]), h.edge(bin), h.edge(bin + 1)));
  }
  return {};
}

bool ValuePicture::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (const QString text = text_at(help->pos()); !text.isEmpty())
    QToolTip::showText(help->globalPos(), text, this);
  else
    QToolTip::hideText();
  return true;
}

}  // namespace tapedeck::viewer
