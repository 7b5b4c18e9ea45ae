// Tests the layout of the graph on random steps and on models of the zoo: what lies in what, what stands beside what, and what
// stays in its place when modules open.
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/viewer/graph/graph_edges.h>
#include <tapedeck/viewer/graph/graph_layout.h>

#include <tapedeck/capture/record/model_registry.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::viewer {
namespace {

std::string path_of(std::mt19937& random) {
  std::string path;
  for (int level = static_cast<int>(random() % 4); level > 0; --level)
    path += (path.empty() ? "m" : ".") + std::to_string(random() % 3);
  return path;
}

// A step of `n` forward nodes in random modules, their mirrored backward nodes, some clones, and updates of parameters.
Graph random_step(unsigned seed, int n) {
  std::mt19937 random(seed);
  Graph g;
  std::vector<ValueId> forward{g.add_input("x", bytes_type(640))}, parameters, gradients(static_cast<std::size_t>(n), kNone);
  for (int i = 0; i < n; i += 3) parameters.push_back(g.add_state("w" + std::to_string(i), bytes_type(128), Role::parameter));
  std::vector<std::vector<ValueId>> reads(static_cast<std::size_t>(n));
  const auto add = [&](const std::string& name, const std::vector<ValueId>& inputs, const Origin& origin) {
    const std::vector<Type> types{bytes_type(static_cast<std::int64_t>(64 + random() % 100))};
    g.add_node(made_op(), inputs, nullptr, types, origin);
    g.values.back().name = name;
    return g.value_count() - 1;
  };
  for (int i = 0; i < n; ++i) {
    Origin origin;
    origin.path = path_of(random);
    std::vector<ValueId>& inputs = reads[static_cast<std::size_t>(i)];
    inputs = {forward[forward.size() - 1 - random() % std::min<std::size_t>(forward.size(), 5)]};
    if (random() % 3 == 0) inputs.push_back(forward[random() % forward.size()]);
    if (i % 3 == 0) inputs.push_back(parameters[static_cast<std::size_t>(i / 3)]);
    forward.push_back(add("h" + std::to_string(i), inputs, origin));
  }
  for (int i = n - 1; i >= 0; --i) {
    const Name path = g.nodes[static_cast<std::size_t>(i)].origin.path;
    Origin origin;
    origin.path = path;
    if (random() % 4 == 0) {
      origin.clone = true;
      origin.of = Name("h" + std::to_string(i));
      add("h" + std::to_string(i) + ".again", reads[static_cast<std::size_t>(i)], origin);
      origin = {};
      origin.path = path;
    }
    origin.phase = Phase::backward;
    origin.twin = Name("h" + std::to_string(i));
    for (int k = static_cast<int>(random() % 3); k >= 0; --k) {
      std::vector<ValueId> inputs{forward[static_cast<std::size_t>(i) + 1]};
      for (std::size_t reader = 0; reader < reads.size(); ++reader)
        if (std::count(reads[reader].begin(), reads[reader].end(), forward[static_cast<std::size_t>(i) + 1]) > 0)
          inputs.push_back(gradients[reader]);
      gradients[static_cast<std::size_t>(i)] = add("d" + std::to_string(i) + "." + std::to_string(k), inputs, origin);
    }
  }
  for (int i = 0; i < n; i += 3) {
    Origin origin;
    origin.phase = Phase::update;
    const ValueId w = parameters[static_cast<std::size_t>(i / 3)];
    g.updates.push_back({w, add("u" + std::to_string(i), {w, gradients[static_cast<std::size_t>(i)]}, origin)});
  }
  return g;
}

ModuleTree tree_of(const Graph& g) {
  const auto nodes = static_cast<std::size_t>(g.node_count());
  return ModuleTree(g, std::vector<std::int64_t>(nodes, 10), std::vector<double>(nodes, 2));
}

std::vector<char> random_open(const ModuleTree& tree, std::mt19937& random, int percent) {
  std::vector<char> open(tree.modules().size());
  for (char& one : open) one = static_cast<int>(random() % 100) < percent;
  return open;
}

bool is_inside(const GraphBox& in, const GraphBox& out) {
  return in.x >= out.x - 1e-6 && in.right() <= out.right() + 1e-6 && in.y >= out.y - 1e-6 && in.bottom() <= out.bottom() + 1e-6;
}

bool overlap(const GraphBox& a, const GraphBox& b) {
  return a.x < b.right() - 1e-6 && b.x < a.right() - 1e-6 && a.y < b.bottom() - 1e-6 && b.y < a.bottom() - 1e-6;
}

const GraphBox& box(const GraphLayout& layout, BoxId id) { return layout.boxes[static_cast<std::size_t>(id)]; }

void expect_boxes_in_frames(const GraphLayout& layout) {
  std::map<BoxId, std::vector<BoxId>> children;
  for (BoxId id = kLaneCount; id < static_cast<BoxId>(layout.boxes.size()); ++id) children[box(layout, id).frame].push_back(id);
  for (const auto& [frame, inside] : children) {
    ASSERT_TRUE(box(layout, frame).open);
    for (std::size_t i = 0; i < inside.size(); ++i) {
      EXPECT_TRUE(is_inside(box(layout, inside[i]), box(layout, frame)));
      EXPECT_EQ(box(layout, inside[i]).lane, box(layout, frame).lane);
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(box(layout, inside[i]), box(layout, inside[j])));
    }
  }
  std::set<BoxId> in_rows;
  for (const GraphBox& frame : layout.boxes)
    for (std::int32_t r = frame.first_row; frame.open && r < frame.first_row + frame.rows; ++r) {
      const BoxRow& row = layout.rows[static_cast<std::size_t>(r)];
      if (r > frame.first_row) {
        EXPECT_GT(row.top, layout.rows[static_cast<std::size_t>(r) - 1].bottom);
      }
      for (BoxId id = row.first; id < row.first + row.boxes; ++id) {
        EXPECT_TRUE(in_rows.insert(id).second);
        EXPECT_GE(box(layout, id).y, row.top - 1e-6);
        EXPECT_LE(box(layout, id).bottom(), row.bottom + 1e-6);
      }
    }
  EXPECT_EQ(in_rows.size(), layout.boxes.size() - kLaneCount);  // all but the root's frames
}

