#include <tapedeck/viewer/plan/level_of_detail.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

struct Snapped {
  std::int32_t low, high;
};

// Rounds [a, b) to pixels inside [0, size), at least one pixel wide.
Snapped snap(double a, double b, std::int32_t size) {
  // A number that is not negative is rounded by adding a half: several times faster than std::lround.
  const auto low = static_cast<std::int32_t>(std::clamp(a, 0.0, static_cast<double>(size)) + 0.5);
  const auto high = static_cast<std::int32_t>(std::clamp(b, 0.0, static_cast<double>(size)) + 0.5);
  if (high > low) return {low, high};
  const std::int32_t first = std::min(low, size - 1);
  return {first, first + 1};
}

void fill_ids(LodFrame* frame) {
  std::fill(frame->ids.begin(), frame->ids.end(), -1);
  for (std::size_t i = 0; i < frame->rects.size(); ++i) {
    const LodRect& r = frame->rects[i];
    for (std::int32_t y = r.y0; y < r.y1; ++y) {
      const auto line = frame->ids.begin() + static_cast<std::ptrdiff_t>(y) * frame->width;
      std::fill(line + r.x0, line + r.x1, static_cast<std::int32_t>(i));
    }
  }
}

}  // namespace

LodFrame make_lod(std::span<const PlanRect> rects, const PlanView& view, std::int32_t width, std::int32_t height,
                  const TimeAxis& axis) {
  LodFrame frame;
  make_lod(rects, view, width, height, axis, &frame);
  return frame;
}

void make_lod(std::span<const PlanRect> rects, const PlanView& view, std::int32_t width, std::int32_t height,
              const TimeAxis& axis, LodFrame* frame) {
  frame->width = frame->height = 0;
  frame->rects.clear();
  frame->ids.clear();
  if (width < 1 || height < 1 || !(view.time.size() > 0) || !(view.address.size() > 0)) return;
  frame->width = width;
  frame->height = height;
  const auto row = static_cast<std::size_t>(width);
  const double sx = width / view.time.size(), sy = height / view.address.size();
  // By first pixel: the last thin rectangle that starts there, or -1. `previous` links it to the earlier ones at this pixel.
  // The memory is that of the ids, which are written afterwards.
  std::vector<std::int32_t>& starts = frame->ids;
  starts.assign(row * static_cast<std::size_t>(height), -1);
  std::vector<std::int32_t> previous;
  for (std::size_t i = 0; i < rects.size(); ++i) {
    const PlanRect& r = rects[i];
    const double begin = axis.at(r.begin), end = axis.at(r.end);
    if (end <= view.time.low || begin >= view.time.high) continue;
    const double x0 = (begin - view.time.low) * sx, x1 = (end - view.time.low) * sx;
    const double y0 = height - (static_cast<double>(r.address + r.bytes) - view.address.low) * sy;
    const double y1 = height - (static_cast<double>(r.address) - view.address.low) * sy;
    if (x1 <= 0 || x0 >= width || y1 <= 0 || y0 >= height) continue;
    const Snapped x = snap(x0, x1, width), y = snap(y0, y1, height);
    const LodRect made{x.low, y.low, x.high, y.high, static_cast<std::int32_t>(i), 1, r.bytes};
    const bool thin = x.high - x.low == 1 || y.high - y.low == 1;
    std::int32_t& head = starts[static_cast<std::size_t>(y.low) * row + static_cast<std::size_t>(x.low)];
    std::int32_t same = thin ? head : -1;
    while (same != -1 && frame->rects[same].y1 != y.high) same = previous[same];
    if (same != -1) {
      LodRect& kept = frame->rects[same];
      if (x.high > kept.x1) {
        kept.x1 = x.high;
        kept.rect = made.rect;
      }
      ++kept.count;
      kept.bytes += r.bytes;
      continue;
    }
    previous.push_back(thin ? head : -1);
    if (thin) head = static_cast<std::int32_t>(frame->rects.size());
    frame->rects.push_back(made);
  }
  fill_ids(frame);
}

}  // namespace tapedeck::viewer
