// Builds the tree of modules in steps: the lane and the module of every node, then the items, then their levels, then groups of
// large modules; at last all modules and items get their final numbers. Every step is one pass over nodes, operands or items.
#include <tapedeck/viewer/graph/module_tree.h>

#include <tapedeck/viewer/plan/same_step.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kMostInputs = 6;     // beside each other in the root; more are a module of their own
constexpr int kMostJoined = 4;     // nodes of a lane in an item that others may still join
constexpr int kMostInCellRow = 2;  // nodes of a lane side by side
constexpr int kInputsGroup = -1;   // the number of the group of inputs

// The place of an item among those of its module: a level, and steps behind this level.
using Level = std::int64_t;
constexpr Level kStep = Level{1} << 32;
Level next_level(Level level) { return (level / kStep + 1) * kStep; }

}  // namespace

// Makes one tree.
class ModuleTreeBuilder {
 public:
  ModuleTreeBuilder(const Graph& graph, ModuleTree* tree) : graph_(graph), tree_(*tree), by_name_(graph) {}

  void build() {
    index_readers();
    find_lanes();
    find_owners();
    place_in_modules();
    make_items();
    find_levels();
    divide_large_modules();
    number_all();
    fill_cells();
    sum_up();
    name_modules();
    name_groups();
  }

 private:
  struct DraftModule {
    ModuleId parent = kNone;
    ItemId item = kNone;
    std::int32_t depth = 0;
    std::int32_t group_number = 0;
    bool is_group = false;
    std::string name;
    std::vector<ItemId> items;
  };
  struct DraftItem {
    ModuleId in = kNone, module = kNone;
    ValueId input = kNone;
    NodeId forward = kNone;  // its first forward node
    NodeId last = kNone;     // its last node that is neither forward nor an update
    NodeId update = kNone;   // its first update
    std::int32_t backward_nodes = 0, update_nodes = 0;
    Level level = 0;

    bool is_forward() const { return forward != kNone || input != kNone; }
    bool is_backward() const { return !is_forward() && last != kNone; }
    NodeId first() const { return forward != kNone ? forward : last != kNone ? last : update; }
  };
  struct Constraint {  // `item` lies behind `other`
    ItemId item, other;
    bool operator<(const Constraint& o) const { return item != o.item ? item < o.item : other < o.other; }
    bool operator==(const Constraint& o) const = default;
  };

  NodeId node_count() const { return graph_.node_count(); }
  NodeId maker(ValueId v) const { return graph_.values[at(v)].node; }
  Lane lane(NodeId n) const { return tree_.lane_of_node_[at(n)]; }
  const Origin& origin(NodeId n) const { return graph_.nodes[at(n)].origin; }
  DraftItem& item_of(NodeId n) { return items_[at(item_of_node_[at(n)])]; }

