#include <tapedeck/engine/ir/extract.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <fmt/format.h>

#include <cstring>
#include <unordered_set>

namespace tapedeck {

std::vector<bool> needed_values(const Graph& g, std::span<const ValueId> stop, std::span<const ValueId> outputs) {
  std::vector<bool> needed(g.values.size()), given(g.values.size());
  for (ValueId v : stop) given[v] = true;
  for (ValueId v : outputs) needed[v] = true;
  for (NodeId n = g.node_count(); n-- > 0;) {
    const Node& node = g.nodes[n];
    bool runs = false;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) runs = runs || (needed[v] && !given[v]);
    if (!runs) continue;
    for (ValueId v : g.inputs(node)) needed[v] = true;
  }
  return needed;
}

namespace {

class Extraction {
 public:
  Extraction(const Graph& from, std::span<const ValueId> inputs, std::span<const ValueId> outputs)
      : from_(from), needed_(needed_values(from, inputs, outputs)), map_(from.values.size(), kNone) {
    to_.name = from.name;
    for (ValueId v : inputs) add_input(v);
  }

  Graph run(std::span<const ValueId> outputs) {
    for (ValueId v = 0; v < from_.n_inputs + from_.n_state; ++v)
      if (needed_[v] && map_[v] == kNone)
        throw InvalidGraphError(fmt::format("extract: %{} is needed, and not among the inputs", from_.value_name(v)));
    for (const Node& node : from_.nodes) copy(node);
    for (ValueId v : outputs) {
      to_.outputs.push_back(map_[v]);
      to_.output_names.emplace_back();
    }
    return std::move(to_);
  }

 private:
  void add_input(ValueId v) {
    const std::string wanted = from_.values[v].name.empty() ? fmt::format("v{}", v) : from_.values[v].name.str();
    std::string name = wanted;
    for (int k = 1; !taken_.insert(Name(name).id()).second; ++k) name = fmt::format("{}.{}", wanted, k);
    const ValueId made = to_.add_input(Name(name), from_.values[v].type);
    if (map_[v] == kNone) map_[v] = made;
  }

  void copy(const Node& node) {
    bool runs = false;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      runs = runs || (needed_[v] && map_[v] == kNone);
    if (!runs) return;
    std::vector<ValueId> inputs, after;
    for (ValueId v : from_.inputs(node)) inputs.push_back(map_[v]);
    for (ValueId v : from_.after(node))
      if (map_[v] != kNone) after.push_back(map_[v]);
    const NodeId made = to_.add_node(*node.op, inputs, from_.attributes(node), from_.output_types(node), node.origin, after,
                                     from_.regions_of(node));
    if (const Literal* literal = from_.literal(node)) {
      const TensorIndex index{to_.add_constant(*literal)};
      std::memcpy(GraphAccess::attributes(to_, to_.nodes[made]) + tensor_field(*node.op)->offset, &index, sizeof index);
    }
    for (std::int32_t k = 0; k < node.n_outputs; ++k) {
      const ValueId v = node.first_output + k, w = to_.nodes[made].first_output + k;
      const Name name = from_.values[v].name;
      if (!name.empty() && taken_.insert(name.id()).second) to_.values[w].name = name;
      if (map_[v] == kNone) map_[v] = w;
    }
  }

  const Graph& from_;
  const std::vector<bool> needed_;
  std::vector<ValueId> map_;
  std::unordered_set<const void*> taken_;
  Graph to_;
};

}  // namespace

Graph extract(const Graph& graph, std::span<const ValueId> inputs, std::span<const ValueId> outputs) {
  return Extraction(graph, inputs, outputs).run(outputs);
}

}  // namespace tapedeck
