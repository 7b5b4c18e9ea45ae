// The model that an export makes: names of values, constants that several nodes share, and the nodes in order.
#pragma once

#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::onnx {

using Integers = std::vector<std::int64_t>;

TensorData tensor_data(const std::string& name, const Type& type, std::string bytes);
Node copy_node(const std::string& from, const std::string& to);
ValueInfo value_info(const std::string& name, const Type& type);

class ModelBuilder {
 public:
  // Names the values. Outputs and updates of the graph get names of their own.
  explicit ModelBuilder(const tapedeck::Graph& graph);

  const tapedeck::Graph& graph() const { return graph_; }
  Model& model() { return model_; }
  const std::string& name_of(ValueId v) const { return names_[static_cast<std::size_t>(v)]; }
  bool is_read(ValueId v) const { return reads_[static_cast<std::size_t>(v)] > 0; }
  std::string new_name(const std::string& wanted) { return taken_.unique(wanted).str(); }

  // The name of an initializer with these bytes. Small ones are shared.
  std::string constant(const Type& type, std::string bytes);
  // States the type of a result whose size only its data decide, for importers.
  void state_type(const std::string& name, const Type& type) { model_.graph.values[name] = value_info(name, type); }
  // Appends the node, with a name that says where it stands, its phase and its place in the program.
  void append(Node node, const Origin& origin);
  // Adds the outputs of the graph and the new values of its state. Call it after all nodes.
  void finish();

 private:
  void name_results();
  void name_result(ValueId v, const std::string& name);
  void add_output(ValueId v, const std::string& name);

  const tapedeck::Graph& graph_;
  Model model_;
  UniqueNames taken_, taken_by_nodes_;
  std::vector<std::string> names_;  // of all values
  std::vector<std::string> output_names_, update_names_;
  std::vector<std::int32_t> reads_;  // by nodes, outputs and updates
  std::map<std::pair<std::string, std::string>, std::string> shared_;
};

}  // namespace tapedeck::onnx
