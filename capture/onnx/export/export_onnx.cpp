#include <tapedeck/capture/onnx/export_onnx.h>

#include <tapedeck/capture/onnx/export/export_ops.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

namespace onnx {

namespace {

std::string bytes_of(const Tensor& t) {
  std::string bytes(static_cast<std::size_t>(t.bytes()), '\0');
  if (!bytes.empty()) t.copy_to(bytes.data(), bytes.size(), dtype_size(t.dtype()));
  return bytes;
}

// The tensor outlives the model, so its bytes are not copied.
TensorData data_of(const std::string& name, const Tensor& t) {
  if (!t.dense() || t.bytes() == 0) return tensor_data(name, t.type(), bytes_of(t));
  TensorData data = tensor_data(name, t.type(), {});
  data.borrowed = {static_cast<const char*>(t.data()), static_cast<std::size_t>(t.bytes())};
  return data;
}

// An abstract recording has no numbers, but perhaps counters.
bool has_numbers(const TapeFile& file) {
  return std::any_of(file.state.begin(), file.state.end(), [](const auto& each) { return is_floating(each.second.dtype()); });
}

void give_state(const TapeFile& file, ModelBuilder& builder) {
  const tapedeck::Graph& g = file.captured;
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
    const auto it = file.state.find(g.value_name(v));
    if (it == file.state.end() || !it->second.defined() || it->second.abstract())
      refuse_abstract(has_numbers(file) ? fmt::format(" of '{}'", g.value_name(v)) : "");
    const Type& type = g.values[static_cast<std::size_t>(v)].type;
    if (it->second.type() != type)
      throw UsageError(fmt::format("cannot export: the value of '{}' in the file is {} instead of {}", g.value_name(v),
                                   to_string(it->second.type()), to_string(type)));
    builder.model().graph.initializers.push_back(data_of(builder.name_of(v), it->second));
  }
}

}  // namespace

}  // namespace onnx

OnnxExport export_onnx(const std::string& path, const TapeFile& file, const OnnxExportOptions& options) {
  if (!onnx::is_supported()) onnx::write_model(path, {}, false);  // says why
  const Graph& g = file.captured;
  onnx::ModelBuilder builder(g, options.random);
  for (ValueId v = 0; v < g.n_inputs; ++v)
    builder.model().graph.inputs.push_back(onnx::value_info(builder.name_of(v), g.values[static_cast<std::size_t>(v)].type));
  onnx::export_nodes(builder);
  builder.refusals().check();
  onnx::give_state(file, builder);
  builder.finish();
  OnnxExport result;
  result.nodes = builder.node_count();
  result.bytes = onnx::write_model(path, std::move(builder.model()), options.external_data);
  return result;
}

}  // namespace tapedeck
