// The curve of memory of a running program, as it grows. This file uses ImGui only.
#pragma once

#include <tapedeck/viewer/drawing/picture.h>
#include <tapedeck/viewer/live/live_source.h>
#include <tapedeck/viewer/panels/plot.h>

#include <functional>
#include <string>

namespace tapedeck::viewer {

// Wheel and drag zoom and move the calls in view; while it follows, the newest call stays at the right edge.
class LivePicture : public Picture {
 public:
  explicit LivePicture(const LiveSource& source) : source_(source) {}
  void draw(float width, float height) override;

  bool follows() const { return follows_; }
  void follow(bool on) { follows_ = on; }
  void fit_all();  // shows all calls, and follows
  Range view() const { return view_; }
  // Is called when the mouse has changed the view or ended following.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  void update_view(double begin, double end);
  void navigate(const Plot& plot, double begin, double end);
  void draw_curve(const Plot& plot, const LiveTape& tape) const;
  void draw_steps(const Plot& plot, const LiveTape& tape) const;
  void draw_peak(const Plot& plot, const LiveTape& tape, const ByteUnit& unit) const;
  void draw_calls_axis(const Plot& plot) const;
  void draw_hover(const Plot& plot, const LiveTape& tape) const;

  const LiveSource& source_;
  Range view_{0, 1};
  bool follows_ = true, shows_all_ = true, dragging_ = false;
  std::function<void()> changed_;
};

}  // namespace tapedeck::viewer
