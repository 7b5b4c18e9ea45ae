// Builds graphs node by node (Graph) and copies the nodes that a pass keeps (Rewriter). graph.h states the invariants,
// verify.cpp checks them, compare_nodes.cpp compares nodes, and text_print.cpp writes the text form.
//
// Notes can refer to a value by its number (`of=%12`). A copied graph numbers its values anew, so the Rewriter also rewrites
// these notes.
#include <tapedeck/engine/ir/graph.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/make_room.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace tapedeck {

const char* phase_name(Phase phase) {
  constexpr const char* names[] = {"forward", "backward", "update"};
  return names[static_cast<int>(phase)];
}

const char* role_name(Role role) {
  constexpr const char* names[] = {"none", "input", "parameter", "moment", "statistic", "counter", "rng"};
  return names[static_cast<int>(role)];
}

const char* wish_name(NodeWish wish) {
  constexpr const char* names[] = {"none", "keep", "recompute"};
  return names[static_cast<int>(wish)];
}

// ---- reading ----

const Literal* Graph::literal(const Node& n) const {
  const Field* field = tensor_field(*n.op);
  if (!field || n.attrs == kNone) return nullptr;
  const std::int32_t index = field_of<TensorIndex>(attributes(n), *field).index;
  return index >= 0 && index < static_cast<std::int32_t>(constants.size()) ? &constants[index] : nullptr;
}

std::vector<Type> Graph::input_types(const Node& n) const {
  std::vector<Type> types;
  types.reserve(n.n_inputs);
  for (ValueId v : inputs(n)) types.push_back(values[v].type);
  return types;
}

std::vector<Type> Graph::output_types(const Node& n) const {
  std::vector<Type> types;
  types.reserve(n.n_outputs);
  for (const Value& v : output_values(n)) types.push_back(v.type);
  return types;
}

// ---- building ----

ValueId Graph::add_input(Name value_name, const Type& type) {
  if (n_state > 0 || !nodes.empty()) throw UsageError("inputs are added before state and nodes");
  values.push_back({type, kNone, Role::input, value_name});
  return n_inputs++;
}

ValueId Graph::add_state(Name value_name, const Type& type, Role role) {
  if (!nodes.empty()) throw UsageError("state is added before nodes");
  values.push_back({type, kNone, role, value_name});
  return n_inputs + n_state++;
}

namespace {

constexpr std::size_t kMaxPool = std::numeric_limits<std::int32_t>::max();  // positions in the pools are 32-bit integers

// Appends `n` items to a pool. The caller may pass items that lie in the pool itself, to repeat a node of this graph. The
// pool can move when it grows, so such items are copied by their position.
template <class T>
void append_to_pool(std::vector<T>& pool, const T* items, std::size_t n) {
  if (n == 0) return;
  const bool inside = !std::less<>()(items, pool.data()) && std::less<>()(items, pool.data() + pool.size());
  if (!inside) {
    pool.insert(pool.end(), items, items + n);
    return;
  }
  const std::size_t from = static_cast<std::size_t>(items - pool.data());
  const std::size_t to = pool.size();
  pool.resize(to + n);
  std::memcpy(pool.data() + to, pool.data() + from, n * sizeof(T));
}

// The node's values and the node itself. There is room for both or neither: without memory there is no value without its node.
NodeId push_node(Graph& graph, Node& n, std::span<const Type> outputs) {
  make_room(graph.nodes, 1);
  make_room(graph.values, outputs.size());
  n.first_output = graph.value_count();
  const NodeId id = graph.node_count();
  for (const Type& type : outputs) graph.values.push_back({type, id, Role::none, {}});
  graph.nodes.push_back(n);
  return id;
}

}  // namespace