// Every node is shown once: by a box of its own, or by the outermost closed module around it.
void expect_each_node_shown(const ModuleTree& tree, const std::vector<char>& open, const GraphLayout& layout) {
  for (NodeId n = 0; n < tree.nodes(); ++n) {
    ModuleId closed = kNone;
    for (ModuleId m = tree.module_of(n); m > 0; m = tree.module(m).parent)
      if (open[static_cast<std::size_t>(m)] == 0) closed = m;
    const GraphBox& shown = box(layout, layout.box_of_node[static_cast<std::size_t>(n)]);
    EXPECT_EQ(shown.lane, tree.lane_of(n));
    EXPECT_EQ(shown.module, closed);
    EXPECT_EQ(shown.node, closed == kNone ? n : kNone);
  }
}

void expect_lanes_aligned(const Graph& g, const ModuleTree& tree, const GraphLayout& layout) {
  for (std::size_t m = 1; m < tree.modules().size(); ++m) {
    const GraphBox* first = nullptr;
    for (const BoxId id : layout.boxes_of_module[m]) {
      if (id == kNone) continue;
      if (first == nullptr) first = &box(layout, id);
      EXPECT_EQ(box(layout, id).y, first->y);
      EXPECT_EQ(box(layout, id).height, first->height);
    }
  }
  // The backward nodes of a forward node have the same middle as it.
  std::map<NodeId, std::pair<double, double>> ends;
  std::map<std::string, NodeId> by_name;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[static_cast<std::size_t>(n)];
    by_name[g.values[static_cast<std::size_t>(node.first_output)].name.str()] = n;
    const GraphBox& shown = box(layout, layout.box_of_node[static_cast<std::size_t>(n)]);
    if (shown.node == kNone || node.origin.phase != Phase::backward) continue;
    const NodeId twin = by_name.at(node.origin.twin.str());
    const auto [end, is_new] = ends.try_emplace(twin, shown.y, shown.bottom());
    if (!is_new) end->second = {std::min(end->second.first, shown.y), std::max(end->second.second, shown.bottom())};
  }
  for (const auto& [twin, range] : ends) {
    const GraphBox& forward = box(layout, layout.box_of_node[static_cast<std::size_t>(twin)]);
    EXPECT_NEAR(forward.y + forward.height / 2, (range.first + range.second) / 2, 1e-6);
    EXPECT_LT(forward.x, box(layout, static_cast<BoxId>(Lane::backward)).x);
  }
}

