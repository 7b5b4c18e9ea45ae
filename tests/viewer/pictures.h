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
  std::int64_t different = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      different += std::abs(qRed(p) - qRed(q)) > visible || std::abs(qGreen(p) - qGreen(q)) > visible ||
                   std::abs(qBlue(p) - qBlue(q)) > visible;
    }
  return static_cast<double>(different) / (static_cast<double>(a.width()) * a.height());
}

inline std::set<QRgb> colours_in(const QImage& image) {
  std::set<QRgb> colours;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, y) | 0xff000000u);
  return colours;
}

}  // namespace tapedeck::viewer