NodeId Graph::add_node(const Op& op, std::span<const ValueId> inputs, const void* attrs, std::span<const Type> outputs,
                       const Origin& origin, std::span<const ValueId> after, std::span<const Region> node_regions) {
  if (refs.size() + inputs.size() + after.size() > kMaxPool || values.size() + outputs.size() > kMaxPool)
    throw InvalidGraphError("the graph is too large: indices have 31 bits");
  Node n;
  n.op = &op;
  n.origin = origin;
  n.n_inputs = static_cast<std::int32_t>(inputs.size());
  n.n_after = static_cast<std::int32_t>(after.size());
  n.n_outputs = static_cast<std::int32_t>(outputs.size());
  // `after` may lie in refs as well. Appending the inputs may move refs, so `after` is copied first. The regions may belong to
  // another node of this graph.
  const std::vector<ValueId> after_copy(after.begin(), after.end());
  const std::vector<Region> regions_copy(node_regions.begin(), node_regions.end());
  const std::size_t refs_before = refs.size(), regions_before = regions.size(), attrs_before = attr_pool_.size();
  try {
    n.first_input = static_cast<std::int32_t>(refs.size());
    append_to_pool(refs, inputs.data(), inputs.size());
    n.first_after = static_cast<std::int32_t>(refs.size());
    append_to_pool(refs, after_copy.data(), after_copy.size());
    if (op.attrs) {
      const std::size_t offset = (attr_pool_.size() + kAttrAlignment - 1) / kAttrAlignment * kAttrAlignment;
      if (offset > kMaxPool) throw InvalidGraphError("the graph is too large: its attributes pass 2 GiB");
      attr_pool_.resize(offset);
      append_to_pool(attr_pool_, static_cast<const unsigned char*>(attrs ? attrs : op.attrs->defaults), op.attrs->size);
      n.attrs = static_cast<std::int32_t>(offset);
    }
    n.first_region = static_cast<std::int32_t>(regions.size());
    n.n_regions = static_cast<std::int32_t>(regions_copy.size());
    regions.insert(regions.end(), regions_copy.begin(), regions_copy.end());
    return push_node(*this, n, outputs);
  } catch (...) {  // the pools end where they ended before
    refs.resize(refs_before);
    regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(regions_before), regions.end());
    attr_pool_.resize(attrs_before);
    throw;
  }
}

std::int32_t Graph::add_constant(Literal literal) {
  constants.push_back(std::move(literal));
  return static_cast<std::int32_t>(constants.size()) - 1;
}

// ---- Rewriter ----

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A note such as `of=%12` can refer by number to a value without a name. Returns that value if it lies before `end`, else
// kNone.
ValueId numbered_value(const Graph& graph, Name note, ValueId end) {
  if (note.empty() || !is_number(note.view()) || note.view().size() > 9) return kNone;
  const ValueId v = std::stoi(note.str());
  return v < end && graph.values[v].name.empty() ? v : kNone;
}

Name name_or_number(const Graph& graph, ValueId v) {
  return graph.values[v].name.empty() ? Name(std::to_string(v)) : graph.values[v].name;
}

}  // namespace

Rewriter::Rewriter(const Graph& from) : from_(from), map_(from.values.size(), kNone) {
  to_.name = from.name;
  to_.n_inputs = from.n_inputs;
  to_.n_state = from.n_state;
  to_.values.reserve(from.values.size());
  to_.nodes.reserve(from.nodes.size());
  to_.refs.reserve(from.refs.size());
  to_.constants.reserve(from.constants.size());
  GraphAccess::attr_pool(to_).reserve(GraphAccess::attr_pool(from).size());
  for (ValueId v = 0; v < from.n_inputs + from.n_state; ++v) {
    to_.values.push_back(from.values[v]);
    map_[v] = v;
  }
}