// In one module forward goes down, and backward goes up or sideways.
void expect_directions(const Graph& g, const ModuleTree& tree, const GraphLayout& layout) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    for (const ValueId v : g.inputs(g.nodes[static_cast<std::size_t>(n)])) {
      const NodeId from = g.values[static_cast<std::size_t>(v)].node;
      if (from == kNone || tree.lane_of(from) != tree.lane_of(n) || tree.module_of(from) != tree.module_of(n)) continue;
      const GraphBox &a = box(layout, layout.box_of_node[static_cast<std::size_t>(from)]),
                     &b = box(layout, layout.box_of_node[static_cast<std::size_t>(n)]);
      if (a.node == kNone || b.node == kNone) continue;
      if (tree.lane_of(n) == Lane::forward) {
        EXPECT_LE(a.bottom(), b.y);
      }
      if (tree.lane_of(n) == Lane::backward) {
        EXPECT_LE(b.y, a.y);
      }
    }
}

void expect_edges(const Graph& g, const GraphLayout& layout) {
  std::map<std::pair<BoxId, BoxId>, std::set<ValueId>> wanted;
  for (ValueId v = 0; v < g.value_count(); ++v) {
    if (g.is_state(v)) continue;
    const NodeId maker = g.values[static_cast<std::size_t>(v)].node;
    const BoxId from =
        maker == kNone ? layout.box_of_input[static_cast<std::size_t>(v)] : layout.box_of_node[static_cast<std::size_t>(maker)];
    std::set<BoxId> to;
    for (NodeId n = 0; n < g.node_count(); ++n)
      for (const ValueId read : g.inputs(g.nodes[static_cast<std::size_t>(n)]))
        if (read == v) to.insert(layout.box_of_node[static_cast<std::size_t>(n)]);
    if (to.size() > GraphLayout::kMostReaders) continue;
    for (const BoxId reader : to)
      if (reader != from) wanted[{from, reader}].insert(v);
  }
  ASSERT_EQ(layout.edges.size(), wanted.size());
  for (const GraphEdge& edge : layout.edges) {
    const std::set<ValueId>& values = wanted[{edge.from, edge.to}];
    std::int64_t bytes = 0;
    for (const ValueId v : values) bytes += g.values[static_cast<std::size_t>(v)].type.bytes();
    EXPECT_EQ(static_cast<std::size_t>(edge.values), values.size());
    EXPECT_EQ(edge.bytes, bytes);
    EXPECT_TRUE(values.count(edge.value));
    EXPECT_EQ(edge.top, std::min(box(layout, edge.from).y, box(layout, edge.to).y));
    EXPECT_GE(edge.reach, edge.bottom);
  }
}

bool equal(const GraphLayout& a, const GraphLayout& b) {
  if (a.boxes.size() != b.boxes.size() || a.edges.size() != b.edges.size() || a.box_of_node != b.box_of_node) return false;
  for (std::size_t i = 0; i < a.boxes.size(); ++i)
    if (a.boxes[i].x != b.boxes[i].x || a.boxes[i].y != b.boxes[i].y || a.boxes[i].width != b.boxes[i].width) return false;
  for (std::size_t i = 0; i < a.edges.size(); ++i)
    if (a.edges[i].from != b.edges[i].from || a.edges[i].to != b.edges[i].to) return false;
  return true;
}

TEST(GraphLayout, OfRandomStepsHoldsAllPromises) {
  std::mt19937 random(5);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Graph g = random_step(seed, 1 + static_cast<int>(random() % 90));
    const ModuleTree tree = tree_of(g);
    const std::vector<char> open = random_open(tree, random, static_cast<int>(seed % 3) * 50);
    const GraphLayout layout = lay_out_graph(g, tree, open);
    SCOPED_TRACE(seed);
    expect_boxes_in_frames(layout);
    expect_each_node_shown(tree, open, layout);
    expect_lanes_aligned(g, tree, layout);
    expect_directions(g, tree, layout);
    expect_edges(g, layout);
    EXPECT_TRUE(equal(layout, lay_out_graph(g, tree_of(g), open)));
    if (HasFailure()) return;
  }
}

