// Runs the nodes of an ONNX graph as ops of Tapedeck, on types alone. It does so twice. The first pass finds which values are
// known at import, such as the results of arithmetic with shapes, and computes them. The second pass is recorded: there the
// known values are constants, and reading the elements of anything else would be an error.
#pragma once

#include <tapedeck/capture/onnx/node_call.h>
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapedeck::onnx {

// The values of a graph by name. A graph inside a node sees those of the graphs around it.
struct Scope {
  const Graph* graph = nullptr;
  Scope* outer = nullptr;
  std::unordered_map<std::string, Operand> values;
  // The values that the first pass found to be known, and the scopes of graphs inside nodes, by node and attribute.
  std::unordered_map<std::string, Operand> known;
  std::map<std::pair<const Node*, std::string>, std::unique_ptr<Scope>> inner;

  const Operand* find(const std::string& name) const;  // null if there is none
};

class Interpreter {
 public:
  enum class Pass { find_known, record };

  Interpreter(const Model& model, ImportState& state) : model_(model), state_(state) {}

  // Runs all nodes. `scope.values` has the inputs and the initializers of its graph; it gets the results.
  // Throws ParseError, which names the node.
  void run(Scope& scope, Pass pass);
  // A value of the graph. Throws ParseError if there is none.
  const Operand& value(const Scope& scope, const std::string& name) const;

 private:
  void run_node(Scope& scope, const Node& node, std::int64_t number);
  Tensors results_of(const Node& node, const OnnxOp& op, NodeCall& call) const;
  const OnnxOp& op_of(const Node& node) const;
  void check_attributes(const Node& node, const OnnxOp& op) const;
  std::int64_t opset_of(const Node& node) const;
  Site site_of(const Node& node, std::int64_t number) const;
  [[noreturn]] void fail(const Node& node, const std::string& message) const;

  // ---- nodes that hold graphs (control_nodes.cpp) ----
  bool run_control(Scope& scope, const Node& node, Site site);
  void run_if(Scope& scope, const Node& node, Site site);
  void run_loop(Scope& scope, const Node& node, Site site);
  void run_scan(Scope& scope, const Node& node, Site site);
  struct LoopNode;
  struct ScanNode;
  LoopNode loop_of(const Scope& scope, const Node& node) const;
  ScanNode scan_of(const Node& node, const Graph& body) const;
  void take_scan_operands(const Scope& scope, const Node& node, Site site, ScanNode* s) const;
  Tensors find_known_in_body(Scope& scope, const Node& node, const LoopNode& loop);
  std::int64_t count_trips(Scope& scope, const Node& node, const LoopNode& loop);
  Tensor stacked_type(const Node& node, std::int64_t trips, const Tensor& slice) const;
  std::int64_t only_integer(const Node& node, const Operand& known) const;
  std::int64_t checked_axis(const Node& node, std::int64_t given, std::int64_t rank) const;
  Scope& inner_scope(Scope& scope, const Node& node, const std::string& attribute);
  const Operand* operand(const Scope& scope, const Node& node, std::size_t i) const;
  Tensors run_inner(Scope& inner, const std::vector<Operand>& inputs);
  void give(Scope& scope, const Node& node, const Tensors& results);

  const Model& model_;
  ImportState& state_;
  Pass pass_ = Pass::find_known;
  std::set<const Node*> always_true_;                // loops whose condition is always true
  std::map<const Node*, std::int64_t> known_trips_;  // of loops that end after this number in any run
};

// The module path of a node: what the exporter wrote, else from its name, else empty. "layer1.0.conv1"
std::string module_path(const Node& node);

}  // namespace tapedeck::onnx
