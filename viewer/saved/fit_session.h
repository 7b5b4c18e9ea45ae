// Fits a saved session to the file as it is now: the graph, or the plan in the file, may be another one since.
//
//     graph changed          the views, the marked range and the numbers of nodes go; names, tables and bookmarks stay
//     plan in file changed   the budget, the wishes and the strategy of the session go: the file's own hold
//     a wish names nothing   it goes
#pragma once

#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/saved/saved_session.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// Equal for graphs of the same nodes, names and types; the lines of the program that recorded them do not count. O(graph).
std::string graph_mark(const Graph& graph);
// Of the plan that a file holds: its budget, its numbers and the options that it was asked for. Empty without a plan.
std::string plan_mark(const std::optional<Plan>& plan);

// Takes out of the session what does not fit the document, and returns a sentence for each kind of thing that went. REQUIRES
// that the document still has the plan of its file. O(graph), and as long as the passes of a plan if a wish names no value of
// the captured graph.
std::vector<std::string> fit_session(const Document& document, SavedSession* session);
// True if the plan in the file is the one that the session asks for.
bool asks_for(const SavedSession& session, const Plan& plan);
// Makes the document ask for further plans as the session does. REQUIRES a fitted session.
void take_options(const SavedSession& session, Document* document);

}  // namespace tapedeck::viewer