// The items of a frame, in the order of its rows.
std::vector<std::pair<ModuleId, NodeId>> content_of(const GraphLayout& layout, BoxId frame) {
  std::vector<std::pair<ModuleId, NodeId>> content;
  const GraphBox& of = box(layout, frame);
  for (std::int32_t r = of.first_row; r < of.first_row + of.rows; ++r) {
    const BoxRow& row = layout.rows[static_cast<std::size_t>(r)];
    for (BoxId id = row.first; id < row.first + row.boxes; ++id)
      content.emplace_back(box(layout, id).module, box(layout, id).node);
    content.emplace_back(-2, r - of.first_row);
  }
  return content;
}

TEST(GraphLayout, OpeningAModuleLeavesAllOthersInTheirOrder) {
  std::mt19937 random(6);
  for (unsigned seed = 100; seed < 115; ++seed) {
    const Graph g = random_step(seed, 60);
    const ModuleTree tree = tree_of(g);
    std::vector<char> open = random_open(tree, random, 60);
    const GraphLayout before = lay_out_graph(g, tree, open);
    const std::size_t toggled = 1 + random() % (tree.modules().size() - 1);
    open[toggled] = open[toggled] == 0;
    const GraphLayout after = lay_out_graph(g, tree, open);
    for (std::size_t m = 0; m < tree.modules().size(); ++m) {
      if (m == toggled) continue;
      for (std::size_t l = 0; l < kLaneCount; ++l) {
        const BoxId a = before.boxes_of_module[m][l], b = after.boxes_of_module[m][l];
        if (a == kNone || b == kNone) continue;
        EXPECT_EQ(content_of(before, a), content_of(after, b));
        EXPECT_EQ(box(before, a).open, box(after, b).open);
      }
    }
  }
}

// An edge is clear where a straight line down a lane meets no other box, so it needs no margin.
TEST(GraphLayout, AClearEdgeHasNoRowOfItsLaneBetweenItsEnds) {
  for (unsigned seed = 200; seed < 215; ++seed) {
    std::mt19937 random(seed);
    const Graph g = random_step(seed, 40);
    const ModuleTree tree = tree_of(g);
    const GraphLayout layout = lay_out_graph(g, tree, random_open(tree, random, 70));
    for (const GraphEdge& edge : layout.edges) {
      const GraphBox &a = box(layout, edge.from), &b = box(layout, edge.to);
      if (a.lane != b.lane || !edge.is_clear) continue;
      const double low = std::min(a.bottom(), b.bottom()), high = std::max(a.y, b.y);
      for (const BoxId frame : {a.frame, b.frame})
        for (std::int32_t r = box(layout, frame).first_row; r < box(layout, frame).first_row + box(layout, frame).rows; ++r) {
          const BoxRow& row = layout.rows[static_cast<std::size_t>(r)];
          const auto holds = [&](BoxId id) { return id >= row.first && id < row.first + row.boxes; };
          EXPECT_FALSE(row.top >= low && row.bottom <= high && !holds(edge.from) && !holds(edge.to));
        }
    }
  }
}

TEST(ModuleTree, PutsUpdatesAndClonesBesideWhatTheyBelongTo) {
  Graph g;
  const ValueId x = g.add_input("x", bytes_type(64)), w = g.add_state("fc.weight", bytes_type(64), Role::parameter);
  const std::vector<Type> types{bytes_type(64)};
  const auto add = [&](const char* name, const std::vector<ValueId>& inputs, const Origin& origin) {
    g.add_node(made_op(), inputs, nullptr, types, origin);
    g.values.back().name = name;
    return g.value_count() - 1;
  };
  Origin forward, clone, backward, update;
  forward.path = "fc";
  clone.clone = true;
  clone.of = "h";
  backward.phase = Phase::backward;
  backward.twin = "h";
  update.phase = Phase::update;
  const ValueId constant = add("c", {}, {});
  const ValueId h = add("h", {x, w, constant}, forward);
  add("h2", {x, w}, clone);
  const ValueId d = add("d", {h}, backward);
  const ValueId half = add("half", {d}, update);
  g.updates.push_back({w, add("w2", {w, half}, update)});
  const ModuleTree tree = tree_of(g);
  ASSERT_EQ(tree.modules().size(), 2u);
  EXPECT_EQ(tree.path(1), "fc");
  for (NodeId n = 1; n < g.node_count(); ++n) EXPECT_EQ(tree.item_of(n), tree.item_of(1)) << n;
  EXPECT_EQ(tree.module_of(0), 1);  // the constant stands with its reader
  EXPECT_EQ(tree.original_of(2), 1);
  EXPECT_EQ(tree.module(1).nodes(), 6);
  EXPECT_EQ(tree.module(1).bytes(), 60);
  EXPECT_EQ(tree.module(0).us(), 12);
}

