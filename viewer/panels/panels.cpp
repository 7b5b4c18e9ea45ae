#include <tapedeck/viewer/panels/panels.h>

#include <tapedeck/viewer/panels/curve.h>
#include <tapedeck/viewer/panels/decisions.h>
#include <tapedeck/viewer/panels/details.h>
#include <tapedeck/viewer/panels/memory.h>
#include <tapedeck/viewer/panels/nodes.h>
#include <tapedeck/viewer/panels/recompute.h>

namespace tapedeck::viewer {

namespace {

template <class P>
std::unique_ptr<PicturePanel> picture(Session& session) {
  return std::make_unique<P>(session);
}

template <class P>
QWidget* table(Session& session) {
  return new P(session);
}

}  // namespace

const std::vector<Panel>& all_panels() {
  static const std::vector<Panel> panels = {
      {"memory", "Memory plan", PanelPlace::centre, 0, 0, picture<MemoryPanel>, nullptr},
      {"curve", "Live bytes", PanelPlace::below, 0, 270, picture<CurvePanel>, nullptr},
      {"nodes", "Nodes", PanelPlace::beside, 540, 430, nullptr, table<NodesPanel>},
      {"details", "Details", PanelPlace::beside, 540, 370, nullptr, table<DetailsPanel>},
      {"recompute", "Recompute", PanelPlace::behind, 0, 0, nullptr, table<RecomputePanel>},
      {"decisions", "Decisions", PanelPlace::behind, 0, 0, nullptr, table<DecisionsPanel>},
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
