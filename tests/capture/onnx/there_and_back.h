// Graphs that are exported and imported again, and run.
#pragma once

#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/engine/ir/error.h>

#include <map>
#include <string>
#include <vector>

namespace tapedeck {

class OnnxExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  TapeFile exported_and_imported(const TapeFile& file, const OnnxExportOptions& options = {}) const {
    export_onnx(path(), file, options);
    return import_onnx(path()).file;
  }
  std::string path() const { return folder_.file("model.onnx"); }
  TemporaryFolder folder_;
};

inline std::map<std::string, Tensor> outputs_by_name(const Graph& g, const std::vector<Tensor>& values) {
  std::map<std::string, Tensor> all;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) all[g.output_names[i].str()] = values[i];
  return all;
}

// The outputs of one run, and the state after it as "name.next". `inputs` may name more than the graph has.
inline std::map<std::string, Tensor> run_once(const TapeFile& file, const std::map<std::string, Tensor>& inputs) {
  Executor executor = executor_of(file);
  const Graph& g = file.captured;
  for (ValueId v = 0; v < g.n_inputs; ++v) executor.set_input(g.value_name(v), inputs.at(g.value_name(v)));
  std::map<std::string, Tensor> results = outputs_by_name(g, executor.run_and_outputs());
  for (const Update& u : g.updates) results[g.value_name(u.state) + ".next"] = executor.state(g.value_name(u.state));
  return results;
}

// The message of the export, or nothing.
inline std::string refusal(const std::string& path, const TapeFile& file, const OnnxExportOptions& options = {}) {
  try {
    export_onnx(path, file, options);
    return {};
  } catch (const UsageError& e) {
    return e.what();
  }
}

}  // namespace tapedeck
