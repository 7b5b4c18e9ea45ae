// The shared state of the panels; see session.h. Every change goes through tell(), which calls one callback of all observers. A
// new plan has new ids, so show() finds the old selection again by the name of its value.
#include <tapedeck/viewer/model/session.h>

#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/plan/same_step.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

// The node of `to` that makes the same value as node n of `from` does, where its value has a name that `to` has too; else the
// node at the same share of the schedule.
double same_place(const PlanModel& from, const PlanModel& to, double at) {
  const double share = at / std::max(from.nodes(), 1);
  const auto n = static_cast<NodeId>(at);
  if (n < 0 || n >= from.nodes() || from.graph().nodes[n].n_outputs == 0) return share * to.nodes();
  const NodeId found = to.nodes_by_value().first_maker(from.graph().values[from.graph().nodes[n].first_output].name);
  return found == kNone ? share * to.nodes() : found + (at - n);
}

// At least so long: nodes that take no time have no width on an axis of microseconds.
Range widened(Range range, double least) {
  if (range.size() < least) range.high = range.low + least;
  return range;
}

PlanView home_in(const PlanModel& model, TimeUnit unit) {
  PlanView home = model.home();
  home.time = model.time_axis(unit)->range_of(home.time);
  return home;
}

// The same part of the step in another plan of it, whose clones make it longer or shorter. What shows all of a plan shows all
// of the other one.
PlanView carried_view(const PlanModel& from, const PlanModel& to, PlanView view, TimeUnit unit) {
  const PlanView was = home_in(from, unit), home = home_in(to, unit);
  if (view == was) return home;
  if (view.time == was.time) {
    view.time = home.time;
  } else if (from.nodes() != to.nodes()) {
    const double node = from.time_axis(unit)->node_at(view.time.at(0.5)), size = view.time.size();
    const double middle = to.time_axis(unit)->at(same_place(from, to, node));
    view.time = {middle - size / 2, middle + size / 2};
  }
  view.time.clamp(home.time.low, home.time.high);
  view.address.clamp(home.address.low, home.address.high);
  return view;
}

NodeRange clipped(NodeRange range, const PlanModel& model) {
  const NodeId last = model.nodes() - 1;
  if (range.empty() || last < 0) return {};
  range.first = std::clamp(range.first, 0, last);
  range.last = std::clamp(range.last, range.first, last);
  return range;
}

}  // namespace

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
  range_ = {};
  model_.reset();
  groups_.reset();
  colours_.reset();
  keep_all_.reset();
  release_later(std::exchange(document_, nullptr));
  planning_ = Planning::done;
  asked_budget_ = -1;
  wishes_.clear();
  known_.clear();
  measurements_.clear();
  measured_us_.clear();
  ++measured_serial_;
}

// Selects the value of the same name in the new plan, and of its copies the one of the same run if there is one. A value
// without a name cannot be found again, because numbers change with the plan.
void Session::find_again(const PlanModel& before, const Selection& old) {
  const ValueEntry& was = before.values().entry(old.value);
  const Name name = before.graph().values[was.copies.front()].name;
  if (name.empty()) return;
  const auto run = std::find(was.copies.begin(), was.copies.end(), old.value) - was.copies.begin();
  const auto select_in = [&](const ValueEntry& e) {
    if (e.name != was.name) return false;
    select(e.copies[std::min<std::size_t>(static_cast<std::size_t>(run), e.copies.size() - 1)], kNone);
    return true;
  };
  // Most values are the first results of nodes, which are found without a look at all values.
  const NodeId maker = model_->nodes_by_value().first_maker(name);
  if (maker != kNone && select_in(model_->values().entry(model_->graph().nodes[maker].first_output))) return;
  for (const ValueEntry& e : model_->values().log())
    if (select_in(e)) return;
}

// The range of the same first and last node in the new plan.
void Session::find_range_again(const PlanModel& before) {
  const auto in_new_plan = [&](NodeId n) { return static_cast<NodeId>(same_place(before, *model_, n)); };
  const NodeRange was = std::exchange(range_, {});
  if (!was.empty()) range_ = clipped({in_new_plan(was.first), in_new_plan(was.last)}, *model_);
}

void Session::show(std::shared_ptr<const PlanModel> model) {
  const std::shared_ptr<const PlanModel> before = std::exchange(model_, std::move(model));
  complete_ = model_ && model_->is_complete();
  colours_.reset();
  const Selection old = std::exchange(selection_, Selection{});
  measured_us_ = model_ ? measurements_.node_us(*model_) : std::vector<double>();
  if (model_ && before && old.value != kNone) find_again(*before, old);
  if (model_ && before)
    find_range_again(*before);
  else
    range_ = {};
  if (model_) {
    const PlanView carried = before ? carried_view(*before, *model_, view, time_unit_) : home();
    if (!(carried == view)) history_.reset(carried);
    view = carried;
  }
  centred_ = kNone;
  tell(&Observer::plan_changed);
  tell(&Observer::selection_changed);
}

