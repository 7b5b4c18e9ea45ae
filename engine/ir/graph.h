// The one representation. A tape is nodes in execution order, as recorded; a graph is a tape with named inputs, state and
// outputs.
//
// Values are dense integers: 0 .. n_values-1, inputs first, then state, then the outputs of the nodes in node order (a node's
// outputs are consecutive). Whatever else is known about values or nodes - lifetimes, offsets, costs - is a vector indexed by
// them. Recording is in SSA: no node writes its operands. `update` takes effect after all nodes.
//
// Invariants (verify() checks them):
//  (1) every operand of node n is defined by an input, a state value, or a node before n;
//  (2) a node's outputs are first_output .. first_output + n_outputs - 1, and Value::node names the node;
//  (3) types agree with the op's inference rule; (4) no two values share a name, and inputs and state all have one;
//  (5) an update's source has its state value's type, and a state value is updated at most once;
//  (6) `after` edges name values defined before the node;
//  (7) a node has as many regions as its op says; each keeps all of these, has neither state nor updates, and nests at most
//  kMaxNesting deep.
//
// Graph is a value: copies are deep (constants are shared, they are immutable). Not thread safe while written; const access is.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr std::int32_t kNone = -1;
inline constexpr int kMaxNesting = 32;  // of regions in regions
// The text form writes out the elements of a constant that has at most this many.
inline constexpr std::int64_t kMaxInlineConstant = 16;

enum class Phase : std::uint8_t { forward, backward, update };
enum class Role : std::uint8_t { none, input, parameter, moment, statistic, counter, rng };

const char* phase_name(Phase phase);  // "forward" ...
const char* role_name(Role role);     // "parameter" ...

// Where a node comes from: notes that survive every pass. Erasing them changes no result.
struct Origin {
  Phase phase = Phase::forward;
  bool clone = false;           // a recomputed copy of an earlier node: CSE leaves it alone
  std::int32_t region = kNone;  // checkpoint region
  Name twin;                    // backward nodes: name of the first output of the forward node whose gradient this computes
  Name of;                      // clones: name of the first output of the node this one repeats
  Name path;                    // module path, "fc1"
  Name site;                    // the user's call, "train.cpp:12"
};

// Fixed size; lists live in the graph's pools.
struct Node {
  const Op* op = nullptr;
  std::int32_t first_input = 0, n_inputs = 0;  // into refs
  std::int32_t first_after = 0, n_after = 0;   // into refs: values whose producers must run before this node (order edges)
  ValueId first_output = 0;
  std::int32_t n_outputs = 0;
  std::int32_t attrs = kNone;                    // byte offset into the attribute pool, or kNone
  std::int32_t first_region = 0, n_regions = 0;  // into regions
  Origin origin;
};

struct Value {
  Type type;
  NodeId node = kNone;     // producer; kNone for inputs and state
  Role role = Role::none;  // of inputs and state
  Name name;               // empty: prints as %N by order of definition
};

// Immutable tensor data kept beside the nodes: constants. Shared between copies of a graph.
struct Literal {
  Type type;
  std::shared_ptr<const void> data;  // type.bytes() dense bytes; null for an abstract constant
  Name tensor;                       // large ones: the name in the file
};

struct Update {
  ValueId state = kNone;
  ValueId value = kNone;
};

class Graph {
 public:
  Name name = "main";
  std::int32_t n_inputs = 0;  // values [0, n_inputs) are inputs
  std::int32_t n_state = 0;   // values [n_inputs, n_inputs + n_state) are state
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<std::int32_t> refs;  // operand and order lists
  std::vector<Literal> constants;
  std::vector<Region> regions;     // of nodes of control flow
  std::vector<ValueId> outputs;    // what `return` names, in order; may repeat
  std::vector<Name> output_names;  // parallel to outputs; empty names allowed
  std::vector<Update> updates;

