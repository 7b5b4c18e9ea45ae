// Lays out in two passes over the shown modules: sizes from the innermost modules to the root, then places from the root to the
// innermost modules. graph_edges.cpp joins the boxes.
#include <tapedeck/viewer/graph/graph_layout.h>

#include <tapedeck/viewer/graph/graph_edges.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

using S = BoxSizes;

struct Size {
  double width = 0, height = 0;
};
using LaneSizes = std::array<Size, kLaneCount>;  // a width of 0: the lane is empty

class Layouter {
 public:
  Layouter(const ModuleTree& tree, const std::vector<char>& open, GraphLayout* out) : tree_(tree), open_(open), out_(*out) {}

  void run() {
    find_shown();
    sizes_.resize(tree_.modules().size());
    for (auto m = shown_.rbegin(); m != shown_.rend(); ++m) measure(*m);
    out_.box_of_node.assign(at(tree_.nodes()), kNone);
    out_.boxes_of_module.assign(tree_.modules().size(), {kNone, kNone, kNone, kNone});
    place_root();
    for (const ModuleId m : shown_)
      if (is_open(m)) place_items(m);
    give_boxes_to_hidden();
  }

 private:
  bool is_open(ModuleId m) const { return m == 0 || (at(m) < open_.size() && open_[at(m)] != 0); }

