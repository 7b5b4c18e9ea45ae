#include <tapedeck/capture/onnx/export/model_builder.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tapedeck::onnx {

namespace {

constexpr std::size_t kMostShared = 256;  // bytes of a constant that several nodes share
// Readers of protobuf, ours among them, take 100 messages inside each other. A graph inside a node is three, and the type of a
// value in it six more.
constexpr int kMostInner = 30;

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

// ---- refusals ----

void Refusals::add(const tapedeck::Graph& graph, NodeId n, const std::string& reason) {
  const tapedeck::Node& node = graph.nodes[static_cast<std::size_t>(n)];
  if (std::find(ops_.begin(), ops_.end(), node.op->name) != ops_.end()) return;
  ops_.emplace_back(node.op->name);
  std::string place = fmt::format("node {}", n);
  if (!node.origin.site.empty()) place += fmt::format(", {}", node.origin.site.view());
  texts_.push_back(fmt::format("'{}' ({}{}{})", node.op->name, place, reason.empty() ? "" : ": ", reason));
}

void Refusals::check() const {
  if (!texts_.empty()) throw UsageError(fmt::format("cannot export: no counterpart of {}", fmt::join(texts_, ", ")));
}

// ---- the builder ----

// The parts that all graphs of a model share.
struct ModelBuilder::Whole {
  Model model;
  Refusals refusals;
  UniqueNames values, nodes;
  std::map<std::pair<std::string, std::string>, std::string> constants;
  std::int64_t node_count = 0;
  std::int64_t graphs = 0;  // that regions were
  bool draws_others = false;
  std::map<std::string, Drawn> drawn;
  std::set<std::string> unread_masks;
  int inner = 0;  // graphs inside nodes, inside each other, that are being written
};

ModelBuilder::ModelBuilder(const tapedeck::Graph& graph, bool draws_others)
    : graph_(graph), own_(std::make_unique<Whole>()), whole_(*own_), names_(graph.values.size()) {
  whole_.draws_others = draws_others;
  Model& model = whole_.model;
  model.ir_version = 10;
  model.opsets[""] = 20;
  model.producer = "tapedeck";
  model.graph.name = graph.name.str();
  count_reads();
  name_results();
  name_rest();
}

ModelBuilder::ModelBuilder(ModelBuilder& outer, NodeId holder, const tapedeck::Graph& region,
                           const std::vector<std::string>& inputs)
    : graph_(region), whole_(outer.whole_), outer_(&outer), holder_(holder), id_(++outer.whole_.graphs), names_(inputs) {
  names_.resize(region.values.size());
  count_reads();
  name_rest();
}

ModelBuilder::~ModelBuilder() = default;

Model& ModelBuilder::model() { return whole_.model; }
Refusals& ModelBuilder::refusals() { return whole_.refusals; }
std::int64_t ModelBuilder::node_count() const { return whole_.node_count; }
std::string ModelBuilder::new_name(const std::string& wanted) { return whole_.values.unique(wanted).str(); }

ModelBuilder& ModelBuilder::outermost() {
  ModelBuilder* builder = this;
  while (builder->outer_ != nullptr) builder = builder->outer_;
  return *builder;
}

bool ModelBuilder::draws_others() const { return whole_.draws_others; }
std::map<std::string, Drawn>& ModelBuilder::drawn() { return whole_.drawn; }
void ModelBuilder::add_mask(const std::string& name) { whole_.unread_masks.insert(name); }
void ModelBuilder::keep_mask(const std::string& name) { whole_.unread_masks.erase(name); }

void ModelBuilder::leave_out_masks() {
  for (Node& node : nodes_)
    if (node.outputs.size() == 2 && whole_.unread_masks.count(node.outputs[1]) > 0) node.outputs.pop_back();
}

void ModelBuilder::count_reads() {
  reads_.assign(graph_.values.size(), 0);
  for (const tapedeck::Node& node : graph_.nodes)
    for (const ValueId v : graph_.inputs(node)) ++reads_[static_cast<std::size_t>(v)];
  for (const ValueId v : graph_.outputs) ++reads_[static_cast<std::size_t>(v)];
  for (const Update& u : graph_.updates) ++reads_[static_cast<std::size_t>(u.value)];
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
}

void ModelBuilder::name_rest() {
  for (ValueId v = graph_.n_inputs + graph_.n_state; v < graph_.value_count(); ++v)
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
    if (const auto it = whole_.constants.find(key); it != whole_.constants.end()) return it->second;
  const std::string name = new_name("constant");
  whole_.model.graph.initializers.push_back(tensor_data(name, type, std::move(bytes)));
  if (shares) whole_.constants[key] = name;
  return name;
}

void ModelBuilder::describe(Node& node, const Origin& origin) {
  if (!node.name.empty()) return;
  ++whole_.node_count;
  node.name = whole_.nodes.unique(node_name(origin.path, node.op)).str();
  node.metadata["tapedeck.phase"] = phase_name(origin.phase);
  if (std::string trace = trace_of(origin.site.view()); !trace.empty())
    node.metadata["pkg.torch.onnx.stack_trace"] = std::move(trace);
}

void ModelBuilder::append(Node node, const Origin& origin) {
  describe(node, origin);
  nodes_.push_back(std::move(node));
}

void ModelBuilder::enter() {
  if (whole_.inner == kMostInner) throw Refusal{fmt::format("more than {} graphs are inside each other", kMostInner)};
  ++whole_.inner;
}
void ModelBuilder::leave() { --whole_.inner; }

void ModelBuilder::add_output(ValueId v, const std::string& name) {
  if (name_of(v) != name) append(copy_node(name_of(v), name), {});
  whole_.model.graph.outputs.push_back(value_info(name, graph_.values[static_cast<std::size_t>(v)].type));
  values_.erase(name);  // an output states its type itself
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
  leave_out_masks();
  whole_.model.graph.nodes = take_nodes();
  whole_.model.graph.values = take_values();
  whole_.model.metadata["tapedeck.state"] = state;
  if (!updates.empty()) whole_.model.metadata["tapedeck.updates"] = updates;
}

}  // namespace tapedeck::onnx
