#include <tapedeck/viewer/node_search.h>

#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/window.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/fuzzy.h>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kMost = 200;  // entries in the list

struct Found {
  int score;
  bool is_module;
  std::int32_t id;  // of a module of the graph's scene, or of a node
};

PaletteEntry entry_of_module(const GraphScene& scene, ModuleId m) {
  const std::string path = scene.tree->path(m);
  return {path, path, "module of " + grouped(scene.tree->module(m).nodes()) + " nodes", "", [path](MainWindow& w) {
            w.show_panel("graph");
            w.graph().reveal_module(path);
          }};
}

PaletteEntry entry_of_node(const PlanModel& model, NodeId n) {
  const Node& node = model.graph().nodes[static_cast<std::size_t>(n)];
  const std::string path = node.origin.path.str();
  const std::string name = node.n_outputs > 0 ? model.name_of(node.first_output) : node_title(model.graph(), n);
  return {"node " + std::to_string(n), name, std::string(node.op->name) + (path.empty() ? "" : " in " + path), "",
          [n](MainWindow& w) {
            w.session().select_node(n);
            w.show_panel("graph");
            w.graph().reveal_selection();
          }};
}

}  // namespace

std::vector<PaletteEntry> found_nodes(const MainWindow& window, const std::string& typed) {
  const PlanModel* model = window.session().model();
  if (model == nullptr) return {};
  std::vector<Found> found;
  const GraphScene* scene = window.graph().scene();
  if (scene != nullptr && scene->model.get() == model)
    for (ModuleId m = 1; m < static_cast<ModuleId>(scene->tree->modules().size()); ++m)
      if (!scene->tree->module(m).is_group)
        if (const int score = fuzzy_score(typed, scene->tree->path(m)); score > 0) found.push_back({3 * score, true, m});
  const Graph& graph = model->graph();
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[static_cast<std::size_t>(n)];
    int score = std::max(fuzzy_score(typed, node.op->name), fuzzy_score(typed, node.origin.path.view()));
    if (node.n_outputs > 0)
      score = std::max(score, 2 * fuzzy_score(typed, graph.values[static_cast<std::size_t>(node.first_output)].name.view()));
    if (score > 0) found.push_back({score, false, n});
  }
  const auto most = found.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, found.size()));
  std::partial_sort(found.begin(), most, found.end(), [](const Found& a, const Found& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.is_module != b.is_module ? a.is_module : a.id < b.id;
  });
  std::vector<PaletteEntry> entries;
  for (auto one = found.begin(); one != most; ++one)
    entries.push_back(one->is_module ? entry_of_module(*scene, one->id) : entry_of_node(*model, one->id));
  return entries;
}

void show_node_search(MainWindow& window) {
  window.show_panel("graph");
  show_palette(window, "Type letters of a value, an op or a module",
               [&window](const std::string& typed) { return found_nodes(window, typed); });
}

}  // namespace tapedeck::viewer
