#include <tapedeck/viewer/panels/graph_view.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr double kViewMargin = 18;  // around all, in units of the canvas

}  // namespace

void GraphView::set(const CanvasBox& plot, double width, double height) {
  plot_ = plot;
  width_ = std::max(width, 1.0);
  height_ = std::max(height, 1.0);
  if (mode_ != Mode::moved) fit();
  if (!has_history_) history_.reset(as_ranges());
  has_history_ = true;
}

void GraphView::fit() {
  shown_.reset();
  const double wide = std::max(static_cast<double>(plot_.width()) - 2 * kViewMargin, 1.0);
  const double high = std::max(static_cast<double>(plot_.height()) - 2 * kViewMargin, 1.0);
  scale_ = std::min({wide / width_, high / height_, kMostFit});
  x_ = width_ / 2;
  y_ = height_ / 2;
  if (mode_ == Mode::all || scale_ >= kReadable) return;
  scale_ = std::min(wide / width_, 1.0);
  y_ = static_cast<double>(plot_.height()) / 2 / scale_ - kViewMargin / scale_;
}

void GraphView::show_home() {
  mode_ = Mode::home;
  fit();
  history_.note(as_ranges(), Gesture::jump);
}

void GraphView::show_all() {
  mode_ = Mode::all;
  fit();
  history_.note(as_ranges(), Gesture::jump);
}

void GraphView::centre(double x, double y, double least_scale) {
  x_ = x;
  y_ = y;
  scale_ = std::max(scale_, least_scale);
  changed(Gesture::jump);
}

double GraphView::least_scale() const {
  const double least =
      0.5 * std::min({static_cast<double>(plot_.width()) / width_, static_cast<double>(plot_.height()) / height_, 1.0});
  return std::min(least, kMost);
}

void GraphView::zoom(double factor, const ImVec2& fixed, Gesture gesture) {
  const double x = x_at(fixed.x), y = y_at(fixed.y);
  scale_ = std::clamp(scale_ * factor, least_scale(), kMost);
  x_ += x - x_at(fixed.x);
  y_ += y - y_at(fixed.y);
  changed(gesture);
}

void GraphView::pan(float dx, float dy, Gesture gesture) {
  x_ -= static_cast<double>(dx) / scale_;
  y_ -= static_cast<double>(dy) / scale_;
  changed(gesture);
}

void GraphView::put(double x, double y, const ImVec2& at) {
  const double dx = x - x_at(at.x), dy = y - y_at(at.y);
  x_ += dx;
  y_ += dy;
  shown_.reset();
  history_.convert([&](PlanView shown) {
    shown.time.low += dx;
    shown.time.high += dx;
    shown.address.low += dy;
    shown.address.high += dy;
    return shown;
  });
  mode_ = Mode::moved;
}

// The middle of the picture stays over the layout.
void GraphView::clamp() {
  x_ = std::clamp(x_, 0.0, width_);
  y_ = std::clamp(y_, 0.0, height_);
}

void GraphView::changed(Gesture gesture) {
  mode_ = Mode::moved;
  shown_.reset();
  clamp();
  history_.note(as_ranges(), gesture);
}

PlanView GraphView::as_ranges() const { return {{x_ - 1 / scale_, x_ + 1 / scale_}, {y_ - 1 / scale_, y_ + 1 / scale_}}; }

void GraphView::take(const PlanView& ranges) {
  x_ = ranges.time.at(0.5);
  y_ = ranges.address.at(0.5);
  scale_ = 2 / ranges.time.size();
  mode_ = Mode::moved;
  shown_.reset();
  clamp();
}

void GraphView::show(const PlanView& saved) {
  take(saved);
  scale_ = std::clamp(scale_, least_scale(), kMost);
  history_.note(as_ranges(), Gesture::jump);
  shown_ = saved;
}

bool GraphView::back() {
  if (!history_.can_go_back()) return false;
  take(history_.back());
  return true;
}

bool GraphView::forward() {
  if (!history_.can_go_forward()) return false;
  take(history_.forward());
  return true;
}

void GraphView::reset() {
  mode_ = Mode::home;
  shown_.reset();
  has_history_ = false;
}

}  // namespace tapedeck::viewer