  // The modules that are seen, parents first.
  void find_shown() {
    shown_.push_back(0);
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if (!is_open(shown_[i])) continue;
      for (const ModuleItem& item : tree_.items_of(shown_[i]))
        if (item.module != kNone) shown_.push_back(item.module);
    }
  }

  Size cell_size(const ModuleItem& item, std::size_t lane) const {
    if (item.input != kNone) return lane == 0 ? Size{S::kLeafWidth, S::kLeafHeight} : Size{};
    const std::int32_t begin = item.first_cell[lane], end = item.first_cell[lane + 1];
    if (begin == end) return {};
    const std::int32_t rows = tree_.cells()[at(end - 1)].row + 1;
    const bool beside = end - begin > rows;
    return {beside ? 2 * S::kLeafWidth + S::kCellGap : S::kLeafWidth, rows * (S::kLeafHeight + S::kCellGap) - S::kCellGap};
  }

  Size item_size(const ModuleItem& item, std::size_t lane) const {
    return item.module != kNone ? sizes_[at(item.module)][lane] : cell_size(item, lane);
  }

  double item_height(const ModuleItem& item) const {
    double height = 0;
    for (std::size_t l = 0; l < kLaneCount; ++l) height = std::max(height, item_size(item, l).height);
    return height;
  }

  void measure(ModuleId m) {
    LaneSizes& sizes = sizes_[at(m)];
    if (!is_open(m)) {
      for (std::size_t l = 0; l < kLaneCount; ++l)
        if (has_lane(m, l)) sizes[l] = {S::kModuleWidth, S::kModuleHeight};
      return;
    }
    double height = S::kTitle - S::kRowGap + S::kPad / 2;
    LaneSizes row{};
    std::int32_t number = -1;
    double row_height = 0;
    const auto end_row = [&] {
      for (std::size_t l = 0; l < kLaneCount; ++l) sizes[l].width = std::max(sizes[l].width, row[l].width);
      height += row_height + S::kRowGap;
      row = {};
      row_height = 0;
    };
    for (const ModuleItem& item : tree_.items_of(m)) {
      if (item.row != number && number >= 0) end_row();
      number = item.row;
      row_height = std::max(row_height, item_height(item));
      for (std::size_t l = 0; l < kLaneCount; ++l) {
        const double width = item_size(item, l).width;
        if (width > 0) row[l].width += width + (row[l].width > 0 ? S::kBesideGap : 0);
      }
    }
    if (number >= 0) end_row();
    height += S::kPad;
    for (std::size_t l = 0; l < kLaneCount; ++l)
      if (has_lane(m, l)) sizes[l] = {std::max(sizes[l].width, S::kModuleWidth - 2 * S::kPad) + 2 * S::kPad, height};
  }

  // The inputs of the graph stand in the lane forward.
  bool has_lane(ModuleId m, std::size_t lane) const {
    if (tree_.module(m).sums[lane].nodes > 0) return true;
    if (lane != 0) return false;
    const auto items = tree_.items_of(m);
    return (!items.empty() && items.front().input != kNone) || (m == 0 && out_.box_of_input.size() > 0);
  }

  BoxId add_box(const GraphBox& box) {
    out_.boxes.push_back(box);
    return static_cast<BoxId>(out_.boxes.size() - 1);
  }

  void place_root() {
    double x = 0;
    for (std::size_t l = 0; l < kLaneCount; ++l) {
      GraphBox box;
      box.module = 0;
      box.lane = static_cast<Lane>(l);
      box.open = true;
      box.x = x;
      box.width = sizes_[0][l].width;
      box.height = box.width > 0 ? sizes_[0][l].height : 0;
      if (box.width > 0) x += box.width + S::kLaneGap;
      out_.boxes_of_module[0][l] = add_box(box);
      out_.height = std::max(out_.height, box.height);
    }
    out_.width = std::max(0.0, x - S::kLaneGap);
  }

  void place_items(ModuleId m) {
    for (std::size_t l = 0; l < kLaneCount; ++l) {
      const BoxId frame = out_.boxes_of_module[at(m)][l];
      if (frame != kNone && out_.boxes[at(frame)].width > 0) place_lane(m, l, frame);
    }
  }

  void place_lane(ModuleId m, std::size_t lane, BoxId frame) {
    const GraphBox around = out_.boxes[at(frame)];
    const auto items = tree_.items_of(m);
    out_.boxes[at(frame)].first_row = static_cast<std::int32_t>(out_.rows.size());
    double top = around.y + S::kTitle + S::kPad / 2;
    for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
      double width = 0, height = 0;
      for (end = begin; end < items.size() && items[end].row == items[begin].row; ++end) {
        const double wide = item_size(items[end], lane).width;
        if (wide > 0) width += wide + (width > 0 ? S::kBesideGap : 0);
        height = std::max(height, item_height(items[end]));
      }
      if (width > 0) {
        BoxRow row{top, top + height, static_cast<BoxId>(out_.boxes.size()), 0};
        double x = around.x + (around.width - width) / 2;
        for (std::size_t i = begin; i < end; ++i) {
          const double wide = item_size(items[i], lane).width;
          if (wide == 0) continue;
          place_item(items[i], lane, frame, x, top + (height - item_height(items[i])) / 2);
          x += wide + S::kBesideGap;
        }
        row.boxes = static_cast<std::int32_t>(out_.boxes.size()) - row.first;
        out_.rows.push_back(row);
      }
      top += height + S::kRowGap;
    }
    out_.boxes[at(frame)].rows = static_cast<std::int32_t>(out_.rows.size()) - out_.boxes[at(frame)].first_row;
  }

  void place_item(const ModuleItem& item, std::size_t lane, BoxId frame, double x, double y) {
    GraphBox box;
    box.frame = frame;
    box.lane = static_cast<Lane>(lane);
    box.x = x;
    box.y = y;
    if (item.module != kNone) {
      box.module = item.module;
      box.open = is_open(item.module);
      box.width = sizes_[at(item.module)][lane].width;
      box.height = sizes_[at(item.module)][lane].height;
      out_.boxes_of_module[at(item.module)][lane] = add_box(box);
      return;
    }
    box.width = S::kLeafWidth;
    box.height = S::kLeafHeight;
    if (item.input != kNone) {
      box.input = item.input;
      out_.box_of_input[at(item.input)] = add_box(box);
      return;
    }
    place_cells(item, lane, box);
  }

  // The cells are centred beside the cells of the other lanes. Backward goes up, so its first row is the lowest.
  void place_cells(const ModuleItem& item, std::size_t lane, GraphBox box) {
    const std::int32_t begin = item.first_cell[lane], end = item.first_cell[lane + 1];
    const Size size = cell_size(item, lane);
    const std::int32_t rows = tree_.cells()[at(end - 1)].row + 1;
    const double left = box.x, top = box.y + (item_height(item) - size.height) / 2;
    for (std::int32_t i = begin; i < end; ++i) {
      const NodeCell& cell = tree_.cells()[at(i)];
      const bool has_left = i > begin && tree_.cells()[at(i - 1)].row == cell.row;
      const bool has_right = i + 1 < end && tree_.cells()[at(i + 1)].row == cell.row;
      const double indent = has_left || has_right ? 0 : (size.width - S::kLeafWidth) / 2;
      const std::int32_t row = lane == static_cast<std::size_t>(Lane::backward) ? rows - 1 - cell.row : cell.row;
      box.x = left + indent + (has_left ? S::kLeafWidth + S::kCellGap : 0);
      box.y = top + row * (S::kLeafHeight + S::kCellGap);
      box.node = cell.node;
      out_.box_of_node[at(cell.node)] = add_box(box);
    }
  }

  // A node in a closed module is shown by the box of the outermost one.
  void give_boxes_to_hidden() {
    std::vector<ModuleId> closed(tree_.modules().size(), kNone);  // by module: the outermost closed module that it lies in
    for (std::size_t m = 1; m < closed.size(); ++m) {
      const ModuleId outer = closed[at(tree_.modules()[m].parent)];
      closed[m] = outer != kNone ? outer : is_open(static_cast<ModuleId>(m)) ? kNone : static_cast<ModuleId>(m);
    }
    const auto box_of = [&](ItemId item, Lane lane) {
      const ModuleId m = closed[at(tree_.item(item).in)];
      return m == kNone ? kNone : out_.boxes_of_module[at(m)][static_cast<std::size_t>(lane)];
    };
    for (NodeId n = 0; n < tree_.nodes(); ++n)
      if (out_.box_of_node[at(n)] == kNone) out_.box_of_node[at(n)] = box_of(tree_.item_of(n), tree_.lane_of(n));
    for (ValueId v = 0; v < static_cast<ValueId>(out_.box_of_input.size()); ++v)
      if (out_.box_of_input[at(v)] == kNone) out_.box_of_input[at(v)] = box_of(tree_.item_of_input(v), Lane::forward);
  }

  const ModuleTree& tree_;
  const std::vector<char>& open_;
  GraphLayout& out_;
  std::vector<ModuleId> shown_;
  std::vector<LaneSizes> sizes_;  // by module
};

