// The settings of a person for one file: the budget, the wishes, the part of the plan in view, the selection, the tables, the
// bookmarks, the layout of the panels. A session file keeps it beside the file (session_file.h). This file knows its form,
// which is JSON:
//
//     {"tapedeck_session":1,
//     "budget":{"bytes":2675189},
//     "wishes":[{"keep":"h3"},{"recompute":"op:relu"}],
//     "place":{"view":{"time":[10,22.5],"address":[0,4194304]},"value":"h5","run":0},
//     "tables":[{"name":"nodes","filter":"op:conv","sort":"bytes","descending":true,"columns":[...]}],
//     ...}
#pragma once

#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/plan/selection.h>
#include <tapedeck/viewer/plan/view.h>
#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/file/file_costs.h>
#include <tapedeck/capture/plan/wishes.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

// The longest text of a session that is read or written, in bytes.
inline constexpr std::size_t kMostSessionBytes = std::size_t{1} << 20;

// A part of the plan and a selection. Values are known by their names, because their numbers change with the plan.
struct SavedPlace {
  std::optional<PlanView> view;  // none: the whole plan
  std::string value;             // the name of the selected value in the value log; empty: none
  std::int32_t run = 0;          // which of its copies, in the order in which they are made
  NodeId node = kNone;           // the selected node, where no value is selected

  bool empty() const { return !view && value.empty() && node == kNone; }
  bool operator==(const SavedPlace&) const = default;
};

// A region of a node that a panel shows, and the selection and the part of it in view. The graph has a view of its own in the
// step, too.
struct SavedRegion {
  RegionPath path;   // empty: the panel shows the step
  SavedPlace place;  // in the plan of the region; in the step: the view alone

  bool operator==(const SavedRegion&) const = default;
};

struct Bookmark {
  std::string name;
  SavedPlace place;
  bool operator==(const Bookmark&) const = default;
};

struct SavedColumn {
  std::string key;   // as the layout of the table has it
  double width = 0;  // in units; 0: not known, and left as it is
  bool hidden = false;
  bool operator==(const SavedColumn&) const = default;
};

struct SavedTable {
  std::string name;    // of its panel
  std::string filter;  // as it was typed
  std::string sort;    // the key of a column; empty: the table's own order
  bool descending = false;
  std::vector<SavedColumn> columns;  // from left to right
  bool operator==(const SavedTable&) const = default;
};

struct SavedSession {
  // The marks of the graph and of the plan that the session belongs to (fit_session.h). They may be empty in a session that is
  // not written yet.
  std::string graph, plan;
  // The options of the plan that the person asked for.
  Budget budget;
  CostSource costs = CostSource::best;
  std::string strategy = "auto";
  bool recorded_order = false;
  std::vector<Wish> wishes;
  // The part of the plan and the rows of the tables that the person looked at.
  SavedPlace place;
  SavedRegion memory_region, graph_region;  // of the panels Memory plan and Graph
  NodeRange range;                          // the marked nodes
  std::vector<Bookmark> bookmarks;
  std::vector<SavedTable> tables;
  std::optional<std::vector<std::string>>
      open_modules;    // of the graph, by their paths; none: as the graph opens them by itself
  std::string layout;  // of the panels, in base64, as the window writes it; no part of it is checked here

  bool operator==(const SavedSession&) const = default;
};

// The text of a session: lines of JSON. read_session() of it gives an equal session.
std::string session_text(const SavedSession& session);
// Reads a text that may be damaged or hostile. Keys that are not known are left out. Throws JsonError, which says what is wrong
// and where: no JSON, another version, a value of a wrong kind, a number that no viewer writes, too many or too long items.
SavedSession read_session(std::string_view text);

// Only tables, as the settings keep them. `read_tables` throws JsonError.
std::string tables_text(const std::vector<SavedTable>& tables);
std::vector<SavedTable> read_tables(std::string_view text);

}  // namespace tapedeck::viewer
