#include <tapedeck/capture/onnx/export/export_ops.h>

#include <string>
#include <unordered_map>

namespace tapedeck::onnx {

namespace {

std::unordered_map<std::string_view, ExportOp> table() {
  std::unordered_map<std::string_view, ExportOp> all;
  for (auto* family : {element_exports, activation_exports, shape_exports, index_exports, reduce_exports, convolution_exports,
                       pool_exports, norm_exports, update_exports, refused_exports})
    for (const ExportOp& op : family()) all.emplace(op.name, op);
  return all;
}

}  // namespace

const ExportOp* find_export(std::string_view name) {
  static const std::unordered_map<std::string_view, ExportOp> all = table();
  const auto it = all.find(name);
  return it == all.end() ? nullptr : &it->second;
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
  constexpr const char* kRandom = "random numbers of Tapedeck have no counterpart in ONNX";
  constexpr const char* kFunction = "ONNX has no such function";
  constexpr const char* kRegion = "graphs inside nodes are not exported";
  constexpr const char* kProcess = "it stands for code of another program";
  std::vector<ExportOp> all;
  for (const char* name : {"uniform", "normal", "trunc_normal", "randint", "randperm", "bernoulli", "multinomial", "dropout",
                           "alpha_dropout", "fold_in"})
    all.push_back(refused(name, kRandom));
  for (const char* name : {"erfinv", "lgamma", "digamma", "polygamma", "ctc_loss", "ctc_loss_grad"})
    all.push_back(refused(name, kFunction));
  for (const char* name : {"cond", "scan", "while", "dynamic", "loop_grad"}) all.push_back(refused(name, kRegion));
  all.push_back(refused("fused", "a plan makes it of nodes that can be exported: export the captured graph"));
  all.push_back(refused("custom_gradient", "it is on tapes only"));
  for (const char* name : {"on_host", "opaque"}) all.push_back(refused(name, kProcess));
  return all;
}

}  // namespace tapedeck::onnx
