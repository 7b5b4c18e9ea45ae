// Checks the invariants of graph.h. The checks run in an order in which each one relies only on facts that earlier ones have
// proved, so that no index is used before its range is checked:
//
//       inputs, state, names -> pools and outputs of each node -> operands defined before -> regions -> inferred types ->
//       updates
#include <tapedeck/engine/ir/graph.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/ir/interruption.h>

#include <fmt/format.h>

#include <bit>
#include <vector>

namespace tapedeck {
namespace {

// The limit for the bytes of all values of a graph together. It keeps sums of byte counts from overflowing.
constexpr std::int64_t kMaxGraphBytes = std::int64_t{1} << 60;

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw InvalidGraphError("invalid graph: " + fmt::format(format, std::forward<Args>(args)...));
}

bool inside(std::int32_t first, std::int32_t n, std::size_t size) {
  return first >= 0 && n >= 0 && static_cast<std::size_t>(first) + static_cast<std::size_t>(n) <= size;
}

void check_value(const Graph& g, ValueId v, std::int64_t* total) {
  const Value& value = g.values[v];
  const Type& type = value.type;
  if (static_cast<int>(type.dtype) >= kDTypeCount) fail("%{} has an unknown dtype", g.value_name(v));
  if (type.shape.rank < 0 || type.shape.rank > kMaxRank) fail("%{} has rank {}", g.value_name(v), type.shape.rank);
  const std::int64_t bytes = checked_bytes(type.dtype, {type.shape.sizes, static_cast<std::size_t>(type.shape.rank)});
  if (bytes < 0) fail("the type of %{} is too large or has a negative size: {}", g.value_name(v), to_string(type));
  *total += bytes;
  if (*total > kMaxGraphBytes) fail("the values up to %{} together hold more than 2^60 bytes", g.value_name(v));
}

// The set of names seen so far: a hash table that is at most half full.
class NamesSeen {
 public:
  explicit NamesSeen(std::size_t most) : slots_(std::bit_ceil(2 * most + 1), nullptr) {}

  bool add(const void* id) {
    std::size_t i = (reinterpret_cast<std::uintptr_t>(id) * 0x9E3779B97F4A7C15u) >> 20;
    for (;; ++i) {
      const void*& slot = slots_[i & (slots_.size() - 1)];
      if (slot == id) return false;
      if (slot) continue;
      slot = id;
      return true;
    }
  }

 private:
  std::vector<const void*> slots_;
};

void check_values(const Graph& g) {
  if (g.n_inputs < 0 || g.n_state < 0 || !inside(g.n_inputs, g.n_state, g.values.size()))
    fail("{} inputs and {} state values, but only {} values", g.n_inputs, g.n_state, g.values.size());
  std::int64_t total = 0;
  NamesSeen named(g.values.size());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    check_value(g, v, &total);
    const Value& value = g.values[v];
    if (v < g.n_inputs + g.n_state) {
      if (value.name.empty()) fail("{} {} has no name (invariant 4)", g.is_input(v) ? "input" : "state value", v);
      if (value.node != kNone)
        fail("%{} is an input or state value, yet names node {} as its producer (invariant 2)", g.value_name(v), value.node);
    }
    if (!value.name.empty() && !named.add(value.name.id())) fail("two values are named %{} (invariant 4)", g.value_name(v));
  }
}

// Checks the pools and the outputs of one node. If this check passes, the node can be printed.
void check_record(const Graph& g, NodeId id, ValueId expected_output) {
  const Node& n = g.nodes[id];
  if (!n.op) fail("node {} has no op", id);
  if (!inside(n.first_input, n.n_inputs, g.refs.size()) || !inside(n.first_after, n.n_after, g.refs.size()))
    fail("node {} ({}): its operand list is outside the pool", id, n.op->name);
  if (n.first_output != expected_output || !inside(n.first_output, n.n_outputs, g.values.size()))
    fail("node {} ({}): its outputs start at {}, expected {} (invariant 2)", id, n.op->name, n.first_output, expected_output);
  if (!inside(n.first_region, n.n_regions, g.regions.size()))
    fail("node {} ({}): its regions are outside the pool", id, n.op->name);
  for (const Region& region : g.regions_of(n))
    if (!region) fail("node {} ({}): a region is missing (invariant 7)", id, n.op->name);
  const std::size_t pool = GraphAccess::attr_pool(g).size();
  if ((n.attrs == kNone) != (n.op->attrs == nullptr))
    fail("node {} ({}): {}", id, n.op->name,
         n.op->attrs ? "its attributes are missing" : "it has attributes the op does not take");
  if (n.attrs != kNone && (n.attrs < 0 || n.attrs % static_cast<std::int32_t>(kAttrAlignment) != 0 ||
                           static_cast<std::size_t>(n.attrs) + n.op->attrs->size > pool))
    fail("node {} ({}): its attributes are outside the pool", id, n.op->name);
}