namespace {

// The note for the copied node. A note that refers to a value by number gets the value's new number, or `_` if the value is
// gone.
Name moved_note(const Graph& from, const Graph& to, const std::vector<ValueId>& map, const Node& n, Name note) {
  const ValueId v = numbered_value(from, note, n.first_output);
  if (v == kNone) return note;
  return map[v] == kNone ? Name("_") : name_or_number(to, map[v]);
}

// Appends a copy of node `n`: its op, attributes, constant and output types. The caller has already appended two lists to
// to.refs: the operands from first_input on, and the `after` values from first_after on. Both lists hold values of `to`.
NodeId append_copy(const Graph& from, Graph& to, const Node& n, std::size_t first_input, std::size_t first_after,
                   const Origin& origin) {
  if (to.refs.size() > kMaxPool || to.values.size() + static_cast<std::size_t>(n.n_outputs) > kMaxPool)
    throw InvalidGraphError("the graph is too large: indices have 31 bits");
  Node made = n;
  made.origin = origin;
  made.first_input = static_cast<std::int32_t>(first_input);
  made.n_inputs = static_cast<std::int32_t>(first_after - first_input);
  made.first_after = static_cast<std::int32_t>(first_after);
  made.n_after = static_cast<std::int32_t>(to.refs.size() - first_after);
  made.first_region = static_cast<std::int32_t>(to.regions.size());
  const auto regions = from.regions_of(n);
  to.regions.insert(to.regions.end(), regions.begin(), regions.end());
  if (n.attrs != kNone) {
    std::vector<unsigned char>& pool = GraphAccess::attr_pool(to);
    pool.resize((pool.size() + kAttrAlignment - 1) / kAttrAlignment * kAttrAlignment);
    if (pool.size() > kMaxPool) throw InvalidGraphError("the graph is too large: its attributes pass 2 GiB");
    made.attrs = static_cast<std::int32_t>(pool.size());
    const auto* bytes = static_cast<const unsigned char*>(from.attributes(n));
    pool.insert(pool.end(), bytes, bytes + n.op->attrs->size);
  }
  if (const Literal* literal = from.literal(n)) {
    const TensorIndex index{to.add_constant(*literal)};
    std::memcpy(GraphAccess::attributes(to, made) + tensor_field(*n.op)->offset, &index, sizeof index);
  }
  make_room(to.nodes, 1);
  make_room(to.values, static_cast<std::size_t>(n.n_outputs));
  made.first_output = to.value_count();
  const NodeId id = to.node_count();
  for (const Value& v : from.output_values(n)) to.values.push_back({v.type, id, Role::none, {}});
  to.nodes.push_back(made);
  return id;
}

}  // namespace

NodeId Rewriter::copy(NodeId n) {
  const Node& node = from_.nodes[n];
  const std::size_t first_input = to_.refs.size();
  for (ValueId v : from_.inputs(node)) {
    if (map_[v] == kNone)
      throw InvalidGraphError("a pass dropped %" + from_.value_name(v) + ", which is read by: " + from_.node_text(n));
    to_.refs.push_back(map_[v]);
  }
  const std::size_t first_after = to_.refs.size();
  for (ValueId v : from_.after(node))
    if (map_[v] != kNone) to_.refs.push_back(map_[v]);
  Origin origin = node.origin;
  origin.of = moved_note(from_, to_, map_, node, origin.of);
  origin.twin = moved_note(from_, to_, map_, node, origin.twin);

  const NodeId id = append_copy(from_, to_, node, first_input, first_after, origin);
  for (std::int32_t i = 0; i < node.n_outputs; ++i) {
    const ValueId old_value = node.first_output + i, new_value = to_.nodes[id].first_output + i;
    if (map_[old_value] == kNone) to_.values[new_value].name = from_.values[old_value].name;  // a second copy gets no name
    map_[old_value] = new_value;
  }
  return id;
}

NodeId Rewriter::clone(NodeId n, std::span<const ValueId> new_inputs, std::span<const ValueId> new_after) {
  const Node& node = from_.nodes[n];
  Origin origin = node.origin;
  origin.twin = moved_note(from_, to_, map_, node, origin.twin);
  origin.of = moved_note(from_, to_, map_, node, origin.of);
  if (!origin.clone || origin.of.empty()) {
    const ValueId first = node.first_output;
    origin.of = map_[first] != kNone ? name_or_number(to_, map_[first]) : from_.values[first].name;
    if (origin.of.empty()) origin.of = Name("_");
  }
  origin.clone = true;
  origin.wish = NodeWish::none;
  const std::size_t first_input = to_.refs.size();
  to_.refs.insert(to_.refs.end(), new_inputs.begin(), new_inputs.end());
  const std::size_t first_after = to_.refs.size();
  to_.refs.insert(to_.refs.end(), new_after.begin(), new_after.end());
  return append_copy(from_, to_, node, first_input, first_after, origin);
}

void Rewriter::replace(ValueId old_value, ValueId new_value) { map_[old_value] = new_value; }

Graph Rewriter::finish() {
  const auto moved = [&](ValueId v, const char* reader) {
    if (map_[v] == kNone) throw InvalidGraphError("a pass dropped %" + from_.value_name(v) + ", which is read by " + reader);
    return map_[v];
  };
  for (ValueId v : from_.outputs) to_.outputs.push_back(moved(v, "return"));
  to_.output_names = from_.output_names;
  for (const Update& u : from_.updates) to_.updates.push_back({moved(u.state, "update"), moved(u.value, "update")});
  return std::move(to_);
}

}  // namespace tapedeck
