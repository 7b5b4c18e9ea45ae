// The edits, in four groups: nodes and their results, inputs and operands, regions, sizes. Each edit copies the graph, changes
// the copy, infers its types again where that is needed, and returns no graph if the types do not fit.
#include <tapedeck/capture/reduce/reduce_edits.h>

#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/splice.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>

#include <algorithm>
#include <cstring>

namespace tapedeck {

namespace {

std::vector<char> marks(std::size_t n, char mark) { return std::vector<char>(n, mark); }

// By value: the value that stands in for it if its node is removed; the value itself if it stays or needs a new input.
std::vector<ValueId> stand_ins(const Graph& g, const std::vector<char>& gone, StandIn how) {
  std::vector<ValueId> by(g.values.size());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    by[v] = v;
    const NodeId n = g.values[v].node;
    if (n == kNone || !gone[n] || how != StandIn::operand) continue;
    for (ValueId u : g.inputs(g.nodes[n]))
      if (g.values[u].type == g.values[v].type) {
        by[v] = by[u];
        break;
      }
  }
  return by;
}

// By value: whether a node that stays reads it.
std::vector<char> wanted_values(const Graph& g, const std::vector<char>& gone, const std::vector<ValueId>& by) {
  std::vector<char> wanted(g.values.size(), 0);
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (!gone[n])
      for (ValueId v : g.inputs(g.nodes[n])) wanted[by[v]] = 1;
  for (ValueId v : g.outputs) wanted[by[v]] = 1;
  for (const Update& u : g.updates) wanted[by[u.value]] = 1;
  return wanted;
}

ValueId add_zeros(Graph& to, const Type& type) {
  FullAttrs attrs;
  for (std::int64_t s : type.shape) attrs.shape.push_back(s);
  attrs.dtype = type.dtype;
  const Type types[] = {type};
  return to.nodes[to.add_node(*find_op("full"), {}, &attrs, types)].first_output;
}

}  // namespace

std::optional<Graph> without_nodes(const Graph& g, const std::vector<char>& gone, StandIn how, bool nested) {
  const std::vector<ValueId> by = stand_ins(g, gone, how);
  const std::vector<char> wanted = wanted_values(g, gone, by);
  const auto missing = [&](ValueId v) { return wanted[v] && g.values[v].node != kNone && gone[g.values[v].node]; };
  Rebuild r(g);
  r.all_inputs();
  for (ValueId v = g.n_inputs + g.n_state; v < g.value_count() && !nested; ++v)
    if (missing(v)) {
      const Name own = g.values[v].name;
      const Name name = own.empty() || !r.names.take(own) ? r.names.fresh("in" + std::to_string(v)) : own;
      r.splice.bind(v, r.to.add_input(name, g.values[v].type));
    }
  r.all_state();
  for (NodeId n = 0; n < g.node_count(); ++n) {
    if (!gone[n]) {
      r.splice.copy(n);
      continue;
    }
    for (ValueId v = g.nodes[n].first_output; v < g.nodes[n].first_output + g.nodes[n].n_outputs; ++v) {
      if (nested && missing(v)) r.splice.bind(v, add_zeros(r.to, g.values[v].type));
      if (by[v] != v) r.splice.bind(v, r.splice.at(by[v]));
    }
  }
  return r.finish();
}

std::optional<Graph> with_operands_returned(const Graph& g, NodeId n) {
  const Node& node = g.nodes[n];
  const auto is_result = [&](ValueId v) { return g.values[v].node == n; };
  for (NodeId k = n + 1; k < g.node_count(); ++k)
    for (ValueId v : g.inputs(g.nodes[k]))
      if (is_result(v)) return std::nullopt;
  Graph returning = g;
  returning.outputs.clear();
  returning.output_names.clear();
  std::erase_if(returning.updates, [&](const Update& u) { return is_result(u.value); });
  for (ValueId v : g.outputs)
    if (!is_result(v)) returning.outputs.push_back(v);
  for (ValueId v : g.inputs(node)) returning.outputs.push_back(v);
  returning.output_names.resize(returning.outputs.size());
  std::vector<char> gone = marks(g.nodes.size(), 0);
  gone[n] = 1;
  return without_nodes(returning, gone, StandIn::input, false);
}

