#include <tapedeck/viewer/graph/graph_scene.h>

#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tapedeck::viewer {

namespace {

std::vector<double> times_of(const PlanModel& model, const std::vector<double>& us) {
  std::vector<double> times(at(model.nodes()));
  for (NodeId n = 0; n < model.nodes(); ++n) {
    const double measured = at(n) < us.size() ? us[at(n)] : model.values().node_us(n);
    times[at(n)] = std::isfinite(measured) ? measured : 0;
  }
  return times;
}

std::vector<char> flags_of(const ModuleTree& tree, const OpenModules& open) {
  if (!open) return open_at_first(tree);
  std::vector<char> flags(tree.modules().size(), 0);
  for (std::size_t m = 1; m < flags.size(); ++m) flags[m] = open->count(tree.path(static_cast<ModuleId>(m))) > 0;
  return flags;
}

}  // namespace

std::set<std::string> GraphScene::open_paths() const {
  std::set<std::string> paths;
  for (std::size_t m = 1; m < open.size(); ++m)
    if (open[m] != 0) paths.insert(tree->path(static_cast<ModuleId>(m)));
  return paths;
}

ModuleId GraphScene::find_module(const std::string& path) const {
  for (ModuleId m = 0; m < static_cast<ModuleId>(tree->modules().size()); ++m)
    if (tree->path(m) == path) return m;
  return kNone;
}

std::string GraphScene::name_of(BoxId id) const {
  const GraphBox& box = layout.boxes[at(id)];
  if (box.module == 0) return "the whole step";
  if (box.module != kNone) return tree->module(box.module).is_group ? tree->module(box.module).label : tree->path(box.module);
  if (box.input != kNone) return model->name_of(box.input);
  const Node& node = model->graph().nodes[at(box.node)];
  return node.n_outputs > 0 ? model->name_of(node.first_output) : std::string(node.op->name);
}

std::shared_ptr<const GraphScene> make_graph_scene(std::shared_ptr<const PlanModel> step, const RegionPath& inside,
                                                   const GraphScene* before, const std::vector<double>& us,
                                                   const OpenModules& open) {
  auto scene = std::make_shared<GraphScene>();
  const bool is_same = before != nullptr && before->step == step && before->place.path == inside;
  scene->step = std::move(step);
  scene->place = is_same ? before->place : place_inside(scene->step, inside);
  scene->model = scene->place.model;
  if (scene->place.around) scene->facts = regions_of(*scene->place.around, scene->place.node);
  const PlanModel& of = *scene->model;
  if (is_same) {
    scene->tree = before->tree;
    scene->rect_of_node = before->rect_of_node;
  } else {
    std::vector<std::int64_t> bytes(at(of.nodes()), 0);
    scene->rect_of_node.assign(at(of.nodes()), kNone);
    for (std::size_t r = 0; r < of.rects().size(); ++r) {
      const PlanRect& rect = of.rects()[r];
      const NodeId n = rect.value == kNone ? kNone : of.graph().values[at(rect.value)].node;
      if (n == kNone) continue;
      bytes[at(n)] += rect.bytes;
      if (scene->rect_of_node[at(n)] == kNone) scene->rect_of_node[at(n)] = static_cast<std::int32_t>(r);
    }
    scene->tree = std::make_shared<const ModuleTree>(of.graph(), bytes,
                                                     times_of(of, scene->place.path.empty() ? us : std::vector<double>()));
  }
  scene->open = flags_of(*scene->tree, open);
  scene->layout = lay_out_graph(of.graph(), *scene->tree, scene->open);
  for (const GraphBox& box : scene->layout.boxes)
    if (box.module > 0 && !box.open)
      scene->longest_us =
          std::max(scene->longest_us, scene->tree->module(box.module).sums[static_cast<std::size_t>(box.lane)].us);
  return scene;
}

std::string graph_boxes_csv(const GraphScene& scene) {
  std::string text = "kind,lane,name,op,nodes,bytes,us,x,y,width,height\n";
  for (BoxId id = 0; id < static_cast<BoxId>(scene.layout.boxes.size()); ++id) {
    const GraphBox& box = scene.layout.boxes[at(id)];
    if (box.width == 0) continue;
    LaneSums sums;
    std::string kind = "node", op;
    if (box.module != kNone) {
      kind = box.open ? "open module" : "module";
      sums = scene.tree->module(box.module).sums[static_cast<std::size_t>(box.lane)];
    } else if (box.input != kNone) {
      kind = "input";
      sums.bytes = scene.model->graph().values[at(box.input)].type.bytes();
    } else {
      op = scene.model->graph().nodes[at(box.node)].op->name;
      sums.nodes = 1;
      sums.us = scene.tree->us_of(box.node);
      sums.bytes = scene.tree->bytes_of(box.node);
    }
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.0f},{:.0f},{:.0f},{:.0f}\n", kind, lane_name(box.lane),
                        csv_field(scene.name_of(id)), op, sums.nodes, sums.bytes, sums.us, box.x, box.y, box.width, box.height);
  }
  return text;
}

}  // namespace tapedeck::viewer
