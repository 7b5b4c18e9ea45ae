// The part of the graph that is in view: the place in the middle of the picture, and pixels per unit. It has a history, as the
// view of the memory plan has. Until a person moves it, the view follows the size of the picture and the layout.
#pragma once

#include <tapedeck/viewer/model/view_history.h>

#include <imgui.h>

#include <optional>

namespace tapedeck::viewer {

// A rectangle of the canvas, in units of the canvas.
struct CanvasBox {
  float x0 = 0, y0 = 0, x1 = 1, y1 = 1;

  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  bool contains(const ImVec2& p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

class GraphView {
 public:
  static constexpr double kMost = 4, kMostFit = 1.25;  // canvas units per unit of the layout; the second, to fit all
  static constexpr double kReadable = 0.5;             // a smaller picture of all is not the first view

  // Tells where the picture is and how large the layout is; once a frame.
  void set(const CanvasBox& plot, double width, double height);
  const CanvasBox& plot() const { return plot_; }

  double scale() const { return scale_; }
  float x_of(double x) const { return static_cast<float>((x - x_) * scale_) + (plot_.x0 + plot_.x1) / 2; }
  float y_of(double y) const { return static_cast<float>((y - y_) * scale_) + (plot_.y0 + plot_.y1) / 2; }
  double x_at(float x) const { return x_ + static_cast<double>(x - (plot_.x0 + plot_.x1) / 2) / scale_; }
  double y_at(float y) const { return y_ + static_cast<double>(y - (plot_.y0 + plot_.y1) / 2) / scale_; }

  void show_home();  // all, if that can be read; else the upper end
  void show_all();
  void centre(double x, double y, double least_scale);
  void zoom(double factor, const ImVec2& fixed, Gesture gesture);  // a factor above 1 zooms in
  void pan(float dx, float dy, Gesture gesture);                   // moves the picture by so many units of the canvas
  // Moves the view so that a place of the layout is at this place of the canvas; no gesture: the history moves, too.
  void put(double x, double y, const ImVec2& at);
  void end_gesture() { history_.end_gesture(); }
  bool back();
  bool forward();
  bool is_moved() const { return mode_ == Mode::moved; }  // by a person
  // The place in the middle and the zoom, whatever the size of the picture is: for a session file. `show` gives back to `saved`
  // exactly the ranges that it took, so that a file does not change while nobody moves the picture.
  PlanView saved() const { return shown_ ? *shown_ : as_ranges(); }
  void show(const PlanView& saved);
  void reset();  // of another document

 private:
  enum class Mode { home, all, moved };
  PlanView as_ranges() const;
  void take(const PlanView& ranges);
  void fit();
  void clamp();
  double least_scale() const;
  void changed(Gesture gesture);

  CanvasBox plot_{0, 0, 1000, 600};  // until the first frame
  double width_ = 1, height_ = 1;
  double x_ = 0, y_ = 0, scale_ = 1;
  Mode mode_ = Mode::home;
  std::optional<PlanView> shown_;  // by show(); none: the picture has moved since
  ViewHistory history_;
  bool has_history_ = false;
};

}  // namespace tapedeck::viewer
