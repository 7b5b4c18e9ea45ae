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
      {"memory", "Memory plan", PanelPlace::centre, 0, 0, picture<MemoryPanel>, nullptr},
      {"curve", "Live bytes", PanelPlace::below, 0, 270, picture<CurvePanel>, nullptr},
      {"tradeoff", "Tradeoff", PanelPlace::behind, 0, 0, picture<TradeoffPanel>, nullptr},
      {"schedule", "Schedule", PanelPlace::behind, 0, 0, picture<SchedulePanel>, nullptr},
      {"text", "Text", PanelPlace::behind, 0, 0, nullptr, widget<TextPanel>},
      {"nodes", "Nodes", PanelPlace::beside, 540, 430, nullptr, table<TableId::nodes>},
      {"values", "Values", PanelPlace::behind, 0, 0, nullptr, table<TableId::values>},
      {"parameters", "Parameters", PanelPlace::behind, 0, 0, nullptr, table<TableId::parameters>},
      {"graph", "Graph", PanelPlace::behind, 0, 0, picture<GraphPanel>, nullptr},
      {"details", "Details", PanelPlace::beside, 540, 370, nullptr, widget<DetailsPanel>},
      {"recompute", "Recompute", PanelPlace::behind, 0, 0, nullptr, widget<RecomputePanel>},
      {"inspector", "Inspector", PanelPlace::behind, 0, 0, nullptr, widget<InspectorPanel>},
      {"decisions", "Decisions", PanelPlace::behind, 0, 0, nullptr, table<TableId::decisions>},
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
