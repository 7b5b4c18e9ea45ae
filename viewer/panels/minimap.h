// The minimap: a small picture of the whole plan in a corner of the memory plan, while only a part of the plan is in view. A
// rectangle in it is the part in view.
//
//     +-----------------------------+
//     |  memory plan                |
//     |                +-----------+|     A drag that begins in the rectangle moves it. A press beside it, or a click, centres
//     |                |   [  ]    ||     the view there.
//     +----------------+-----------++
#pragma once

#include <tapedeck/viewer/panels/plot.h>

namespace tapedeck::viewer {

class Minimap {
 public:
  bool is_on() const { return on_; }
  void turn(bool on) { on_ = on; }

  // Takes the input of the mouse and finds the place for this frame. True while the mouse holds the minimap or lies on it: the
  // plot then takes no other input.
  bool update(const Plot& around, Session& session);
  // Draws what update() has placed. The rectangles of the whole plan are kept from frame to frame.
  void draw(Session& session);

  bool is_seen() const { return seen_; }  // in the last frame
  // Of a position on the axis of time, and of an address.
  ImVec2 place_of(double time, double address) const { return ImVec2(plot_.x_of(time), plot_.y_of(address)); }

 private:
  struct Point {
    double time = 0, address = 0;
  };
  Point under(const ImVec2& mouse) const;
  void centre(Session& session, const Point& at) const;

  bool on_ = true, seen_ = false, held_ = false;
  Point grabbed_;  // from the mouse to the centre of the view
  Plot plot_;      // the whole plan, on an axis of positions
  LodFrame lod_;
  std::uint64_t model_ = 0;               // the serial number of the model of lod_
  std::shared_ptr<const TimeAxis> axis_;  // of lod_
};

}  // namespace tapedeck::viewer
