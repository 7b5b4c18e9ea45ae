// The tests that ONNX has for each of its ops: a model of one node, inputs and outputs. They are read where the package
// libonnx-testdata installs them, or from the folder that TAPEDECK_ONNX_TESTS names. Every test passes, or stands in
// conformance_skips.txt with the reason; an entry there that passes is a failure, too.
#include <tapedeck/tests/capture/onnx/onnx_data.h>

#include <tapedeck/engine/ir/error.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

std::string tests_folder() {
  const char* given = std::getenv("TAPEDECK_ONNX_TESTS");
  return given != nullptr ? given : "/usr/share/libonnx-testdata/data";
}

// The lines "NAME  REASON" of the table; a name may end in *.
std::map<std::string, std::string> skips() {
  std::map<std::string, std::string> table;
  std::ifstream file(std::string(TAPEDECK_SOURCE_DIR) + "/tests/capture/onnx/conformance_skips.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t end = line.find(' ');
    table[line.substr(0, end)] = line.substr(std::min(line.size(), line.find_first_not_of(' ', end)));
  }
  return table;
}

const std::string* reason_for(const std::map<std::string, std::string>& table, const std::string& name) {
  for (const auto& [pattern, reason] : table) {
    const bool open = pattern.ends_with('*');
    if (open ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern) return &reason;
  }
  return nullptr;
}

// How many inputs are constants: a model of one node takes its sizes as inputs, and an import must know them.
enum class Fixed { none, integers, all_but_first, all };

std::string run_with(const std::string& model, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                     Fixed fixed) {
  OnnxOptions options;
  onnx::Model read = onnx::read_model(model);
  std::vector<std::string> names;
  for (const onnx::ValueInfo& v : read.graph.inputs) names.push_back(v.name);
  std::vector<Tensor> fed;
  for (std::size_t i = 0; i < inputs.size() && i < names.size(); ++i) {
    const bool whole = !is_floating(inputs[i].dtype());
    if (fixed == Fixed::all || (fixed == Fixed::integers && whole) || (fixed == Fixed::all_but_first && i > 0))
      options.constants[names[i]] = inputs[i];
    else
      fed.push_back(inputs[i]);
  }
  for (std::size_t i = 0; i < inputs.size() && i < names.size(); ++i)
    for (int d = 0; d < inputs[i].rank(); ++d)
      if (static_cast<std::size_t>(d) < read.graph.inputs[i].shape.size() &&
          read.graph.inputs[i].shape[static_cast<std::size_t>(d)].size < 0 && !options.constants.count(names[i]))
        options.dims[names[i] + "." + std::to_string(d)] = inputs[i].size(d);
  Executor executor = make_executor(import_onnx(model, options).file);
  for (std::size_t i = 0; i < fed.size(); ++i) executor.set_input(static_cast<int>(i), fed[i]);
  const std::vector<Tensor> got = executor.run_and_outputs();
  if (got.size() < outputs.size()) return std::to_string(got.size()) + " results";
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const std::string what = difference(got[i], outputs[i], 1e-3, 1e-7); !what.empty())
      return "result " + std::to_string(i) + ": " + what;
  return {};
}

// Empty if the test passes.
std::string run_test(const fs::path& folder) {
  std::string error;
  for (Fixed fixed : {Fixed::none, Fixed::integers, Fixed::all_but_first, Fixed::all}) {
    try {
      const std::string set = (folder / "test_data_set_0").string();
      const std::string what =
          run_with((folder / "model.onnx").string(), read_pbs(set, "input_"), read_pbs(set, "output_"), fixed);
      if (!what.empty()) return what;
      return {};
    } catch (const Error& e) {
      error = e.what();
      if (error.find("known only when the model runs") == std::string::npos) return error;
    }
  }
  return error;
}

class Conformance : public testing::TestWithParam<const char*> {};

TEST_P(Conformance, EveryTestPassesOrIsInTheTable) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  const fs::path all = fs::path(tests_folder()) / GetParam();
  if (!fs::exists(all)) GTEST_SKIP() << "no tests of ONNX in " << all;
  const std::map<std::string, std::string> table = skips();
  int passed = 0, skipped = 0;
  std::set<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(all)) folders.insert(entry.path());
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string(), what = run_test(folder);
    const std::string* reason = reason_for(table, name);
    if (what.empty()) {
      ++passed;
      EXPECT_EQ(reason, nullptr) << name << " passes, but the table says: " << *reason;
    } else if (reason != nullptr) {
      ++skipped;
    } else {
      ADD_FAILURE() << name << ": " << what;
    }
  }
  RecordProperty("passed", passed);
  RecordProperty("skipped", skipped);
  std::printf("%s: %d pass, %d are in the table\n", GetParam(), passed, skipped);
}

INSTANTIATE_TEST_SUITE_P(Onnx, Conformance, testing::Values("node", "simple"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tapedeck
