#include <tapedeck/capture/onnx/export/model_builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck::onnx {

namespace {

constexpr std::size_t kMostShared = 256;  // bytes of a constant that several nodes share

// "layer1.0.conv1" and "Conv" -> "/layer1/0/conv1/Conv", as PyTorch's exporter names nodes; module_path() reads it.
std::string node_name(const Name& path, const std::string& op) {
  if (path.empty()) return op;
  std::string name = "/" + path.str() + "/" + op;
  std::replace(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(path.view().size()) + 1, '.', '/');
  return name;
}

// "model.py:4" as the last line of a trace of Python, which is how the importer and other tools read places.
std::string trace_of(std::string_view site) {
  const std::size_t colon = site.rfind(':');
  if (colon == std::string_view::npos) return {};
  return fmt::format("File \"{}\", line {}", site.substr(0, colon), site.substr(colon + 1));
}

}  // namespace

TensorData tensor_data(const std::string& name, const Type& type, std::string bytes) {
  TensorData data;
  data.name = name;
  data.element_type = element_type_of(type.dtype);
  data.sizes.assign(type.shape.begin(), type.shape.end());
  data.bytes = std::move(bytes);
  return data;
}

Node copy_node(const std::string& from, const std::string& to) {
  Node node;
  node.op = "Identity";
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

ValueInfo value_info(const std::string& name, const Type& type) {
  ValueInfo info{.name = name, .element_type = element_type_of(type.dtype), .has_shape = true, .shape = {}};
  for (const std::int64_t size : type.shape) info.shape.push_back({size, ""});
  return info;
}

ModelBuilder::ModelBuilder(const tapedeck::Graph& graph)
    : graph_(graph), names_(graph.values.size()), reads_(graph.values.size()) {
  model_.ir_version = 10;
  model_.opsets[""] = 20;
  model_.producer = "tapedeck";
  model_.graph.name = graph.name.str();
  for (const tapedeck::Node& node : graph.nodes)
    for (const ValueId v : graph.inputs(node)) ++reads_[static_cast<std::size_t>(v)];
  for (const ValueId v : graph.outputs) ++reads_[static_cast<std::size_t>(v)];
  for (const Update& u : graph.updates) ++reads_[static_cast<std::size_t>(u.value)];
  name_results();
}

// An output, or a new value of state, gives its name to the value that it is, if a node computes the value and nothing named it
// before. Else finish() makes a copy of that name.
void ModelBuilder::name_results() {
  for (ValueId v = 0; v < graph_.n_inputs + graph_.n_state; ++v)
    names_[static_cast<std::size_t>(v)] = new_name(graph_.value_name(v));
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const bool named = i < graph_.output_names.size() && !graph_.output_names[i].empty();
    output_names_.push_back(new_name(named ? graph_.output_names[i].str() : graph_.value_name(graph_.outputs[i])));
    name_result(graph_.outputs[i], output_names_.back());
  }
  for (const Update& u : graph_.updates) {
    update_names_.push_back(new_name(graph_.value_name(u.state) + ".next"));
    name_result(u.value, update_names_.back());
  }
  for (ValueId v = 0; v < graph_.value_count(); ++v)
    if (names_[static_cast<std::size_t>(v)].empty()) names_[static_cast<std::size_t>(v)] = new_name(graph_.value_name(v));
}

void ModelBuilder::name_result(ValueId v, const std::string& name) {
  std::string& own = names_[static_cast<std::size_t>(v)];
  const NodeId node = graph_.values[static_cast<std::size_t>(v)].node;
  if (own.empty() && graph_.literal(graph_.nodes[static_cast<std::size_t>(node)]) == nullptr) own = name;
}

std::string ModelBuilder::constant(const Type& type, std::string bytes) {
  const bool shares = bytes.size() <= kMostShared;
  const auto key = std::make_pair(to_string(type), shares ? bytes : std::string());
  if (shares)
    if (const auto it = shared_.find(key); it != shared_.end()) return it->second;
  const std::string name = new_name("constant");
  model_.graph.initializers.push_back(tensor_data(name, type, std::move(bytes)));
  if (shares) shared_[key] = name;
  return name;
}

void ModelBuilder::append(Node node, const Origin& origin) {
  node.name = taken_by_nodes_.unique(node_name(origin.path, node.op)).str();
  node.metadata["tapedeck.phase"] = phase_name(origin.phase);
  if (std::string trace = trace_of(origin.site.view()); !trace.empty())
    node.metadata["pkg.torch.onnx.stack_trace"] = std::move(trace);
  model_.graph.nodes.push_back(std::move(node));
}

void ModelBuilder::add_output(ValueId v, const std::string& name) {
  if (name_of(v) != name) append(copy_node(name_of(v), name), {});
  model_.graph.outputs.push_back(value_info(name, graph_.values[static_cast<std::size_t>(v)].type));
  model_.graph.values.erase(name);  // an output states its type itself
}

void ModelBuilder::finish() {
  std::string state, updates;
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) add_output(graph_.outputs[i], output_names_[i]);
  for (std::size_t i = 0; i < graph_.updates.size(); ++i) {
    add_output(graph_.updates[i].value, update_names_[i]);
    updates += name_of(graph_.updates[i].state) + "=" + update_names_[i] + "\n";
  }
  for (ValueId v = graph_.n_inputs; v < graph_.n_inputs + graph_.n_state; ++v)
    state += name_of(v) + "=" + role_name(graph_.values[static_cast<std::size_t>(v)].role) + "\n";
  model_.metadata["tapedeck.state"] = state;
  if (!updates.empty()) model_.metadata["tapedeck.updates"] = updates;
}

}  // namespace tapedeck::onnx