Graph without_results(const Graph& g, const std::vector<char>& gone_outputs, const std::vector<char>& gone_updates) {
  Graph result = g;
  result.outputs.clear();
  result.output_names.clear();
  result.updates.clear();
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    if (gone_outputs[i]) continue;
    result.outputs.push_back(g.outputs[i]);
    if (!g.output_names.empty()) result.output_names.push_back(g.output_names[i]);
  }
  for (std::size_t i = 0; i < g.updates.size(); ++i)
    if (!gone_updates[i]) result.updates.push_back(g.updates[i]);
  return result;
}

Graph trimmed(const Graph& graph) {
  const Graph g = dead_code(graph);
  const std::vector<char> none = marks(g.nodes.size(), 0);
  std::vector<char> wanted = wanted_values(g, none, stand_ins(g, none, StandIn::input));
  for (const Update& u : g.updates) wanted[u.state] = 1;
  Rebuild r(g);
  for (ValueId v = 0; v < g.n_inputs; ++v)
    if (wanted[v]) r.input(v);
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
    if (wanted[v]) r.state(v);
  for (NodeId n = 0; n < g.node_count(); ++n) r.splice.copy(n);
  return r.finish();
}

std::optional<Graph> state_as_input(const Graph& g, std::int32_t s) {
  const ValueId state = g.n_inputs + s;
  for (const Update& u : g.updates)
    if (u.state == state) return std::nullopt;
  Rebuild r(g);
  r.all_inputs();
  r.input(state);
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v)
    if (v != state) r.state(v);
  for (NodeId n = 0; n < g.node_count(); ++n) r.splice.copy(n);
  return r.finish();
}

std::optional<Graph> with_first_operand(const Graph& g, NodeId n, std::int32_t i) {
  const Node& node = g.nodes[n];
  const ValueId old = g.inputs(node)[i];
  ValueId first = 0;
  while (g.values[first].type != g.values[old].type) ++first;
  if (first == old) return std::nullopt;
  Graph result = g;
  result.refs[node.first_input + i] = first;
  return result;
}

std::optional<Graph> without_operand(const Graph& g, NodeId n, std::int32_t i) {
  const Node& node = g.nodes[n];
  if (node.op->max_inputs >= 0 || node.n_inputs <= node.op->min_inputs) return std::nullopt;
  std::vector<Type> inputs = g.input_types(node), outputs;
  inputs.erase(inputs.begin() + i);
  if (node.op->is(kDeclaredTypes)) outputs = g.output_types(node);
  try {
    infer_types(*node.op, inputs, g.attributes(node), outputs, g.regions_of(node));
  } catch (const TypeError&) {
    return std::nullopt;
  }
  if (outputs != g.output_types(node)) return std::nullopt;
  // The list of operands shrinks where it stands; the entries between the lists of the pool have no meaning.
  Graph result = g;
  auto first = result.refs.begin() + node.first_input;
  std::move(first + i + 1, first + node.n_inputs, first + i);
  --result.nodes[n].n_inputs;
  return result;
}

// ---- regions ----

namespace {

// How a region lines up with its node: a loop's body has a counter before the node's operands, and no number of passes before
// the results.
struct Alignment {
  std::int32_t counters = 0;  // region inputs before the operands
  std::int32_t skipped = 0;   // operands before the region's inputs
  std::int32_t trips = 0;     // results of the node before those of the region
};

std::optional<Alignment> align(const Graph& g, const Node& node, const Graph& region) {
  Alignment a;
  a.counters = std::max(0, region.n_inputs - node.n_inputs);
  a.skipped = std::max(0, node.n_inputs - region.n_inputs);
  a.trips = node.n_outputs - static_cast<std::int32_t>(region.outputs.size());
  if (a.trips < 0 || a.counters > 1 || a.trips > 1) return std::nullopt;
  for (ValueId v = a.counters; v < region.n_inputs; ++v)
    if (g.values[g.inputs(node)[a.skipped + v - a.counters]].type != region.values[v].type) return std::nullopt;
  for (std::int32_t i = a.trips; i < node.n_outputs; ++i)
    if (region.values[region.outputs[i - a.trips]].type != g.values[node.first_output + i].type) return std::nullopt;
  return a;
}

void inline_region(Rebuild& whole, const Node& node, const Graph& region, const Alignment& a) {
  Splice inner(region, whole.to, whole.names);
  for (ValueId v = 0; v < a.counters; ++v) inner.bind(v, add_zeros(whole.to, region.values[v].type));
  for (ValueId v = a.counters; v < region.n_inputs; ++v)
    inner.bind(v, whole.splice.at(whole.from.inputs(node)[a.skipped + v - a.counters]));
  for (NodeId m = 0; m < region.node_count(); ++m) inner.copy(m);
  for (std::int32_t i = 0; i < a.trips; ++i)
    whole.splice.bind(node.first_output + i, add_zeros(whole.to, whole.from.values[node.first_output + i].type));
  for (std::int32_t i = a.trips; i < node.n_outputs; ++i)
    whole.splice.bind(node.first_output + i, inner.at(region.outputs[i - a.trips]));
}

}  // namespace

