// Compares pictures with a tolerance.
#pragma once

#include <QtGui/QImage>

#include <cstdint>
#include <cstdlib>
#include <set>

namespace tapedeck::viewer {

// The share of the pixels that differ by more than `visible` of 255 in any channel; 1 for pictures of different sizes.
inline double share_different(const QImage& a, const QImage& b, int visible = 24) {
  if (a.size() != b.size()) return 1;
  const QImage first = a.convertToFormat(QImage::Format_ARGB32), second = b.convertToFormat(QImage::Format_ARGB32);
  std::int64_t different = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = reinterpret_cast<const QRgb*>(first.constScanLine(y))[x];
      const QRgb q = reinterpret_cast<const QRgb*>(second.constScanLine(y))[x];
      if (p == q) continue;
      different += std::abs(qRed(p) - qRed(q)) > visible || std::abs(qGreen(p) - qGreen(q)) > visible ||
                   std::abs(qBlue(p) - qBlue(q)) > visible;
    }
  return static_cast<double>(different) / (static_cast<double>(a.width()) * a.height());
}

inline std::set<QRgb> colours_in(const QImage& image) {
  const QImage pixels = image.convertToFormat(QImage::Format_RGB32);
  std::set<QRgb> colours;
  QRgb last = 0;  // no opaque colour
  for (int y = 0; y < pixels.height(); ++y) {
    const auto* row = reinterpret_cast<const QRgb*>(pixels.constScanLine(y));
    for (int x = 0; x < pixels.width(); ++x)
      if (row[x] != last) colours.insert(last = row[x] | 0xff000000u);
  }
  return colours;
}

}  // namespace tapedeck::viewer
