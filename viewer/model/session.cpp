// The shared state of the panels; see session.h. Every change goes through tell(), which calls one callback of all observers. A
// new plan has new ids, so show() finds the old selection again by the name of its value.
#include <tapedeck/viewer/model/session.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

void Session::detach(Observer* observer) { std::erase(observers_, observer); }

void Session::tell(void (Observer::*what)()) {
  for (Observer* observer : observers_) (observer->*what)();
}

void Session::open(Document document) {
  close();
  document_ = std::make_shared<const Document>(std::move(document));
  tell(&Observer::opened);
}

void Session::close() {
  if (!document_) return;
  tell(&Observer::closed);
  selection_.clear();
  centred_ = kNone;
  model_.reset();
  document_.reset();
  solving_ = false;
}

void Session::show(std::shared_ptr<const PlanModel> model) {
  const std::shared_ptr<const PlanModel> before = std::exchange(model_, std::move(model));
  const Selection old = std::exchange(selection_, Selection{});
  const bool same_length = before && model_ && before->nodes() == model_->nodes();
  // An unnamed value cannot be found again, because numbers change with the plan.
  const Name name = before && old.value != kNone ? before->graph().values[old.value].name : Name();
  if (model_ && !name.empty()) {
    for (ValueId v = 0; v < model_->graph().value_count(); ++v) {
      if (model_->graph().values[v].name != name) continue;
      selection_.select_value(model_->graph(), v);
      break;
    }
  }
  if (model_ && !(same_length && before->extent() == model_->extent())) {
    view = model_->home();
    history_.reset(view);
  }
  centred_ = kNone;
  tell(&Observer::plan_changed);
  tell(&Observer::selection_changed);
}

void Session::set_solving(bool solving, double progress) {
  if (solving == solving_ && progress == progress_) return;
  solving_ = solving;
  progress_ = progress;
  tell(&Observer::plan_changed);
}

void Session::select_value(ValueId v) {
  if (!model_) return;
  const ValueId hovered = selection_.hovered;
  selection_.select_value(model_->graph(), v);
  selection_.hovered = hovered;
  centred_ = kNone;
  tell(&Observer::selection_changed);
}

void Session::select_node(NodeId n) {
  if (!model_) return;
  const ValueId hovered = selection_.hovered;
  selection_.select_node(model_->graph(), n);
  selection_.hovered = hovered;
  centred_ = kNone;
  tell(&Observer::selection_changed);
}

void Session::hover(ValueId v) {
  if (v == selection_.hovered) return;
  selection_.hovered = v;
  tell(&Observer::selection_changed);
}

void Session::clear_selection() {
  selection_.clear();
  tell(&Observer::selection_changed);
}

void Session::step_node(int by) {
  if (!model_ || model_->nodes() == 0) return;
  const NodeId last = model_->nodes() - 1;
  const NodeId from = selection_.node != kNone ? selection_.node + by : by > 0 ? 0 : last;
  select_node(std::clamp(from, 0, last));
}

void Session::follow(bool to_reader) {
  if (!model_ || selection_.value == kNone) return;
  const Graph& graph = model_->graph();
  if (!to_reader) {
    if (selection_.node == kNone) return;
    const auto inputs = graph.inputs(graph.nodes[selection_.node]);
    if (!inputs.empty()) select_value(inputs[0]);
    return;
  }
  for (NodeId n = std::max(selection_.node, 0); n < graph.node_count(); ++n) {
    const auto inputs = graph.inputs(graph.nodes[n]);
    if (std::find(inputs.begin(), inputs.end(), selection_.value) != inputs.end()) return select_node(n);
  }
}

void Session::clamp_view() {
  const PlanView home = model_->home();
  view.time.clamp(home.time.low, home.time.high);
  view.address.clamp(home.address.low, home.address.high);
}

void Session::view_changed(Gesture gesture) {
  if (!model_) return;
  clamp_view();
  history_.note(view, gesture);
  tell(&Observer::selection_changed);
}

void Session::view_back() {
  if (!model_ || !history_.can_go_back()) return;
  view = history_.back();
  clamp_view();  // another plan may be shown by now
  tell(&Observer::selection_changed);
}

void Session::view_forward() {
  if (!model_ || !history_.can_go_forward()) return;
  view = history_.forward();
  clamp_view();
  tell(&Observer::selection_changed);
}

void Session::zoom(double time_factor, double address_factor) {
  const double share = (cursor.time - view.time.low) / view.time.size();
  const bool over = cursor.picture != nullptr && share >= 0 && share <= 1;
  if (time_factor != 1) view.time.zoom(over ? share : 0.5, time_factor, 1);
  if (address_factor != 1) view.address.zoom(0.5, address_factor, 64);
  view_changed(Gesture::key);
}

void Session::pan(double time_share, double address_share) {
  view.time.pan(time_share);
  view.address.pan(address_share);
  view_changed(Gesture::key);
}

void Session::fit_all() {
  if (!model_) return;
  view = model_->home();
  centred_ = kNone;
  view_changed();
}

void Session::fit_selection() {
  if (!model_ || selection_.value == kNone) return fit_all();
  const PlanView around = model_->around(selection_.value);
  if (centred_ == selection_.value) {
    view = around;
  } else {
    view.time.pan((around.time.at(0.5) - view.time.at(0.5)) / view.time.size());
    view.address.pan((around.address.at(0.5) - view.address.at(0.5)) / view.address.size());
  }
  centred_ = selection_.value;
  view_changed();
}

}  // namespace tapedeck::viewer