std::optional<Graph> with_region_inlined(const Graph& g, NodeId n, std::int32_t r) {
  const Graph& region = *g.regions_of(g.nodes[n])[r];
  const std::optional<Alignment> alignment = align(g, g.nodes[n], region);
  if (!alignment) return std::nullopt;
  Rebuild whole(g);
  whole.all_inputs();
  whole.all_state();
  for (NodeId k = 0; k < g.node_count(); ++k) {
    if (k == n)
      inline_region(whole, g.nodes[k], region, *alignment);
    else
      whole.splice.copy(k);
  }
  return whole.finish();
}

Graph with_region(const Graph& g, NodeId n, std::int32_t r, Graph region) {
  Graph result = g;
  result.regions[g.nodes[n].first_region + r] = std::make_shared<const Graph>(std::move(region));
  return result;
}

// ---- sizes ----

namespace {

struct Resize {
  std::int64_t from = 0, to = 0;

  Type type(Type t) const {
    for (int i = 0; i < t.shape.rank; ++i)
      if (t.shape.sizes[i] == from) t.shape.sizes[i] = to;
    return t;
  }
};

// A node's attributes as bytes that may be changed.
struct Attributes {
  std::vector<std::max_align_t> store;
  std::size_t size = 0;

  explicit Attributes(const void* attrs, std::size_t n)
      : store((n + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t)), size(n) {
    if (n > 0) std::memcpy(store.data(), attrs, n);
  }
  Ints& ints(const Field& field) {
    return *reinterpret_cast<Ints*>(reinterpret_cast<unsigned char*>(store.data()) + field.offset);
  }
  const void* data() const { return size == 0 ? nullptr : store.data(); }
};

// The results that the node has with these attributes, if it has any.
std::optional<std::vector<Type>> results_with(const Node& node, const std::vector<Type>& inputs, const Attributes& attrs,
                                              const std::vector<Type>& wanted, std::span<const Region> regions) {
  std::vector<Type> outputs;
  if (node.op->is(kDeclaredTypes)) outputs = wanted;
  try {
    infer_types(*node.op, inputs, attrs.data(), outputs, regions);
  } catch (const Error&) {
    return std::nullopt;
  }
  return outputs;
}

// Attributes to try for a resized node: as they are; with sizes replaced; and with one entry of a list such that it names as
// many elements as the operand has (a reshape whose sizes are products of others).
std::vector<Attributes> attribute_choices(const Node& node, const void* attrs, const std::vector<Type>& inputs,
                                          const Resize& resize) {
  const std::size_t size = node.op->attrs ? node.op->attrs->size : 0;
  std::vector<Attributes> choices = {Attributes(attrs, size)};
  for (const Field& field : fields_of(*node.op)) {
    if (field.kind != FieldKind::ints) continue;
    Attributes replaced = choices.back();
    Ints& list = replaced.ints(field);
    for (int i = 0; i < list.size; ++i)
      if (list.items[i] == resize.from) list.items[i] = resize.to;
    choices.push_back(replaced);
    for (int i = 0; i < list.size && !inputs.empty(); ++i) {
      std::int64_t others = 1;
      for (int k = 0; k < list.size; ++k) others *= k == i ? 1 : std::max<std::int64_t>(list.items[k], 1);
      Attributes fitted = replaced;
      fitted.ints(field).items[i] = inputs[0].numel() / others;
      choices.push_back(fitted);
    }
  }
  return choices;
}

// A constant of a smaller type holds the first elements of the old one.
void shrink_literal(Graph& to, NodeId n) {
  const Node& node = to.nodes[n];
  if (!tensor_field(*node.op) || !to.literal(node)) return;
  Literal& literal = to.constants.back();
  if (literal.type == to.values[node.first_output].type) return;
  literal.type = to.values[node.first_output].type;
  literal.tensor = Name();
}

std::optional<Graph> resized(const Graph& g, const Resize& resize);

std::optional<std::vector<Region>> resized_regions(const Graph& g, const Node& node, const Resize& resize) {
  std::vector<Region> regions;
  for (const Region& region : g.regions_of(node)) {
    std::optional<Graph> small = resized(*region, resize);
    if (!small) return std::nullopt;
    regions.push_back(std::make_shared<const Graph>(std::move(*small)));
  }
  return regions;
}

bool copy_resized(Rebuild& r, NodeId n, const Resize& resize) {
  const Graph& g = r.from;
  const Node& node = g.nodes[n];
  const std::optional<std::vector<Region>> regions = resized_regions(g, node, resize);
  if (!regions) return false;
  std::vector<Type> inputs, wanted;
  for (ValueId v : g.inputs(node)) inputs.push_back(r.to.values[r.splice.at(v)].type);
  for (const Type& t : g.output_types(node)) wanted.push_back(resize.type(t));
  const std::vector<Attributes> choices = attribute_choices(node, g.attributes(node), inputs, resize);
  const Attributes* chosen = nullptr;
  std::vector<Type> types;
  for (const Attributes& choice : choices) {
    const auto made = results_with(node, inputs, choice, wanted, *regions);
    if (!made || (chosen && *made != wanted)) continue;
    const bool fits = *made == wanted;
    if (!chosen || fits) chosen = &choice, types = *made;
    if (fits) break;
  }
  if (!chosen) return false;
  shrink_literal(r.to, r.splice.copy_as(n, chosen->data(), types, *regions));
  return true;
}

std::optional<Graph> resized(const Graph& g, const Resize& resize) {
  Rebuild r(g);
  for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v) {
    if (g.is_input(v))
      r.input(v);
    else
      r.state(v);
    r.to.values.back().type = resize.type(g.values[v].type);
  }
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (!copy_resized(r, n, resize)) return std::nullopt;
  return r.finish();
}

}  // namespace

