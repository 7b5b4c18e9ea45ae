#include <tapedeck/viewer/panels/panels.h>

#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/panels/details.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/panels/memory.h>
#include <tapedeck/viewer/panels/recompute.h>
#include <tapedeck/viewer/panels/schedule.h>
#include <tapedeck/viewer/panels/table.h>
#include <tapedeck/viewer/panels/text.h>
#include <tapedeck/viewer/panels/tradeoff.h>

namespace tapedeck::viewer {

namespace {

template <class P>
std::unique_ptr<PicturePanel> picture(Session& session) {
  return std::make_unique<P>(session);
}

template <class P>
QWidget* widget(Session& session) {
  return new P(session);
}

template <TableId id>
QWidget* table(Session& session) {
  return new TablePanel(id, session);
}

}  // namespace

const std::vector<Panel>& all_panels() {
  static const std::vector<Panel> panels = {
      {"memory", "Memory plan", "Every value of the step as a rectangle: its addresses go up, its lifetime goes to the right.",
       PanelPlace::centre, 0, 0, picture<MemoryPanel>, nullptr},
      {"curve", "Live bytes", "How many bytes are alive at each node of the schedule, stacked by role, module or op.",
       PanelPlace::below, 0, 270, picture<CurvePanel>, nullptr},
      {"tradeoff", "Tradeoff", "What plans of less memory cost in time: cost over peak, for every strategy.",
       PanelPlace::behind, 0, 0, picture<TradeoffPanel>, nullptr},
      {"schedule", "Schedule", "Who runs what when: a lane for each thread, planned or measured.", PanelPlace::behind, 0, 0,
       picture<SchedulePanel>, nullptr},
      {"text", "Text", "The graph as text, from the capture to the plan, and what each step of the planner changed.",
       PanelPlace::behind, 0, 0, nullptr, widget<TextPanel>},
      {"nodes", "Nodes", "A row for each node, in the order in which a replay runs them.", PanelPlace::beside, 540, 430,
       nullptr, table<TableId::nodes>},
      {"values", "Values", "A row for each value, with all its runs: kept, recomputed or elsewhere, and why.",
       PanelPlace::behind, 0, 0, nullptr, table<TableId::values>},
      {"parameters", "Parameters", "A row for each parameter, state, input, constant and output.", PanelPlace::behind, 0, 0,
       nullptr, table<TableId::parameters>},
      {"graph", "Graph", "The graph by modules: forward, recomputed, backward and update side by side.", PanelPlace::behind, 0,
       0, picture<GraphPanel>, nullptr},
      {"details", "Details", "Everything about the selected value and node; without one, the numbers of the plan.",
       PanelPlace::beside, 540, 370, nullptr, widget<DetailsPanel>},
      {"recompute", "Recompute", "What recomputing the selected value costs, wishes for it, and the values that cost most.",
       PanelPlace::behind, 0, 0, nullptr, widget<RecomputePanel>},
      {"inspector", "Inspector", "One step that pauses and goes back, and shows the numbers that any value holds.",
       PanelPlace::behind, 0, 0, nullptr, widget<InspectorPanel>},
      {"decisions", "Decisions", "A row for each recomputation that the strategy chose, in order, with its reason.",
       PanelPlace::behind, 0, 0, nullptr, table<TableId::decisions>},
  };
  return panels;
}

const Panel* find_panel(const std::string& name) {
  for (const Panel& panel : all_panels())
    if (panel.name == name) return &panel;
  return nullptr;
}

std::string panel_list() {
  std::string list;
  for (const Panel& panel : all_panels()) list += (list.empty() ? "" : ", ") + std::string(panel.name);
  return list;
}

}  // namespace tapedeck::viewer