// The boxes of a module's own items, whose child modules are closed.
int boxes_in(const ModuleTree& tree, ModuleId m) {
  int boxes = 0;
  for (const ModuleItem& item : tree.items_of(m)) {
    if (item.input != kNone) ++boxes;
    for (std::size_t l = 0; l < kLaneCount; ++l)
      boxes += item.module != kNone ? tree.module(item.module).sums[l].nodes > 0 : item.first_cell[l + 1] - item.first_cell[l];
  }
  return boxes;
}

int lanes_of(const Module& module) {
  return static_cast<int>(std::count_if(module.sums.begin(), module.sums.end(), [](const LaneSums& s) { return s.nodes > 0; }));
}

}  // namespace

BoxId GraphLayout::box_of(const Graph& graph, ValueId v) const {
  if (v < 0 || v >= graph.value_count()) return kNone;
  if (graph.is_input(v)) return box_of_input[at(v)];
  const NodeId n = graph.values[at(v)].node;
  return n == kNone ? kNone : box_of_node[at(n)];
}

std::vector<BoxId> GraphLayout::reader_boxes(const ModuleTree& tree, ValueId v) const {
  std::vector<BoxId> found;
  for (const NodeId n : tree.readers(v)) found.push_back(box_of_node[at(n)]);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

GraphLayout lay_out_graph(const Graph& graph, const ModuleTree& tree, const std::vector<char>& open) {
  GraphLayout layout;
  layout.box_of_input.assign(at(graph.n_inputs), kNone);
  Layouter(tree, open, &layout).run();
  join_boxes(graph, tree, &layout);
  return layout;
}

// A module with more than half of the nodes says little while it is closed. A level opens as a whole, so that modules of one
// kind look alike. The first level that would show too many boxes stays closed, unless so few boxes are shown that its largest
// modules open one by one.
std::vector<char> open_at_first(const ModuleTree& tree) {
  std::vector<char> open(tree.modules().size(), 0);
  int boxes = boxes_in(tree, 0);
  std::vector<ModuleId> level;
  const auto children = [&](ModuleId m, std::vector<ModuleId>* to) {
    for (const ModuleItem& item : tree.items_of(m))
      if (item.module != kNone) to->push_back(item.module);
  };
  const auto more = [&](ModuleId m) { return boxes_in(tree, m) - lanes_of(tree.module(m)); };
  for (ModuleId in = 0; in != kNone;) {
    ModuleId most = kNone;
    for (const ModuleItem& item : tree.items_of(in))
      if (item.module != kNone && tree.module(item.module).nodes() * 2 > tree.module(0).nodes()) most = item.module;
    if (most != kNone && boxes + more(most) > 2 * kMostBoxesAtFirst) break;
    if (most != kNone) {
      open[at(most)] = 1;
      boxes += more(most);
    }
    in = most;
  }
  children(0, &level);
  while (!level.empty()) {
    std::vector<ModuleId> next;
    int sum = boxes;
    for (const ModuleId m : level) {
      if (open[at(m)] == 0) sum += more(m);
      children(m, &next);
    }
    if (sum > kMostBoxesAtFirst) break;
    boxes = sum;
    for (const ModuleId m : level) open[at(m)] = 1;
    level = std::move(next);
  }
  std::stable_sort(level.begin(), level.end(),
                   [&](ModuleId a, ModuleId b) { return tree.module(a).nodes() > tree.module(b).nodes(); });
  for (const ModuleId m : level) {
    if (boxes >= kLeastBoxesAtFirst) break;
    if (open[at(m)] != 0) continue;
    boxes += more(m);
    open[at(m)] = 1;
  }
  return open;
}

}  // namespace tapedeck::viewer