std::optional<Graph> with_operand_passed_on(const Graph& g, NodeId n, std::int32_t i) {
  const Resize none{-1, -1};  // no size is negative
  Rebuild r(g);
  r.all_inputs();
  r.all_state();
  for (NodeId k = 0; k < g.node_count(); ++k) {
    const Node& node = g.nodes[k];
    if (k != n && !copy_resized(r, k, none)) return std::nullopt;
    for (std::int32_t o = 0; k == n && o < node.n_outputs; ++o)
      r.splice.bind(node.first_output + o, r.splice.at(g.inputs(node)[i]));
  }
  return r.finish();
}

std::optional<Graph> with_size(const Graph& g, std::int64_t from, std::int64_t to) { return resized(g, {from, to}); }

// ---- the measure ----

namespace {

void add_measure(const Graph& g, Measure& m) {
  m[0] += g.node_count();
  m[1] += static_cast<std::int64_t>(g.outputs.size() + g.updates.size());
  m[2] += g.n_inputs + 2 * static_cast<std::int64_t>(g.n_state);
  for (const Value& v : g.values) m[3] += v.type.numel();
  for (const Node& node : g.nodes) {
    m[4] += node.n_inputs;
    for (ValueId v : g.inputs(node)) m[4] += v;
    for (const Region& region : g.regions_of(node)) add_measure(*region, m);
  }
}

}  // namespace

Measure measure(const Graph& graph) {
  Measure m{};
  add_measure(graph, m);
  return m;
}

}  // namespace tapedeck
