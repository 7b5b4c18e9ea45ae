#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <string>
#include <unordered_map>

namespace tapedeck::onnx {

namespace {

std::unordered_map<std::string_view, ExportOp> table() {
  std::unordered_map<std::string_view, ExportOp> all;
  for (auto* family : {element_exports, activation_exports, shape_exports, index_exports, reduce_exports, convolution_exports,
                       pool_exports, norm_exports, update_exports, control_exports, random_exports, refused_exports})
    for (const ExportOp& op : family()) all.emplace(op.name, op);
  return all;
}

}  // namespace

const ExportOp* find_export(std::string_view name) {
  static const std::unordered_map<std::string_view, ExportOp> all = table();
  const auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
}

void refuse_abstract(const std::string& values) {
  throw UsageError(fmt::format("cannot export: the file has no values{}; record it without --abstract", values));
}

namespace {

void give_constant(ModelBuilder& model, const tapedeck::Node& node) {
  const Literal* literal = model.graph().literal(node);
  if (literal->data == nullptr && literal->type.bytes() > 0) refuse_abstract("");
  std::string bytes(static_cast<const char*>(literal->data.get()), static_cast<std::size_t>(literal->type.bytes()));
  model.model().graph.initializers.push_back(tensor_data(model.name_of(node.first_output), literal->type, std::move(bytes)));
}

// Regions are full of aliases, which mark the values that they share with the graph around. They are no nodes of the model.
bool is_alias(const ModelBuilder& model, const tapedeck::Node& node) {
  return model.outer() != nullptr && (node.op == &ops::alias || node.op == &ops::stop_gradient);
}

}  // namespace

void export_nodes(ModelBuilder& model) {
  const tapedeck::Graph& g = model.graph();
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const tapedeck::Node& node = g.nodes[static_cast<std::size_t>(n)];
    try {
      if (g.literal(node) != nullptr)
        give_constant(model, node);
      else if (is_alias(model, node))
        model.rename(node.first_output, model.name_of(g.inputs(node)[0]));
      else
        export_node(model, n);
    } catch (const Refusal& refusal) {
      model.refusals().add(g, n, refusal.reason);
    }
  }
}

void export_node(ModelBuilder& model, NodeId node) {
  NodeExport n(model, node);
  const ExportOp* op = find_export(n.op());
  if (op == nullptr) n.refuse("");
  if (op->reason != nullptr) n.refuse(op->reason);
  if (op->write != nullptr) return n.finish(op->write(n));
  Terms operands;
  for (int i = 0; i < n.count(); ++i) operands.push_back(n[i]);
  n.finish({n.add(op->same, operands, n.out().dtype)});
}

// ---- ops without a counterpart ----

std::vector<ExportOp> refused_exports() {
  constexpr const char* kFunction = "ONNX has no such function";
  constexpr const char* kProcess = "it stands for code of another program";
  std::vector<ExportOp> all;
  for (const char* name : {"erfinv", "lgamma", "digamma", "polygamma", "ctc_loss", "ctc_loss_grad"})
    all.push_back(refused(name, kFunction));
  all.push_back(refused("fused", "a plan makes it of nodes that can be exported: export the captured graph"));
  all.push_back(refused("dynamic", "only a run knows the sizes in it"));
  all.push_back(refused("custom_gradient", "it is on tapes only"));
  for (const char* name : {"on_host", "opaque"}) all.push_back(refused(name, kProcess));
  return all;
}

}  // namespace tapedeck::onnx
