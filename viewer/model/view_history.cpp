#include <tapedeck/viewer/model/view_history.h>

namespace tapedeck::viewer {

void ViewHistory::reset(const PlanView& view) {
  back_.clear();
  forward_.clear();
  current_ = view;
  end_gesture();
}

void ViewHistory::note(const PlanView& view, Gesture gesture, Clock::time_point now) {
  if (view == current_) return;
  const bool same_gesture = gesture != Gesture::jump && gesture == last_ && (gesture == Gesture::drag || now - when_ < kPause);
  if (!same_gesture) {
    back_.push_back(current_);
    if (back_.size() > kMost) back_.erase(back_.begin());
  }
  forward_.clear();
  current_ = view;
  last_ = gesture;
  when_ = now;
}

void ViewHistory::convert(const std::function<PlanView(const PlanView&)>& change) {
  for (PlanView& view : back_) view = change(view);
  for (PlanView& view : forward_) view = change(view);
  current_ = change(current_);
  end_gesture();
}

const PlanView& ViewHistory::back() { return go(&back_, &forward_); }
const PlanView& ViewHistory::forward() { return go(&forward_, &back_); }

const PlanView& ViewHistory::go(std::vector<PlanView>* from, std::vector<PlanView>* to) {
  to->push_back(current_);
  current_ = from->back();
  from->pop_back();
  end_gesture();
  return current_;
}

}  // namespace tapedeck::viewer
