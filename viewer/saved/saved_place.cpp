#include <tapedeck/viewer/saved/saved_place.h>

#include <tapedeck/viewer/plan/explain.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr double kLeastTime = 1, kLeastAddress = 64;  // in view; a smaller range comes from a file that no viewer wrote

Range at_least(Range range, double least) {
  range.high = std::max(range.high, range.low + least);
  return range;
}

// kNone if the plan does not have it.
ValueId value_at(const SavedPlace& place, const PlanModel& model) {
  const std::vector<ValueEntry>& log = model.values().log();
  const auto found = std::find_if(log.begin(), log.end(), [&](const ValueEntry& e) { return e.name == place.value; });
  return found == log.end() ? kNone : found->copies[std::min(static_cast<std::size_t>(place.run), found->copies.size() - 1)];
}

void clear_selection(Session* session) {
  const NodeRange marked = session->range();
  session->clear_selection();
  session->select_range(marked);
}

}  // namespace

SavedPlace place_of(const Session& session) {
  if (session.model() == nullptr) return {};
  SavedPlace place = place_of(*session.model(), session.selection());
  if (!(session.view == session.home()))
    place.view = PlanView{session.time_axis()->nodes_of(session.view.time), session.view.address};
  return place;
}

SavedPlace place_of(const PlanModel& model, const Selection& selection) {
  SavedPlace place;
  if (selection.value == kNone) {
    place.node = selection.node;
    return place;
  }
  const ValueEntry& entry = model.values().entry(selection.value);
  place.value = entry.name;
  place.run =
      static_cast<std::int32_t>(std::find(entry.copies.begin(), entry.copies.end(), selection.value) - entry.copies.begin());
  return place;
}

Selection selection_at(const SavedPlace& place, const PlanModel& model) {
  Selection selection;
  if (place.value.empty()) {
    selection.select_node(model.graph(), place.node);
    return selection;
  }
  const ValueId v = value_at(place, model);
  if (v == kNone) return selection;
  selection.select_value(model.graph(), v);
  selection.copies = model.values().copies(v);
  return selection;
}

bool show_place(const SavedPlace& place, Session* session) {
  const PlanModel& model = *session->model();
  session->view = session->home();
  if (place.view) {
    const TimeAxis& axis = *session->time_axis();
    const Range nodes = at_least(place.view->time, kLeastTime);
    session->view = {at_least(axis.range_of(nodes), axis.least_size()), at_least(place.view->address, kLeastAddress)};
  }
  session->view_changed();
  if (!place.value.empty()) {
    const ValueId v = value_at(place, model);
    if (v == kNone) {
      clear_selection(session);
      return false;
    }
    session->select_value(v);
  } else if (place.node != kNone) {
    session->select_node(place.node);
  } else {
    clear_selection(session);
  }
  return true;
}

std::string name_of_place(const Session& session, const SavedPlace& place) {
  const PlanModel* model = session.model();
  if (!place.value.empty()) return "%" + place.value;
  if (model == nullptr) return "the whole plan";
  if (place.node != kNone && place.node < model->nodes()) return node_title(model->graph(), place.node);
  if (!place.view) return "the whole plan";
  return fmt::format("nodes {:.0f} to {:.0f}", std::floor(place.view->time.low), std::ceil(place.view->time.high) - 1);
}

}  // namespace tapedeck::viewer
