// The model that an export makes: names of values, constants that several nodes share, and the nodes in order.
#pragma once

#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::onnx {

// A function that cannot write a node throws the reason.
struct Refusal {
  std::string reason;
};

using Integers = std::vector<std::int64_t>;

TensorData tensor_data(const std::string& name, const Type& type, std::string bytes);
Node copy_node(const std::string& from, const std::string& to);
ValueInfo value_info(const std::string& name, const Type& type);

// The ops without a counterpart, each once, with its first node.
class Refusals {
 public:
  void add(const tapedeck::Graph& graph, NodeId node, const std::string& reason);
  void check() const;  // throws UsageError, which names all of them

 private:
  std::vector<std::string> ops_, texts_;
};

// Numbers that the model draws: the value that has them, and the graph in which it can be read.
inline constexpr std::int64_t kEverywhere = 0;
struct Drawn {
  std::string name;
  std::int64_t graph = kEverywhere;
};

// Writes one graph of a model: the graph that is exported, or the region of a node. Names, constants and refusals are those of
// the model as a whole.
class ModelBuilder {
 public:
  // Names the values. Outputs and updates of the graph get names of their own.
  // `draws_others`: the model may draw random numbers that are not those of Tapedeck.
  explicit ModelBuilder(const tapedeck::Graph& graph, bool draws_others = false);
  // For a region of `holder`, a node of the graph of `outer`. `inputs` are the names of its inputs.
  ModelBuilder(ModelBuilder& outer, NodeId holder, const tapedeck::Graph& region, const std::vector<std::string>& inputs);
  ~ModelBuilder();
  ModelBuilder(const ModelBuilder&) = delete;

  const tapedeck::Graph& graph() const { return graph_; }
  Model& model();
  Refusals& refusals();
  const std::string& name_of(ValueId v) const { return names_[static_cast<std::size_t>(v)]; }
  void rename(ValueId v, std::string name) { names_[static_cast<std::size_t>(v)] = std::move(name); }
  bool is_read(ValueId v) const { return reads_[static_cast<std::size_t>(v)] > 0; }
  std::string new_name(const std::string& wanted);

  // The name of an initializer with these bytes. Small ones are shared.
  std::string constant(const Type& type, std::string bytes);
  // States the type of a result whose size only its data decide, for importers.
  void state_type(const std::string& name, const Type& type) { state_type(value_info(name, type)); }
  void state_type(const ValueInfo& value) { values_[value.name] = value; }
  // Gives the node a name that says where it stands, its phase and its place in the program, unless it has a name.
  void describe(Node& node, const Origin& origin);
  // Describes the node and appends it.
  void append(Node node, const Origin& origin);
  std::vector<Node> take_nodes() { return std::move(nodes_); }
  std::map<std::string, ValueInfo> take_values() { return std::move(values_); }
  std::int64_t node_count() const;  // of all graphs
  // Adds the nodes, the outputs of the graph and the new values of its state to the model. Call it after all nodes.
  void finish();

  // ---- regions ----
  ModelBuilder* outer() const { return outer_; }  // null: it is the graph that is exported
  NodeId holder() const { return holder_; }
  ModelBuilder& outermost();
  std::int64_t id() const { return id_; }  // of this graph among those of the model, and kEverywhere of the outermost one

  // ---- random numbers ----
  bool draws_others() const;
  std::map<std::string, Drawn>& drawn();  // by what makes draws equal
  // A mask is the second result of a Dropout. The model leaves it out unless something keeps it.
  void add_mask(const std::string& name);
  void keep_mask(const std::string& name);

  // A graph inside a node begins and ends. Throws Refusal if too many graphs are inside each other.
  void enter();
  void leave();

 private:
  struct Whole;
  void leave_out_masks();
  void count_reads();
  void name_results();
  void name_result(ValueId v, const std::string& name);
  void name_rest();
  void add_output(ValueId v, const std::string& name);

  const tapedeck::Graph& graph_;
  std::unique_ptr<Whole> own_;  // of the graph that is exported
  Whole& whole_;
  ModelBuilder* outer_ = nullptr;
  NodeId holder_ = kNone;
  std::int64_t id_ = kEverywhere;
  std::vector<Node> nodes_;
  std::vector<std::string> names_;  // of all values
  std::vector<std::string> output_names_, update_names_;
  std::map<std::string, ValueInfo> values_;  // whose types are stated
  std::vector<std::int32_t> reads_;          // by nodes, outputs and updates
};

}  // namespace tapedeck::onnx