  void index_readers() {
    tree_.first_reader_.assign(graph_.values.size() + 1, 0);
    const auto for_each_operand = [&](auto&& call) {
      for (NodeId n = 0; n < node_count(); ++n) {
        const auto inputs = graph_.inputs(graph_.nodes[at(n)]);
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(i, 16)),
                        inputs[i]) == inputs.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(i, 16)))
            call(inputs[i], n);
      }
    };
    for_each_operand([&](ValueId v, NodeId) { ++tree_.first_reader_[at(v) + 1]; });
    for (std::size_t v = 1; v < tree_.first_reader_.size(); ++v) tree_.first_reader_[v] += tree_.first_reader_[v - 1];
    tree_.readers_.resize(at(tree_.first_reader_.back()));
    std::vector<std::int32_t> next(tree_.first_reader_.begin(), tree_.first_reader_.end() - 1);
    for_each_operand([&](ValueId v, NodeId n) { tree_.readers_[at(next[at(v)]++)] = n; });
  }

  // ---- lanes and modules of nodes ----

  ModuleId add_module(ModuleId parent, std::string name) {
    DraftModule module;
    module.parent = parent;
    module.name = std::move(name);
    if (parent != kNone) module.depth = modules_[at(parent)].depth + 1;
    modules_.push_back(std::move(module));
    const auto id = static_cast<ModuleId>(modules_.size() - 1);
    if (parent == kNone) return id;
    DraftItem item;
    item.in = parent;
    item.module = id;
    modules_.back().item = add_item(item);
    return id;
  }

  ItemId add_item(const DraftItem& item) {
    items_.push_back(item);
    return static_cast<ItemId>(items_.size() - 1);
  }

  ModuleId module_of_path(const Name& path) {
    if (path.empty()) return 0;
    const auto [known, is_new] = by_path_id_.try_emplace(path.id(), 0);
    if (!is_new) return known->second;
    const std::string text = path.str();
    ModuleId module = 0;
    std::size_t begin = 0;
    for (int level = 0; begin < text.size(); ++level) {
      const bool is_last = level + 1 >= ModuleTree::kMostLevels;
      const std::size_t end = is_last ? text.size() : std::min(text.find('.', begin), text.size());
      if (end > begin) {
        const auto [found, is_unknown] = by_path_.try_emplace(text.substr(0, end), 0);
        if (is_unknown) found->second = add_module(module, text.substr(begin, end - begin));
        module = found->second;
      }
      begin = end + 1;
    }
    by_path_id_[path.id()] = module;
    return module;
  }

  void find_lanes() {
    tree_.lane_of_node_.resize(at(node_count()));
    tree_.original_.assign(at(node_count()), kNone);
    twin_.assign(at(node_count()), kNone);
    for (NodeId n = 0; n < node_count(); ++n) {
      const Origin& from = origin(n);
      tree_.lane_of_node_[at(n)] = from.clone                      ? Lane::recomputed
                                   : from.phase == Phase::forward  ? Lane::forward
                                   : from.phase == Phase::backward ? Lane::backward
                                                                   : Lane::update;
      const NodeId original = from.clone ? by_name_.first_maker(from.of) : kNone, twin = by_name_.first_maker(from.twin);
      if (original < n) tree_.original_[at(n)] = original;
      if (twin < n) twin_[at(n)] = twin;
    }
  }

  // The forward node that reads the parameter which an update node helps to compute.
  void find_owners() {
    owner_.assign(at(node_count()), kNone);
    const auto forward_reader = [&](ValueId state) {
      for (const NodeId reader : tree_.readers(state))
        if (lane(reader) == Lane::forward) return reader;
      return kNone;
    };
    for (const Update& update : graph_.updates) {
      const NodeId n = maker(update.value);
      if (n != kNone && lane(n) == Lane::update && owner_[at(n)] == kNone) owner_[at(n)] = forward_reader(update.state);
    }
    for (NodeId n = node_count() - 1; n >= 0; --n) {
      if (owner_[at(n)] == kNone) continue;
      for (const ValueId v : graph_.inputs(graph_.nodes[at(n)])) {
        const NodeId from = maker(v);
        if (from != kNone && lane(from) == Lane::update && owner_[at(from)] == kNone) owner_[at(from)] = owner_[at(n)];
      }
    }
  }

  // A module is made only if a node lies in it.
  void place_in_modules() {
    add_module(kNone, "");
    module_of_node_.assign(at(node_count()), 0);
    for (NodeId n = 0; n < node_count(); ++n) {
      if (owner_[at(n)] != kNone) continue;
      const NodeId original = tree_.original_[at(n)], twin = twin_[at(n)];
      const Name& path = origin(n).path;
      module_of_node_[at(n)] = original != kNone               ? module_of_node_[at(original)]
                               : path.empty() && twin != kNone ? module_of_node_[at(twin)]
                                                               : module_of_path(path);
    }
    for (NodeId n = node_count() - 1; n >= 0; --n)
      if (const NodeId reader = stands_with(n); reader != kNone) module_of_node_[at(n)] = module_of_node_[at(reader)];
  }

  // The node in whose module a node stands that names no module: the owner of an update, and the first reader of a constant.
  NodeId stands_with(NodeId n) const {
    if (owner_[at(n)] != kNone) return owner_[at(n)];
    const Node& node = graph_.nodes[at(n)];
    if (node.n_inputs > 0 || node.n_outputs == 0 || !node.origin.path.empty() || tree_.original_[at(n)] != kNone ||
        twin_[at(n)] != kNone)
      return kNone;
    const auto readers = tree_.readers(node.first_output);
    return readers.empty() || lane(readers[0]) != lane(n) ? kNone : readers[0];
  }

  // ---- items ----

  void put(NodeId n, ItemId item) {
    if (item == kNone) {
      DraftItem made;
      made.in = module_of_node_[at(n)];
      item = add_item(made);
    }
    item_of_node_[at(n)] = item;
    DraftItem& in = items_[at(item)];
    if (lane(n) == Lane::forward) {
      if (in.forward == kNone) in.forward = n;
    } else if (lane(n) == Lane::update) {
      in.update = in.update == kNone ? n : std::min(in.update, n);
      ++in.update_nodes;
    } else {
      in.last = std::max(in.last, n);
      in.backward_nodes += lane(n) == Lane::backward;
    }
  }

  // The item of another node, if that node is in the module of n and has an item.
  ItemId item_beside(NodeId n, NodeId other) const {
    if (other == kNone || module_of_node_[at(other)] != module_of_node_[at(n)]) return kNone;
    return item_of_node_[at(other)];
  }

  // The item of the first reader in the same lane, if there is room. REQUIRES that the readers have their items.
  ItemId item_of_reader(NodeId n) {
    const Node& node = graph_.nodes[at(n)];
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      for (const NodeId reader : tree_.readers(v)) {
        if (lane(reader) != lane(n)) continue;
        const ItemId item = item_beside(n, reader);
        if (item == kNone) return kNone;
        const DraftItem& in = items_[at(item)];
        return (lane(n) == Lane::update ? in.update_nodes : in.backward_nodes) < kMostJoined ? item : kNone;
      }
    return kNone;
  }

  void make_items() {
    make_input_items();
    item_of_node_.assign(at(node_count()), kNone);
    for (NodeId n = 0; n < node_count(); ++n)
      if (lane(n) == Lane::forward) put(n, kNone);
    for (NodeId n = node_count() - 1; n >= 0; --n) {
      if (lane(n) != Lane::backward) continue;
      const ItemId item = item_beside(n, twin_[at(n)]);
      put(n, item != kNone ? item : item_of_reader(n));
    }
    for (NodeId n = 0; n < node_count(); ++n)
      if (lane(n) == Lane::recomputed) put(n, item_beside(n, tree_.original_[at(n)]));
    for (NodeId n = node_count() - 1; n >= 0; --n) {
      if (lane(n) != Lane::update) continue;
      const ItemId item = item_beside(n, owner_[at(n)]);
      put(n, item != kNone ? item : item_of_reader(n));
    }
    // The item of a module in its parent has the lanes that the items of the module have. Parents have smaller numbers.
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i].module == kNone) hand_up(items_[i]);
    for (std::size_t m = modules_.size() - 1; m > 0; --m) hand_up(items_[at(modules_[m].item)]);
  }

  void hand_up(const DraftItem& from) {
    const ItemId above = modules_[at(from.in)].item;
    if (above == kNone) return;
    DraftItem& to = items_[at(above)];
    const auto earlier = [](NodeId a, NodeId b) { return a == kNone ? b : b == kNone ? a : std::min(a, b); };
    to.forward = earlier(to.forward, from.forward);
    to.update = earlier(to.update, from.update);
    to.last = std::max(to.last, from.last);
  }

  void make_input_items() {
    ModuleId in = 0;
    if (graph_.n_inputs > kMostInputs) {
      in = add_module(0, "inputs");
      modules_[at(in)].is_group = true;
      modules_[at(in)].group_number = kInputsGroup;
      items_[at(modules_[at(in)].item)].input = 0;
    }
    for (ValueId v = 0; v < graph_.n_inputs; ++v) {
      DraftItem item;
      item.in = in;
      item.input = v;
      item_of_input_.push_back(add_item(item));
    }
  }

  // ---- levels ----

  std::pair<ItemId, ItemId> meet(ItemId a, ItemId b) const {
    while (items_[at(a)].in != items_[at(b)].in) {
      const DraftModule &of_a = modules_[at(items_[at(a)].in)], &of_b = modules_[at(items_[at(b)].in)];
      const bool a_is_deeper = of_a.depth > of_b.depth;
      if (a_is_deeper || of_a.depth == of_b.depth) a = of_a.item;
      if (!a_is_deeper) b = of_b.item;
    }
    return {a, b};
  }

  template <class InLane>
  std::vector<Constraint> constraints(InLane in_lane, bool by_reader) const {
    std::vector<Constraint> all;
    for (NodeId n = 0; n < node_count(); ++n) {
      if (!in_lane(lane(n))) continue;
      for (const ValueId v : graph_.inputs(graph_.nodes[at(n)])) {
        const NodeId from = maker(v);
        if (from == kNone || !in_lane(lane(from))) continue;
        const auto [source, reader] = meet(item_of_node_[at(from)], item_of_node_[at(n)]);
        if (source != reader) all.push_back(by_reader ? Constraint{reader, source} : Constraint{source, reader});
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Gives levels to the items in this order: each lies behind those before it that its constraints name.
  template <class Counts, class Behind>
  void set_levels(const std::vector<ItemId>& order, const std::vector<Constraint>& all, Counts counts, Behind behind) {
    for (const ItemId item : order) {
      Level level = items_[at(item)].level;
      auto found = std::lower_bound(all.begin(), all.end(), Constraint{item, 0});
      for (; found != all.end() && found->item == item; ++found)
        if (counts(items_[at(item)], items_[at(found->other)])) level = std::max(level, behind(items_[at(found->other)].level));
      items_[at(item)].level = level;
    }
  }

  template <class Has, class Before>
  std::vector<ItemId> items_in_order(Has has, Before before) const {
    std::vector<ItemId> order;
    for (ItemId i = 0; i < static_cast<ItemId>(items_.size()); ++i)
      if (has(items_[at(i)])) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](ItemId a, ItemId b) {
      const NodeId x = before(items_[at(a)]), y = before(items_[at(b)]);
      return x != y ? x < y : a < b;
    });
    return order;
  }

  void find_levels() {
    // Forward: level 0 has the inputs, and a node lies below the nodes that it reads.
    for (DraftItem& item : items_)
      if (item.forward != kNone) item.level = kStep;
    set_levels(
        items_in_order([](const DraftItem& i) { return i.forward != kNone; }, [](const DraftItem& i) { return i.forward; }),
        constraints([](Lane l) { return l == Lane::forward; }, true),
        [](const DraftItem& item, const DraftItem& other) { return other.forward != kNone && other.forward < item.forward; },
        next_level);
    lower_constants();
    // Backward without a forward node: below its readers, because backward goes up, and above the next forward node.
    set_levels(
        items_in_order([](const DraftItem& i) { return i.is_backward(); }, [](const DraftItem& i) { return -i.last; }),
        constraints([](Lane l) { return l == Lane::backward || l == Lane::recomputed; }, false),
        [](const DraftItem& item, const DraftItem& other) { return !other.is_backward() || other.last > item.last; },
        [](Level level) { return level + 1; });
    std::vector<Level> last(modules_.size(), 0);
    for (const DraftItem& item : items_) last[at(item.in)] = std::max(last[at(item.in)], item.level);
    const auto is_update = [](const DraftItem& i) { return !i.is_forward() && !i.is_backward(); };
    for (DraftItem& item : items_)
      if (is_update(item)) item.level = next_level(last[at(item.in)]);
    set_levels(
        items_in_order(is_update, [](const DraftItem& i) { return i.update; }),
        constraints([](Lane l) { return l == Lane::update; }, true),
        [&](const DraftItem& item, const DraftItem& other) { return is_update(other) && other.update < item.update; },
        next_level);
  }

  // Forward nodes that read nothing stand just above their first reader, or at the end if only other lanes read them.
  void lower_constants() {
    std::vector<Level> last(modules_.size(), kStep);
    for (const DraftItem& item : items_)
      if (item.is_forward()) last[at(item.in)] = std::max(last[at(item.in)], item.level);
    const std::vector<Constraint> readers = constraints([](Lane l) { return l == Lane::forward; }, false);
    for (ItemId i = 0; i < static_cast<ItemId>(items_.size()); ++i) {
      DraftItem& item = items_[at(i)];
      if (item.module != kNone || item.forward == kNone || graph_.nodes[at(item.forward)].n_inputs > 0) continue;
      Level level = last[at(item.in)] + kStep;
      auto found = std::lower_bound(readers.begin(), readers.end(), Constraint{i, 0});
      for (; found != readers.end() && found->item == i; ++found) level = std::min(level, items_[at(found->other)].level);
      item.level = std::max(level - kStep, kStep);
    }
  }

  // ---- groups, and final numbers ----

  void divide_large_modules() {
    for (ItemId i = 0; i < static_cast<ItemId>(items_.size()); ++i) modules_[at(items_[at(i)].in)].items.push_back(i);
    const std::size_t natural = modules_.size();
    for (std::size_t m = 0; m < natural; ++m) {
      std::vector<ItemId> all = std::move(modules_[m].items);
      std::sort(all.begin(), all.end(), [&](ItemId a, ItemId b) {
        const DraftItem &x = items_[at(a)], &y = items_[at(b)];
        if (x.level != y.level) return x.level < y.level;
        return x.first() != y.first() ? x.first() < y.first() : a < b;
      });
      while (all.size() > ModuleTree::kMostItems) all = divided(static_cast<ModuleId>(m), all);
      for (const ItemId item : all)
        if (const ModuleId child = items_[at(item)].module; child != kNone)
          modules_[at(child)].parent = static_cast<ModuleId>(m);
      modules_[m].items = std::move(all);
    }
  }

  // The items of groups of these items, all of about the same size.
  std::vector<ItemId> divided(ModuleId in, const std::vector<ItemId>& all) {
    const std::size_t groups = (all.size() + ModuleTree::kGroupItems - 1) / ModuleTree::kGroupItems;
    // The inputs, of which there are few, stay beside the groups.
    const auto first = std::partition_point(all.begin(), all.end(), [&](ItemId i) { return items_[at(i)].level == 0; });
    const auto count = static_cast<std::size_t>(all.end() - first);
    std::vector<ItemId> of_groups(all.begin(), first);
    for (std::size_t g = 0; g < groups; ++g) {
      const auto begin = first + static_cast<std::ptrdiff_t>(count * g / groups);
      const auto end = first + static_cast<std::ptrdiff_t>(count * (g + 1) / groups);
      const ModuleId group = add_module(in, "");
      modules_[at(group)].is_group = true;
      modules_[at(group)].group_number = static_cast<std::int32_t>(g);
      modules_[at(group)].items.assign(begin, end);
      of_groups.push_back(modules_[at(group)].item);
      items_[at(of_groups.back())].level = items_[at(*begin)].level + static_cast<Level>(g) * kStep;  // one below the other
    }
    return of_groups;
  }

  // Numbers modules level by level, so that parents come first and the items of a module are neighbours.
  void number_all() {
    std::vector<ModuleId> queue{0};
    std::vector<ItemId> new_item(items_.size(), kNone);
    tree_.modules_.resize(1);
    tree_.group_number_.resize(1);
    for (std::size_t done = 0; done < queue.size(); ++done) {
      const DraftModule& draft = modules_[at(queue[done])];
      const auto id = static_cast<ModuleId>(done);
      tree_.modules_[done].name = draft.name;
      tree_.modules_[done].is_group = draft.is_group;
      tree_.group_number_[done] = draft.group_number;
      tree_.modules_[done].first_item = static_cast<ItemId>(tree_.items_.size());
      tree_.modules_[done].items = static_cast<std::int32_t>(draft.items.size());
      std::int32_t row = 0, beside = 0;
      for (std::size_t i = 0; i < draft.items.size(); ++i) {
        const DraftItem& from = items_[at(draft.items[i])];
        if (i > 0 && (from.level != items_[at(draft.items[i - 1])].level || beside == ModuleTree::kMostBeside)) {
          ++row;
          beside = 0;
        }
        ++beside;
        ModuleItem item;
        item.in = id;
        item.row = row;
        item.input = from.module == kNone ? from.input : kNone;
        new_item[at(draft.items[i])] = static_cast<ItemId>(tree_.items_.size());
        if (from.module != kNone) {
          item.module = static_cast<ModuleId>(queue.size());
          queue.push_back(from.module);
          Module child;
          child.parent = id;
          child.item = static_cast<ItemId>(tree_.items_.size());
          child.depth = tree_.modules_[done].depth + 1;
          tree_.modules_.push_back(child);
          tree_.group_number_.push_back(0);
        }
        tree_.items_.push_back(item);
      }
    }
    for (const ItemId item : item_of_node_) tree_.item_of_node_.push_back(new_item[at(item)]);
    for (const ItemId item : item_of_input_) tree_.item_of_input_.push_back(new_item[at(item)]);
  }

  // ---- cells and sums ----

  void fill_cells() {
    std::vector<std::int32_t> next(tree_.items_.size() * kLaneCount + 1, 0);
    const auto slot = [&](NodeId n) { return at(tree_.item_of(n)) * kLaneCount + static_cast<std::size_t>(lane(n)); };
    for (NodeId n = 0; n < node_count(); ++n) ++next[slot(n) + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    for (std::size_t i = 0; i < tree_.items_.size(); ++i)
      for (std::size_t l = 0; l <= kLaneCount; ++l) tree_.items_[i].first_cell[l] = next[i * kLaneCount + l];
    tree_.cells_.resize(at(node_count()));
    for (NodeId n = 0; n < node_count(); ++n) tree_.cells_[at(next[slot(n)]++)].node = n;
    for (const ModuleItem& item : tree_.items_)
      for (std::size_t l = 0; l < kLaneCount; ++l) stack_cells(item.first_cell[l], item.first_cell[l + 1]);
  }

  // Nodes in the order of the schedule: each stands in the row of the node before it, unless it reads a node of this row.
  void stack_cells(std::int32_t begin, std::int32_t end) {
    std::int32_t row = 0, first = begin;
    for (std::int32_t i = begin; i < end; ++i) {
      const auto reads_row = [&] {
        for (const ValueId v : graph_.inputs(graph_.nodes[at(tree_.cells_[at(i)].node)]))
          for (std::int32_t j = first; j < i; ++j)
            if (maker(v) == tree_.cells_[at(j)].node) return true;
        return false;
      };
      if (i > first && (i - first == kMostInCellRow || reads_row())) {
        ++row;
        first = i;
      }
      tree_.cells_[at(i)].row = row;
    }
  }

  void sum_up() {
    const auto add = [](LaneSums* to, const LaneSums& from) {
      to->nodes += from.nodes;
      to->bytes += from.bytes;
      to->us += from.us;
      if (from.first != kNone) to->first = to->first == kNone ? from.first : std::min(to->first, from.first);
      to->last = std::max(to->last, from.last);
    };
    for (NodeId n = 0; n < node_count(); ++n) {
      LaneSums& to = tree_.modules_[at(tree_.module_of(n))].sums[static_cast<std::size_t>(lane(n))];
      add(&to, {1, tree_.bytes_[at(n)], tree_.us_[at(n)], n, n});
    }
    for (std::size_t m = tree_.modules_.size() - 1; m > 0; --m)
      for (std::size_t l = 0; l < kLaneCount; ++l)
        add(&tree_.modules_[at(tree_.modules_[m].parent)].sums[l], tree_.modules_[m].sums[l]);
  }

  // A number alone says little.
  void name_modules() {
    for (std::size_t m = 1; m < tree_.modules_.size(); ++m) {
      Module& module = tree_.modules_[m];
      module.label = module.name;
      const bool is_number = module.name.find_first_not_of("0123456789") == std::string::npos;
      ModuleId parent = module.parent;
      while (parent > 0 && tree_.module(parent).is_group) parent = tree_.module(parent).parent;
      if (is_number && parent > 0) module.label = tree_.module(parent).name + "." + module.name;
    }
  }

  void name_groups() {
    for (std::size_t m = tree_.modules_.size() - 1; m > 0; --m) {
      Module& group = tree_.modules_[m];
      if (!group.is_group || tree_.group_number_[m] == kInputsGroup) continue;
      const std::string *first = nullptr, *last = nullptr;
      for (const ModuleItem& item : tree_.items_of(static_cast<ModuleId>(m))) {
        if (item.module == kNone) continue;
        if (first == nullptr) first = &tree_.module(item.module).label;
        last = &tree_.module(item.module).label;
      }
      if (first != nullptr) {
        const auto begin = [](const std::string& name) { return name.substr(0, name.find(" … ")); };
        const auto end = [](const std::string& name) {
          const std::size_t dots = name.find(" … ");
          return dots == std::string::npos ? name : name.substr(dots + std::string_view(" … ").size());
        };
        group.label = begin(*first) == end(*last) ? *first : begin(*first) + " … " + end(*last);
        continue;
      }
      for (const LaneSums& sums : group.sums) {
        if (sums.nodes == 0) continue;
        group.label = "nodes " + std::to_string(sums.first) + " … " + std::to_string(sums.last);
        break;
      }
      if (group.label.empty()) group.label = "group " + std::to_string(tree_.group_number_[m]);
    }
  }

  const Graph& graph_;
  ModuleTree& tree_;
  const NodesByValue by_name_;
  std::unordered_map<const void*, ModuleId> by_path_id_;  // by interned path
  std::unordered_map<std::string, ModuleId> by_path_;     // by the first levels of a path
  std::vector<DraftModule> modules_;
  std::vector<DraftItem> items_;
  std::vector<ModuleId> module_of_node_;
  std::vector<NodeId> twin_, owner_;
  std::vector<ItemId> item_of_node_, item_of_input_;
};

const char* lane_name(Lane lane) {
  constexpr const char* kNames[kLaneCount] = {"forward", "recomputed", "backward", "update"};
  return kNames[static_cast<int>(lane)];
}

std::int32_t Module::nodes() const {
  std::int32_t sum = 0;
  for (const LaneSums& lane : sums) sum += lane.nodes;
  return sum;
}

double Module::us() const {
  double sum = 0;
  for (const LaneSums& lane : sums) sum += lane.us;
  return sum;
}

std::int64_t Module::bytes() const {
  std::int64_t sum = 0;
  for (const LaneSums& lane : sums) sum += lane.bytes;
  return sum;
}

ModuleTree::ModuleTree(const Graph& graph, std::vector<std::int64_t> bytes, std::vector<double> us)
    : bytes_(std::move(bytes)), us_(std::move(us)) {
  ModuleTreeBuilder(graph, this).build();
}

std::span<const NodeId> ModuleTree::readers(ValueId v) const {
  const std::int32_t begin = first_reader_[at(v)], end = first_reader_[at(v) + 1];
  return {readers_.data() + begin, static_cast<std::size_t>(end - begin)};
}

std::string ModuleTree::path(ModuleId m) const {
  std::vector<ModuleId> way;
  for (; m > 0; m = module(m).parent) way.push_back(m);
  std::string text;
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    const std::int32_t number = group_number_[at(*step)];
    if (!module(*step).is_group)
      text += (text.empty() ? "" : ".") + module(*step).name;
    else
      text += "/" + (number == kInputsGroup ? module(*step).name : std::to_string(number));
  }
  return text;
}

std::pair<ItemId, ItemId> ModuleTree::meet(ItemId a, ItemId b) const {
  while (item(a).in != item(b).in) {
    const Module &of_a = module(item(a).in), &of_b = module(item(b).in);
    const bool a_is_deeper = of_a.depth > of_b.depth, same = of_a.depth == of_b.depth;
    if (a_is_deeper || same) a = of_a.item;
    if (!a_is_deeper) b = of_b.item;
  }
  return {a, b};
}

}  // namespace tapedeck::viewer