  // ---- reading ----
  std::span<const ValueId> inputs(const Node& n) const {
    return {refs.data() + n.first_input, static_cast<std::size_t>(n.n_inputs)};
  }
  std::span<const ValueId> after(const Node& n) const {
    return {refs.data() + n.first_after, static_cast<std::size_t>(n.n_after)};
  }
  std::span<const Region> regions_of(const Node& n) const {
    return {regions.data() + n.first_region, static_cast<std::size_t>(n.n_regions)};
  }
  const void* attributes(const Node& n) const { return n.attrs == kNone ? nullptr : attr_pool_.data() + n.attrs; }
  bool is_input(ValueId v) const { return v < n_inputs; }
  bool is_state(ValueId v) const { return v >= n_inputs && v < n_inputs + n_state; }
  ValueId value_count() const { return static_cast<ValueId>(values.size()); }
  NodeId node_count() const { return static_cast<NodeId>(nodes.size()); }
  // The name a value prints under, without '%': its own name, or its number. O(1).
  std::string value_name(ValueId v) const;
  // The node as one line of text, notes left out: for messages.
  std::string node_text(NodeId n) const;
  const Literal* literal(const Node& n) const;  // of a constant node, else null
  std::vector<Type> input_types(const Node& n) const;
  std::span<const Value> output_values(const Node& n) const {
    return {values.data() + n.first_output, static_cast<std::size_t>(n.n_outputs)};
  }
  std::vector<Type> output_types(const Node& n) const;

  // ---- building: inputs, then state, then nodes ----
  ValueId add_input(Name name, const Type& type);
  ValueId add_state(Name name, const Type& type, Role role);
  // Appends a node; output types as given (verify() checks them). Attributes are copied (op.attrs->size bytes).
  NodeId add_node(const Op& op, std::span<const ValueId> inputs, const void* attrs, std::span<const Type> outputs,
                  const Origin& origin = {}, std::span<const ValueId> after = {}, std::span<const Region> node_regions = {});
  std::int32_t add_constant(Literal literal);  // index for ConstantAttrs
  // Takes the last node off, but not its values.
  void pop_node() {
    refs.resize(static_cast<std::size_t>(nodes.back().first_input));
    if (nodes.back().attrs != kNone) attr_pool_.resize(static_cast<std::size_t>(nodes.back().attrs));
    regions.resize(static_cast<std::size_t>(nodes.back().first_region));
    nodes.pop_back();
  }
  // Forgets nodes, values and constants but keeps the memory: the eager tape is emptied once a step.
  void clear_body() {
    n_inputs = n_state = 0;
    nodes.clear();
    values.clear();
    refs.clear();
    constants.clear();
    regions.clear();
    outputs.clear();
    output_names.clear();
    updates.clear();
    attr_pool_.clear();
  }

 private:
  friend class GraphAccess;
  std::vector<unsigned char> attr_pool_;
};

// Copies what stays of `from` while a pass decides node by node: inputs and state come over at once, `map` translates values.
// The shape of nearly every pass:
//     Rewriter r(g);
//     for (NodeId n = 0; n < g.node_count(); ++n) if (keep(n)) r.copy(n); else r.replace(v, by);
//     return r.finish();
class Rewriter {
 public:
  explicit Rewriter(const Graph& from);
  NodeId copy(NodeId n);  // appends the node with translated operands; returns the new id
  NodeId clone(NodeId n, std::span<const ValueId> new_inputs,
               std::span<const ValueId> new_after);    // a marked clone, operands already new ids
  void replace(ValueId old_value, ValueId new_value);  // later readers of old_value read new_value
  ValueId at(ValueId old_value) const { return map_[old_value]; }
  Graph& graph() { return to_; }
  Graph finish();  // translates outputs and updates; REQUIRES: all of them were copied

 private:
  const Graph& from_;
  Graph to_;
  std::vector<ValueId> map_;
};

// Throws InvalidGraphError naming the node and the broken invariant. O(nodes).
void verify(const Graph& graph);

// Attribute equality and hashing through the schema (padding never counts). Literals compare by content. Regions are
// the same if their text is (compare_nodes.h).
bool same_attributes(const Graph& a, const Node& na, const Graph& b, const Node& nb);
std::uint64_t hash_attributes(const Graph& graph, const Node& node);

}  // namespace TAPEDECK_API
