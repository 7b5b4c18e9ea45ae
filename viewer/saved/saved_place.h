// From the view and the selection of the window to a place that can be saved, and back.
#pragma once

#include <tapedeck/viewer/model/session.h>
#include <tapedeck/viewer/saved/saved_session.h>

#include <string>

namespace tapedeck::viewer {

// The part of the plan in view, and the selection. Without a plan: the empty place.
SavedPlace place_of(const Session& session);
// Only the selection of a plan, as a place without a view, and back. Where the plan lacks its value, nothing is selected.
SavedPlace place_of(const PlanModel& model, const Selection& selection);
Selection selection_at(const SavedPlace& place, const PlanModel& model);
// Shows a place, moved into the plan where it lies outside. Returns false if the plan does not have its value: then nothing is
// selected. The marked range stays. REQUIRES a plan.
bool show_place(const SavedPlace& place, Session* session);
// The name of a place in a few words: "%h5", "node 12: relu" or "nodes 10 to 40".
std::string name_of_place(const Session& session, const SavedPlace& place);

}  // namespace tapedeck::viewer
