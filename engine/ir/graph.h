// The one representation of a program. A tape is a list of nodes in execution order, as they were recorded. A graph is a tape
// with named inputs, state and outputs.
//
// Values are dense integers from 0 to n_values - 1. In a graph the inputs come first, then the state, then the outputs of the
// nodes in node order; on a tape, the value of a tensor from outside stands where it was first read. The outputs of one node
// are consecutive. All other knowledge about values or nodes (lifetimes, offsets, costs) is kept in vectors with the value or
// the node as index. A graph is in SSA form: no node writes its operands. An `update` takes effect after all nodes.
//
// Invariants (verify() checks them):
//   (1) every operand of node n is an input, a state value, or an output of a node before n;
//   (2) the outputs of a node are the values first_output .. first_output + n_outputs - 1, and Value::node of each is the node;
//   (3) types agree with the inference rule of the op; (4) no two values share a name, and all inputs and state have names;
//   (5) the new value of an update has the type of the state value, and a state value is updated at most once;
//   (6) `after` edges name values defined before the node;
//   (7) a node has as many regions as its op says. Each region keeps all of these invariants, has neither state nor updates,
//       and nests at most kMaxNesting deep.
//
// Graph is a value type: a copy is deep, except that copies share constants and regions, which are immutable. Any number of
// threads may read a graph at once. A thread that writes a graph must be the only one that uses it.
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
inline constexpr int kMaxNesting = 32;  // the deepest nesting of regions in regions
// The text form writes out the elements of a constant that has at most this many.
inline constexpr std::int64_t kMaxInlineConstant = 16;

enum class Phase : std::uint8_t { forward, backward, update };
// What the program itself asks of the values that a node makes (capture/plan/wishes.h): plans never compute them again, or
// do not keep them between their readers.
enum class NodeWish : std::uint8_t { none, keep, recompute };
enum class Role : std::uint8_t { none, input, parameter, moment, statistic, counter, rng };

const char* phase_name(Phase phase);   // for example "forward"
const char* role_name(Role role);      // for example "parameter"
const char* wish_name(NodeWish wish);  // for example "keep"

// The origin of a node. These notes survive every pass. Erasing them changes no result.
struct Origin {
  Phase phase = Phase::forward;
  bool clone = false;              // a copy of an earlier node that recomputes its result; CSE does not merge it
  NodeWish wish = NodeWish::none;  // a clone that a pass makes does not take it over
  std::int32_t region = kNone;     // checkpoint region
  Name twin;                       // of a backward node: the first output's name of the forward node that it differentiates
  Name of;                         // of a clone: the first output's name of the node that it repeats
  Name path;                       // module path, "fc1"
  Name site;                       // the place of the user's call, "train.cpp:12"
};

// One application of an op. A node has a fixed size; its lists lie in the pools of the graph.
struct Node {
  const Op* op = nullptr;
  std::int32_t first_input = 0, n_inputs = 0;  // position in Graph::refs
  std::int32_t first_after = 0, n_after = 0;   // position in Graph::refs: values whose nodes must run before this node
  ValueId first_output = 0;
  std::int32_t n_outputs = 0;
  std::int32_t attrs = kNone;                    // offset in bytes in the attribute pool, or kNone
  std::int32_t first_region = 0, n_regions = 0;  // position in Graph::regions
  Origin origin;
};

struct Value {
  Type type;
  NodeId node = kNone;     // the node that makes the value; kNone for inputs and state
  Role role = Role::none;  // role of inputs and state; none for other values
  Name name;               // if empty, the value prints as %N, its number
};

// The data of a constant. It is immutable, stands beside the nodes, and is shared by copies of the graph.
struct Literal {
  Type type;
  std::shared_ptr<const void> data;  // type.bytes() bytes in dense row-major order; null for an abstract constant
  Name tensor;                       // the name of a large constant's data in the file
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
  std::vector<Region> regions;     // regions of control-flow nodes
  std::vector<ValueId> outputs;    // the values of the `return` line, in order; a value may repeat
  std::vector<Name> output_names;  // parallel to outputs; a name may be empty
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
  // The name that the text form prints for `v`, without '%': its own name, or its number. O(1).
  std::string value_name(ValueId v) const;
  // The node as one line of text without its notes. Error messages use it.
  std::string node_text(NodeId n) const;
  const Literal* literal(const Node& n) const;  // the data of a constant node; null for other nodes
  std::vector<Type> input_types(const Node& n) const;
  std::span<const Value> output_values(const Node& n) const {
    return {values.data() + n.first_output, static_cast<std::size_t>(n.n_outputs)};
  }
  std::vector<Type> output_types(const Node& n) const;

  // ---- building: inputs, then state, then nodes ----
  ValueId add_input(Name name, const Type& type);
  ValueId add_state(Name name, const Type& type, Role role);
  // Appends a node and copies its attributes (op.attrs->size bytes). The output types are taken as given; verify() checks
  // them later.
  NodeId add_node(const Op& op, std::span<const ValueId> inputs, const void* attrs, std::span<const Type> outputs,
                  const Origin& origin = {}, std::span<const ValueId> after = {}, std::span<const Region> node_regions = {});
  std::int32_t add_constant(Literal literal);  // returns the index for ConstantAttrs
  // Removes the last node and its lists from the pools. Its output values stay.
  void pop_node() {
    refs.resize(static_cast<std::size_t>(nodes.back().first_input));
    if (nodes.back().attrs != kNone) attr_pool_.resize(static_cast<std::size_t>(nodes.back().attrs));
    regions.resize(static_cast<std::size_t>(nodes.back().first_region));
    nodes.pop_back();
  }
  // Removes all nodes, values and constants but keeps the memory, so that the eager tape can be filled again without
  // allocation.
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

// Copies a graph for a pass that decides node by node which nodes stay. The constructor copies inputs and state. A map
// translates each value of the old graph to its value in the new graph. Nearly every pass has this form:
//       Rewriter r(g);
//       for (NodeId n = 0; n < g.node_count(); ++n) if (keep(n)) r.copy(n); else r.replace(v, by);
//       return r.finish();
class Rewriter {
 public:
  explicit Rewriter(const Graph& from);
  NodeId copy(NodeId n);  // appends the node with translated operands; returns its id in the new graph
  NodeId clone(NodeId n, std::span<const ValueId> new_inputs,
               std::span<const ValueId> new_after);    // appends a marked clone; the operands are values of the new graph
  void replace(ValueId old_value, ValueId new_value);  // old nodes that are copied later read new_value in place of old_value
  ValueId at(ValueId old_value) const { return map_[old_value]; }
  Graph& graph() { return to_; }
  Graph finish();  // translates outputs and updates; REQUIRES: every one of them has a new value

 private:
  const Graph& from_;
  Graph to_;
  std::vector<ValueId> map_;
};

// Throws InvalidGraphError if an invariant is broken; the message names the node and the invariant. O(nodes).
void verify(const Graph& graph);

// Equality and hash of the attributes of nodes. Both go field by field, so padding bytes never count. Literals compare by
// content. Two regions are equal if same_region (compare_nodes.h) says so.
bool same_attributes(const Graph& a, const Node& na, const Graph& b, const Node& nb);
std::uint64_t hash_attributes(const Graph& graph, const Node& node);

}  // namespace TAPEDECK_API