void check_edges(const Graph& g, NodeId id) {
  const Node& n = g.nodes[id];
  for (std::int32_t i = 0; i < n.n_outputs; ++i)
    if (g.values[n.first_output + i].node != id)
      fail("node {}: {}: output {} names node {} as its producer (invariant 2)", id, g.node_text(id), i,
           g.values[n.first_output + i].node);
  for (ValueId v : g.inputs(n))
    if (v < 0 || v >= n.first_output)
      fail("node {}: {}: operand %{} is not defined before it (invariant 1)", id, g.node_text(id), g.value_name(v));
  for (ValueId v : g.after(n))
    if (v < 0 || v >= n.first_output)
      fail("node {}: {}: `after` names %{}, which is not defined before it (invariant 6)", id, g.node_text(id),
           g.value_name(v));
}

void check_constant(const Graph& g, NodeId id) {
  const Node& n = g.nodes[id];
  if (!tensor_field(*n.op)) return;
  const Literal* literal = g.literal(n);
  if (!literal) fail("node {}: {}: its constant is not in the graph", id, g.node_text(id));
  if (n.n_outputs != 1 || g.values[n.first_output].type != literal->type)
    fail("node {}: {}: its constant is {} (invariant 3)", id, g.node_text(id), to_string(literal->type));
}

// Checks the inferred types of nodes (invariant 3). The buffers are kept between nodes, because this check runs for every
// node of every graph that is parsed or rewritten.
struct Inference {
  std::vector<Type> inputs, outputs;

  void check(const Graph& g, NodeId id) {
    const Node& n = g.nodes[id];
    inputs.clear();
    outputs.clear();
    for (ValueId v : g.inputs(n)) inputs.push_back(g.values[v].type);
    if (n.op->is(kDeclaredTypes))
      for (const Value& v : g.output_values(n)) outputs.push_back(v.type);
    try {
      infer_types(*n.op, inputs, g.attributes(n), outputs, g.regions_of(n));
    } catch (const TypeError& error) {
      fail("node {}: {}: {} (invariant 3)", id, g.node_text(id), error.what());
    }
    if (outputs.size() != static_cast<std::size_t>(n.n_outputs))
      fail("node {}: {}: the op gives {} results, not {} (invariant 3)", id, g.node_text(id), outputs.size(), n.n_outputs);
    for (std::int32_t i = 0; i < n.n_outputs; ++i)
      if (outputs[i] != g.values[n.first_output + i].type)
        fail("node {}: {}: the op gives {} (invariant 3)", id, g.node_text(id), to_string(outputs[i]));
  }
};

void verify_nested(const Graph& g, int depth);

// Checks the regions of node `id`. This check runs before the types of the node are inferred, because the inference rules of
// control flow read the regions.
void check_regions(const Graph& g, NodeId id, int depth) {
  const Node& n = g.nodes[id];
  for (std::int32_t i = 0; i < n.n_regions; ++i) {
    const Graph& region = *g.regions_of(n)[i];
    if (depth == kMaxNesting)
      fail("node {} ({}): regions are nested more than {} deep (invariant 7)", id, n.op->name, kMaxNesting);
    if (region.n_state != 0 || !region.updates.empty())
      fail("node {} ({}): region {} has state (invariant 7)", id, n.op->name, i);
    try {
      verify_nested(region, depth + 1);
    } catch (const InvalidGraphError& error) {
      throw InvalidGraphError(fmt::format("{} (in region {} of node {}, {})", error.what(), i, id, n.op->name));
    }
  }
}

void check_nodes(const Graph& g, int depth) {
  ValueId next = g.n_inputs + g.n_state;
  Inference inference;
  for (NodeId id = 0; id < g.node_count(); ++id) {
    stop_if_interrupted();
    check_record(g, id, next);
    next += g.nodes[id].n_outputs;
    check_edges(g, id);
    check_constant(g, id);
    check_regions(g, id, depth);
    inference.check(g, id);
  }
  if (next != g.value_count()) fail("{} values belong to no node (invariant 2)", g.value_count() - next);
}

void check_results(const Graph& g) {
  const auto exists = [&](ValueId v) { return v >= 0 && v < g.value_count(); };
  for (ValueId v : g.outputs)
    if (!exists(v)) fail("return names value {}, which does not exist", v);
  if (!g.output_names.empty() && g.output_names.size() != g.outputs.size())
    fail("{} outputs, but {} output names", g.outputs.size(), g.output_names.size());
  std::vector<bool> updated(static_cast<std::size_t>(g.n_state));
  for (const Update& u : g.updates) {
    if (!exists(u.state) || !g.is_state(u.state))
      fail("update of %{}, which is not a state value (invariant 5)", g.value_name(u.state));
    if (!exists(u.value))
      fail("update of %{} from value {}, which does not exist (invariant 5)", g.value_name(u.state), u.value);
    if (g.values[u.state].type != g.values[u.value].type)
      fail("update of %{}: {} from %{}: {}: the types differ (invariant 5)", g.value_name(u.state),
           to_string(g.values[u.state].type), g.value_name(u.value), to_string(g.values[u.value].type));
    if (updated[u.state - g.n_inputs]) fail("%{} is updated twice (invariant 5)", g.value_name(u.state));
    updated[u.state - g.n_inputs] = true;
  }
}

void verify_nested(const Graph& g, int depth) {
  check_values(g);
  check_nodes(g, depth);
  check_results(g);
}

}  // namespace

void verify(const Graph& graph) { verify_nested(graph, 0); }

}  // namespace tapedeck
