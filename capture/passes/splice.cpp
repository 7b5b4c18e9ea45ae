#include <tapedeck/capture/passes/splice.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <charconv>
#include <cstring>

namespace tapedeck {

TakenNames::TakenNames(const Graph& graph) {
  for (const Value& v : graph.values) take(v.name);
}

bool TakenNames::take(Name name) { return !name.empty() && taken_.insert(name.id()).second; }

Name TakenNames::fresh(const std::string& stem) {
  Name name = stem;
  for (int k = 2; !take(name); ++k) name = stem + "_" + std::to_string(k);
  return name;
}

// A note that names an unnamed value by its number follows the value. Once the value is gone, the note says `_`.
Name Splice::moved_note(const Node& node, Name note) const {
  const std::string_view text = note.view();
  ValueId v = kNone;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  const bool number = !text.empty() && error == std::errc() && end == text.data() + text.size();
  if (!number || v < 0 || v >= node.first_output || !from_.values[v].name.empty()) return note;
  if (map_[v] == kNone) return "_";
  const Name name = to_.values[map_[v]].name;
  return name.empty() ? Name(std::to_string(map_[v])) : name;
}

NodeId Splice::copy(NodeId n) {
  const Node& node = from_.nodes[n];
  return copy_as(n, nullptr, from_.output_types(node), from_.regions_of(node));
}

NodeId Splice::copy_as(NodeId n, const void* attrs, std::span<const Type> types, std::span<const Region> regions,
                       std::span<const ValueId> further) {
  const Node& node = from_.nodes[n];
  std::vector<ValueId> inputs, after;
  for (ValueId v : from_.inputs(node)) {
    if (map_[v] == kNone)
      throw InvalidGraphError("%" + from_.value_name(v) + " was left behind, but is read by: " + from_.node_text(n));
    inputs.push_back(map_[v]);
  }
  inputs.insert(inputs.end(), further.begin(), further.end());
  for (ValueId v : from_.after(node))
    if (map_[v] != kNone) after.push_back(map_[v]);
  Origin origin = node.origin;
  origin.of = moved_note(node, origin.of);
  origin.twin = moved_note(node, origin.twin);
  const NodeId id = to_.add_node(*node.op, inputs, attrs ? attrs : from_.attributes(node), types, origin, after, regions);
  if (const Literal* literal = from_.literal(node)) {
    const TensorIndex index{to_.add_constant(*literal)};
    std::memcpy(GraphAccess::attributes(to_, to_.nodes[id]) + tensor_field(*node.op)->offset, &index, sizeof index);
  }
  for (std::int32_t i = 0; i < node.n_outputs; ++i) {
    const Name name = from_.values[node.first_output + i].name;
    if (names_.take(name)) to_.values[to_.nodes[id].first_output + i].name = name;
    map_[node.first_output + i] = to_.nodes[id].first_output + i;
  }
  return id;
}

void Rebuild::input(ValueId v) {
  names.take(from.values[v].name);
  splice.bind(v, to.add_input(from.values[v].name, from.values[v].type));
  to.values.back().role = from.is_input(v) ? from.values[v].role : Role::input;
}

void Rebuild::state(ValueId v) {
  names.take(from.values[v].name);
  splice.bind(v, to.add_state(from.values[v].name, from.values[v].type, from.values[v].role));
}

void Rebuild::all_inputs() {
  for (ValueId v = 0; v < from.n_inputs; ++v) input(v);
}

void Rebuild::all_state() {
  for (ValueId v = from.n_inputs; v < from.n_inputs + from.n_state; ++v) state(v);
}

Graph Rebuild::finish() {
  for (ValueId v : from.outputs) to.outputs.push_back(splice.at(v));
  to.output_names = from.output_names;
  for (const Update& u : from.updates) to.updates.push_back({splice.at(u.state), splice.at(u.value)});
  return std::move(to);
}

}  // namespace tapedeck
