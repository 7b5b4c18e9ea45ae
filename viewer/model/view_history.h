// The views that were shown before, for "back" and "forward". All changes of one gesture are one entry: a drag from press to
// release, or turns of the wheel or strokes of keys that follow each other within kPause.
//
//   fit all    wheel wheel wheel    drag......    back: the view before the drag    back: the view before the wheel
#pragma once

#include <tapedeck/viewer/plan/view.h>

#include <chrono>
#include <functional>
#include <vector>

namespace tapedeck::viewer {

// Who changed the view. A jump is always an entry of its own.
enum class Gesture { jump, drag, wheel, key };

// Two stacks of views around the current one.
class ViewHistory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{700};
  static constexpr std::size_t kMost = 200;  // older views are forgotten

  void reset(const PlanView& view);  // forgets everything
  void note(const PlanView& view, Gesture gesture, Clock::time_point now = Clock::now());
  void convert(const std::function<PlanView(const PlanView&)>& change);  // all views, to another axis
  void end_gesture() { last_ = Gesture::jump; }                          // the next change is an entry of its own

  bool can_go_back() const { return !back_.empty(); }
  bool can_go_forward() const { return !forward_.empty(); }
  const PlanView& back();     // REQUIRES can_go_back(); returns the view that is current now
  const PlanView& forward();  // REQUIRES can_go_forward(); returns the view that is current now

 private:
  const PlanView& go(std::vector<PlanView>* from, std::vector<PlanView>* to);

  PlanView current_;
  std::vector<PlanView> back_, forward_;
  Gesture last_ = Gesture::jump;
  Clock::time_point when_;
};

}  // namespace tapedeck::viewer
