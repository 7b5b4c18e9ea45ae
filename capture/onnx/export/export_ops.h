// The table of ops that can be exported. An op is one entry: its name, and either the one op of ONNX that it is, or a function
// that composes it, or the reason why it cannot be exported. Families stand in files of their own (export_*.cpp).
#pragma once

#include <tapedeck/capture/onnx/export/node_export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::onnx {

struct ExportOp {
  const char* name;
  const char* same = nullptr;             // the op of ONNX with the same operands and the same results
  Terms (*write)(NodeExport&) = nullptr;  // the results; those that nothing reads may be empty
  const char* reason = nullptr;           // why there is no counterpart
};

inline ExportOp same(const char* name, const char* onnx) { return {name, onnx}; }
inline ExportOp composed(const char* name, Terms (*write)(NodeExport&)) { return {name, nullptr, write}; }
inline ExportOp refused(const char* name, const char* reason) { return {name, nullptr, nullptr, reason}; }

const ExportOp* find_export(std::string_view name);  // null: nothing is known of the op
// Appends the nodes that take the place of a node of the graph. Throws Refusal.
void export_node(ModelBuilder& model, NodeId node);
// Appends those of all nodes. The refusals go into those of the model. Regions are exported by functions of the table that call
// this again, as deep as regions are inside each other, of which ModelBuilder::enter() takes so many.
void export_nodes(ModelBuilder& model);
// Throws UsageError, which says that a file without `values` cannot be exported.
[[noreturn]] void refuse_abstract(const std::string& values);

std::vector<ExportOp> element_exports();
std::vector<ExportOp> activation_exports();
std::vector<ExportOp> shape_exports();
std::vector<ExportOp> index_exports();
std::vector<ExportOp> reduce_exports();
std::vector<ExportOp> convolution_exports();
std::vector<ExportOp> pool_exports();
std::vector<ExportOp> norm_exports();
std::vector<ExportOp> update_exports();
std::vector<ExportOp> control_exports();
std::vector<ExportOp> random_exports();
std::vector<ExportOp> refused_exports();

}  // namespace tapedeck::onnx