void Session::note_complete() {
  if (complete_ || !model_ || !model_->is_complete()) return;
  complete_ = true;
  tell(&Observer::plan_changed);
}

void Session::set_planning(Planning planning, double progress) {
  if (planning == planning_ && progress == progress_) return;
  planning_ = planning;
  progress_ = progress;
  tell(&Observer::plan_changed);
}

void Session::set_asked_budget(std::int64_t bytes) {
  if (bytes == asked_budget_) return;
  asked_budget_ = bytes;
  tell(&Observer::plan_changed);
}

void Session::set_opening(std::string name) {
  if (name == opening_) return;
  opening_ = std::move(name);
  tell(&Observer::plan_changed);
}

void Session::set_wishes(std::vector<Wish> wishes) {
  wishes_ = std::move(wishes);
  tell(&Observer::plan_changed);
}

void Session::set_known(std::vector<KnownPlan> known) {
  if (known.size() == known_.size()) return;
  known_ = std::move(known);
  tell(&Observer::plan_changed);
}

void Session::set_measurements(Measurements measurements) {
  measurements_ = std::move(measurements);
  ++measured_serial_;
  measured_us_ = model_ ? measurements_.node_us(*model_) : std::vector<double>();
  tell(&Observer::plan_changed);
}

void Session::set_measuring(bool measuring) {
  if (measuring == measuring_) return;
  measuring_ = measuring;
  tell(&Observer::plan_changed);
}

void Session::set_keep_all(std::shared_ptr<const PlanModel> model) {
  keep_all_ = std::move(model);
  tell(&Observer::plan_changed);
}

void Session::select(ValueId v, NodeId n) {
  const ValueId hovered = selection_.hovered;
  selection_ = Selection{};
  if (v != kNone)
    selection_.select_value(model_->graph(), v);
  else
    selection_.select_node(model_->graph(), n);
  if (selection_.value != kNone) selection_.copies = model_->values().copies(selection_.value);
  selection_.hovered = hovered;
  centred_ = kNone;
}

void Session::select_value(ValueId v) {
  if (!model_ || !model_->is_complete()) return;
  select(v, kNone);
  tell(&Observer::selection_changed);
}

void Session::select_node(NodeId n) {
  if (!model_ || !model_->is_complete()) return;
  select(kNone, n);
  tell(&Observer::selection_changed);
}

void Session::hover(ValueId v) {
  if (v == selection_.hovered) return;
  selection_.hovered = v;
  tell(&Observer::selection_changed);
}

void Session::clear_selection() {
  selection_.clear();
  range_ = {};
  tell(&Observer::selection_changed);
}

void Session::select_range(const NodeRange& range) {
  if (!model_) return;
  const NodeRange now = clipped(range, *model_);
  if (now == range_) return;
  range_ = now;
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
  const PlanView whole = home();
  view.time.clamp(whole.time.low, whole.time.high);
  view.address.clamp(whole.address.low, whole.address.high);
}

PlanView Session::home() const { return home_in(*model_, time_unit_); }

void Session::set_colour_by(ColourBy by) {
  if (by == colour_by_) return;
  colour_by_ = by;
  groups_.reset();
  colours_.reset();
  tell(&Observer::selection_changed);
}

const PlanColours& Session::colours() {
  if (!colours_) {
    if (!groups_ && colour_by_ != ColourBy::role && document_)
      groups_ = std::make_shared<const ValueGroups>(*document_->captured, colour_by_);
    colours_.emplace(model_, groups_);
  }
  return *colours_;
}

// Both ends of a view keep their nodes. The cursor is noted anew with the next frame.
void Session::set_time_unit(TimeUnit unit) {
  if (unit == time_unit_) return;
  const TimeUnit before = std::exchange(time_unit_, unit);
  cursor = {};
  if (model_) {
    const std::shared_ptr<const TimeAxis> from = model_->time_axis(before), to = model_->time_axis(unit);
    const auto change = [&](PlanView shown) {
      shown.time = widened(to->range_of(from->nodes_of(shown.time)), to->least_size());
      return shown;
    };
    history_.convert(change);
    view = change(view);
    clamp_view();
  }
  tell(&Observer::selection_changed);
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
  if (time_factor != 1) view.time.zoom(over ? share : 0.5, time_factor, model_ ? time_axis()->least_size() : 1);
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
  view = home();
  centred_ = kNone;
  view_changed();
}

void Session::fit_selection() {
  if (!model_ || selection_.value == kNone) return fit_all();
  PlanView around = model_->around(selection_.value);
  around.time = widened(time_axis()->range_of(around.time), time_axis()->least_size());
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
