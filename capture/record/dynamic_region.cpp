// The Grouper finds the nodes whose types change with a count, moves them into the region of one `dynamic` node, and puts that
// node between the nodes before it and after it.
//     nonzero(%mask) -> gather_nd -> mul -> sum -> add(%b)     becomes     dynamic(%x, %mask) -> add(%b)
// Attributes in backward that repeat a size are noted in DynamicAttrs, so that a run can set them to the size it found.
#include <tapedeck/capture/record/dynamic_region.h>

#include <tapedeck/capture/sizes/retype.h>
#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ops/dynamic.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

std::string place(const Graph& g, NodeId n) {
  const Node& node = g.nodes[n];
  return node.origin.site.empty() ? g.node_text(n) : fmt::format("{} ({})", g.node_text(n), node.origin.site.view());
}

class Grouper {
 public:
  Grouper(const Graph& g, const std::vector<NodeId>& counted) : g_(g), counted_(counted) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      if (g.nodes[n].n_outputs > 0) by_name_.emplace(g.value_name(g.nodes[n].first_output), n);
    count_again_too();
  }

  DynamicGraph group() {
    const Graph full = at(0), fewer = at(1);
    sized_.resize(g_.values.size());
    for (std::size_t v = 0; v < g_.values.size(); ++v)
      sized_[v] = g_.values[v].type != full.values[v].type || g_.values[v].type != fewer.values[v].type;
    choose();
    find_borders();
    check_results();
    check_effects();
    DynamicGraph result;
    for (NodeId n : counted_) result.counts.push_back(count_of(g_, g_.nodes[n]));
    const bool all_held =
        std::none_of(counted_.begin(), counted_.end(), [&](NodeId n) { return count_of(g_, g_.nodes[n]) != most(n); });
    std::vector<NodeId> explained = counted_;
    explained.insert(explained.end(), followers_.begin(), followers_.end());
    result.suspicion = held_size(g_, all_held ? fewer : full, explained);
    result.graph = rewrite(full);
    return result;
  }

 private:
  bool in(NodeId n) const { return member_[n]; }

  std::int64_t most(NodeId n) const {
    const ValueId mask = g_.inputs(g_.nodes[n]).back();
    return g_.values[mask].type.numel();
  }

  // Backward may count again where forward has counted, and it uses the number that forward found.
  void count_again_too() {
    const std::vector<NodeId> first = counted_;
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Node& node = g_.nodes[n];
      if (!counts_elements(*node.op) || std::find(first.begin(), first.end(), n) != first.end()) continue;
      const bool again = std::any_of(first.begin(), first.end(), [&](NodeId m) {
        const Node& other = g_.nodes[m];
        return g_.inputs(other).back() == g_.inputs(node).back() && count_of(g_, other) == count_of(g_, node);
      });
      if (again) counted_.push_back(n);
    }
    std::sort(counted_.begin(), counted_.end());
  }

  // The graph with other counts: all elements of every mask hold, but for `fewer` of them.
  Graph at(std::int64_t fewer) {
    Graph changed = g_;
    for (NodeId n : counted_)
      set_count(GraphAccess::attributes(changed, changed.nodes[n]), std::max<std::int64_t>(most(n) - fewer, 0));
    try {
      return inferred_again(std::move(changed), g_, "", [&](Graph& now, NodeId n) { follow_twin(now, n); });
    } catch (const TypeError& error) {
      throw CaptureError(
          error_text("capture",
                     fmt::format("a shape works only as long as the mask of `{}` holds as often as now: {}; reduce what was "
                                 "selected first, or give "
                                 "`count`",
                                 place(g_, counted_[0]), error.what()),
                     {}));
    }
  }

  // Backward is generated from types alone. The shapes that it writes down are shapes of the operands and results of its
  // forward twin. Where the size of such a value changes, the attribute that repeats it changes too. held_size() finds any
  // other attribute that holds the size.
  void follow_twin(Graph& now, NodeId n) {
    const Node& node = now.nodes[n];
    if (node.origin.phase != Phase::backward || node.origin.twin.empty() || node.attrs == kNone || node.n_outputs == 0) return;
    const auto it = by_name_.find(node.origin.twin.str());
    if (it == by_name_.end() || it->second >= n) return;
    const Node& twin = g_.nodes[it->second];
    std::vector<ValueId> values(g_.inputs(twin).begin(), g_.inputs(twin).end());
    for (std::int32_t i = 0; i < twin.n_outputs; ++i) values.push_back(twin.first_output + i);
    for (const Field& field : fields_of(*node.op)) {
      if (field.kind != FieldKind::ints || field.use != FieldUse::size_list) continue;
      for (ValueId v : values)
        if (follow_value(now, n, field, v)) break;
    }
  }

  bool follow_value(Graph& now, NodeId n, const Field& field, ValueId v) {
    const Node& node = now.nodes[n];
    const Shape &old = g_.values[v].type.shape, &new_shape = now.values[v].type.shape;
    auto& list = *reinterpret_cast<Ints*>(GraphAccess::attributes(now, node) + field.offset);
    if (list.size != old.rank || old == new_shape) return false;
    bool any = false;
    for (int i = 0; i < old.rank; ++i) {
      if (old[i] == new_shape[i] || list.items[i] != old[i]) continue;
      list.items[i] = new_shape[i];
      follows_.insert(fmt::format("{}.{}.{}={}@{}", g_.value_name(node.first_output), field.name, i, g_.value_name(v), i));
      followers_.push_back(n);
      any = true;
    }
    return any;
  }

  // ---- which nodes ----

  void choose() {
    const auto n_nodes = static_cast<std::size_t>(g_.node_count());
    member_.assign(n_nodes, false);
    for (NodeId n : counted_) member_[n] = true;
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      const Node& node = g_.nodes[n];
      for (ValueId v : g_.inputs(node)) member_[n] = member_[n] || sized_[v];
      for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) member_[n] = member_[n] || sized_[v];
    }
    std::vector<char> below = reached(true), above = reached(false);
    for (std::size_t n = 0; n < n_nodes; ++n) member_[n] = member_[n] || (below[n] && above[n]);
    below_ = reached(true);
  }

  // Nodes that depend on a member, or that a member depends on.
  std::vector<char> reached(bool downwards) const {
    std::vector<char> node_reached(g_.nodes.size(), 0), value(g_.values.size(), 0);
    for (NodeId k = 0; k < g_.node_count(); ++k) {
      const NodeId n = downwards ? k : g_.node_count() - 1 - k;
      const Node& node = g_.nodes[n];
      const auto results = [&](auto f) {
        for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) f(static_cast<std::size_t>(v));
      };
      bool hit = in(n);
      if (downwards)
        for (ValueId v : g_.inputs(node)) hit = hit || value[v];
      else
        results([&](std::size_t v) { hit = hit || value[v]; });
      if (!hit) continue;
      node_reached[n] = 1;
      if (downwards)
        results([&](std::size_t v) { value[v] = 1; });
      else
        for (ValueId v : g_.inputs(node)) value[v] = 1;
    }
    return node_reached;
  }

  // ---- what goes in and out ----

  bool made_inside(ValueId v) const {
    const NodeId n = g_.values[v].node;
    return n != kNone && in(n);
  }

  void find_borders() {
    std::vector<char> taken(g_.values.size(), 0);
    const auto add = [&](std::vector<ValueId>& list, ValueId v) {
      if (!std::exchange(taken[v], 1)) list.push_back(v);
    };
    for (NodeId n = 0; n < g_.node_count(); ++n)
      for (ValueId v : g_.inputs(g_.nodes[n])) {
        if (in(n) && !made_inside(v)) add(operands_, v);
        if (!in(n) && made_inside(v)) add(results_, v);
      }
    for (ValueId v : g_.outputs)
      if (made_inside(v)) add(results_, v);
    for (const Update& u : g_.updates)
      if (made_inside(u.value)) add(results_, u.value);
  }

  void check_results() const {
    for (ValueId v : results_) {
      if (!sized_[v]) continue;
      const NodeId n = g_.values[v].node;
      const bool returned = std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end();
      throw CaptureError(error_text(
          g_.nodes[n].op->name,
          fmt::format(
              "the size of %{}: {} is known only once `{}` has run, and it {}: {}; reduce it inside the step, or give `count`",
              g_.value_name(v), to_string(g_.values[v].type), g_.nodes[counted_[0]].op->name,
              returned ? "is returned" : "is stored", place(g_, n)),
          {}));
    }
  }

  // The order of the new graph: nodes that do not depend on the group, the group, all other nodes.
  bool before(NodeId n) const { return !in(n) && !below_[n]; }

  void check_effects() const {
    int stage = 0;
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (!g_.nodes[n].op->is(kEffect)) continue;
      const int its = before(n) ? 0 : in(n) ? 1 : 2;
      if (its < stage)
        throw CaptureError(
            error_text("capture",
                       fmt::format("an effect would run before one that comes first, because sizes depend on `{}`: {}",
                                   place(g_, counted_[0]), place(g_, n)),
                       {}));
      stage = its;
    }
  }

  // ---- the graph with the group as one node ----

  Region region(const Graph& full) const {
    auto r = std::make_shared<Graph>();
    r->name = "dynamic";
    std::vector<ValueId> map(g_.values.size(), kNone);
    for (ValueId v : operands_) map[v] = r->add_input(Name(g_.value_name(v)), full.values[v].type);
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (!in(n)) continue;
      const Node& node = full.nodes[n];
      std::vector<ValueId> inputs;
      for (ValueId v : full.inputs(node)) inputs.push_back(map[v]);
      const NodeId made =
          r->add_node(*node.op, inputs, full.attributes(node), full.output_types(node), node.origin, {}, full.regions_of(node));
      if (const Literal* literal = full.literal(node)) {
        const TensorIndex index{r->add_constant(*literal)};
        auto* attrs = GraphAccess::attributes(*r, r->nodes[made]);
        std::copy_n(reinterpret_cast<const unsigned char*>(&index), sizeof index, attrs + tensor_field(*node.op)->offset);
      }
      const ValueId first = r->nodes[made].first_output;
      for (std::int32_t i = 0; i < node.n_outputs; ++i) {
        map[node.first_output + i] = first + i;
        r->values[first + i].name = g_.values[node.first_output + i].name;
      }
    }
    for (ValueId v : results_) r->outputs.push_back(map[v]);
    r->output_names.resize(r->outputs.size());
    return r;
  }

  Graph rewrite(const Graph& full) const {
    Rewriter rewriter(g_);
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (before(n)) rewriter.copy(n);
    std::vector<ValueId> inputs;
    for (ValueId v : operands_) inputs.push_back(rewriter.at(v));
    std::vector<Type> types;
    for (ValueId v : results_) types.push_back(g_.values[v].type);
    Origin origin;
    origin.phase = g_.nodes[counted_[0]].origin.phase;
    origin.site = g_.nodes[counted_[0]].origin.site;
    const Region body = region(full);
    const DynamicAttrs attrs{Name(fmt::format("{}", fmt::join(follows_, ", ")))};
    Graph& to = rewriter.graph();
    const NodeId made = to.add_node(ops::dynamic, inputs, &attrs, types, origin, {}, {&body, 1});
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const ValueId v = to.nodes[made].first_output + static_cast<ValueId>(i);
      to.values[v].name = g_.values[results_[i]].name;
      rewriter.replace(results_[i], v);
    }
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (!before(n) && !in(n)) rewriter.copy(n);
    Graph result = rewriter.finish();
    verify(result);
    return result;
  }

  const Graph& g_;
  std::vector<NodeId> counted_;
  std::map<std::string, NodeId> by_name_;  // by first result
  std::set<std::string> follows_;          // the statements of DynamicAttrs
  std::vector<NodeId> followers_;
  std::vector<char> sized_;           // by value: its type depends on a count
  std::vector<char> member_, below_;  // by node: whether it is in the group; whether it depends on the group
  std::vector<ValueId> operands_, results_;
};

}  // namespace

DynamicGraph with_dynamic_region(const Graph& graph, const std::vector<NodeId>& counted) {
  return Grouper(graph, counted).group();
}

}  // namespace tapedeck