TEST(ModuleTree, DividesLargeModulesAndBoundsDeepPaths) {
  Graph g;
  ValueId last = g.add_input("x", bytes_type(64));
  const std::vector<Type> types{bytes_type(64)};
  std::string deep = "a";
  for (int i = 0; i < 3000; ++i) deep += ".a";
  for (int i = 0; i < 20000; ++i) {
    Origin origin;
    if (i % 2 == 0) origin.path = Name("layer" + std::to_string(i));
    if (i == 77) origin.path = Name(deep);
    g.add_node(made_op(), std::vector<ValueId>{last}, nullptr, types, origin);
    last = g.value_count() - 1;
  }
  const ModuleTree tree = tree_of(g);
  std::set<std::string> paths;
  for (ModuleId m = 0; m < static_cast<ModuleId>(tree.modules().size()); ++m) {
    EXPECT_LE(tree.module(m).items, ModuleTree::kMostItems);
    EXPECT_LE(tree.module(m).depth, ModuleTree::kMostLevels + 4);
    EXPECT_LT(tree.module(m).parent, m);
    EXPECT_TRUE(paths.insert(tree.path(m)).second) << tree.path(m);
  }
  const std::vector<char> all(tree.modules().size(), 1);
  const GraphLayout layout = lay_out_graph(g, tree, all);
  expect_each_node_shown(tree, all, layout);
  expect_directions(g, tree, layout);
}

TEST(ModuleTree, OfAnEmptyGraphAndOfCircularModules) {
  const Graph empty;
  EXPECT_EQ(lay_out_graph(empty, tree_of(empty), {}).edges.size(), 0u);
  // Two modules that read each other in turn.
  Graph g;
  ValueId last = g.add_input("x", bytes_type(64));
  const std::vector<Type> types{bytes_type(64)};
  for (int i = 0; i < 10; ++i) {
    Origin origin;
    origin.path = i % 2 == 0 ? "ping" : "pong";
    g.add_node(made_op(), std::vector<ValueId>{last}, nullptr, types, origin);
    last = g.value_count() - 1;
  }
  const ModuleTree tree = tree_of(g);
  for (const char open : {0, 1}) {
    const GraphLayout layout = lay_out_graph(g, tree, std::vector<char>(tree.modules().size(), open));
    expect_boxes_in_frames(layout);
    const BoxId ping = layout.boxes_of_module[1][0], pong = layout.boxes_of_module[2][0];
    EXPECT_LT(box(layout, ping).bottom(), box(layout, pong).y);
  }
}

TEST(GraphLayout, OfModelsShowsAFewBoxesAtFirst) {
  for (const char* name : {"mlp", "lenet", "resnet18", "unet", "squeezenet"}) {
    const Graph g = record_model(*find_model(name), {.abstract = true}).graph;
    const ModuleTree tree = tree_of(g);
    const std::vector<char> open = open_at_first(tree);
    const GraphLayout layout = lay_out_graph(g, tree, open);
    SCOPED_TRACE(name);
    expect_boxes_in_frames(layout);
    expect_each_node_shown(tree, open, layout);
    expect_directions(g, tree, layout);
    const auto closed =
        std::count_if(layout.boxes.begin(), layout.boxes.end(), [](const GraphBox& b) { return !b.open && b.width > 0; });
    EXPECT_GE(closed, kLeastBoxesAtFirst);
    EXPECT_LE(closed, 130);
  }
}

}  // namespace
}  // namespace tapedeck::viewer
