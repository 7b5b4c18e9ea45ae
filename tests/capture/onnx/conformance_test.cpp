// The tests that ONNX has for each of its ops: a model of one node, inputs and outputs. They are read where the package
// libonnx-testdata installs them, or from the folder that TAPEDECK_ONNX_TESTS names. Every test passes, or stands in
// conformance_skips.txt with the reason; an entry there that passes is a failure, too.
#include <tapedeck/tests/capture/onnx/onnx_data.h>

#include <tapedeck/engine/ir/error.h>

#include <fstream>
#include <set>
#include <sstream>

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// The lines of the table.
struct Skip {
  std::string kind, name, reason;
  int failing = 0, passing = 0;
  bool is_of(const std::string& test, const std::string& what) const {
    if (kind == "type") return what.find("of type " + name + ",") != std::string::npos;
    return name.ends_with('*') ? test.starts_with(name.substr(0, name.size() - 1)) : test == name;
  }
};

std::vector<Skip> skips() {
  std::vector<Skip> table;
  std::ifstream file(std::string(TAPEDECK_SOURCE_DIR) + "/tests/capture/onnx/conformance_skips.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Skip skip;
    words >> skip.kind >> skip.name >> std::ws;
    std::getline(words, skip.reason);
    EXPECT_TRUE((skip.kind == "test" || skip.kind == "type") && !skip.reason.empty()) << line;
    table.push_back(skip);
  }
  return table;
}

// The inputs that are constants: a model of one node takes its sizes as inputs, and an import must know them.
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
  Executor executor = executor_of(import_onnx(model, options).file);
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

class Conformance : public ::testing::TestWithParam<const char*> {};

TEST_P(Conformance, EveryTestPassesOrIsInTheTable) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  const fs::path all = fs::path(onnx_conformance_tests()) / GetParam();
  if (!fs::exists(all)) GTEST_SKIP() << "no tests of ONNX in " << all;
  std::vector<Skip> table = skips();
  int passed = 0, lacks_op = 0, listed = 0;
  std::set<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(all)) folders.insert(entry.path());
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string(), what = run_test(folder);
    const auto skip = std::find_if(table.begin(), table.end(), [&](const Skip& s) { return s.is_of(name, what); });
    if (skip != table.end()) ++(what.empty() ? skip->passing : skip->failing);
    if (what.empty())
      ++passed;
    else if (skip != table.end())
      ++listed;
    else if (what.find("this op is not supported: ") != std::string::npos)
      ++lacks_op;
    else
      ADD_FAILURE() << name << ": " << what;
  }
  for (const Skip& s : table)
    EXPECT_TRUE(s.failing > 0 || s.passing == 0) << "all tests of the line '" << s.name << "' pass: it has to go";
  std::printf("%s: %d pass, %d are in the table, %d are of ops that Tapedeck lacks\n", GetParam(), passed, listed, lacks_op);
}

INSTANTIATE_TEST_SUITE_P(Onnx, Conformance, ::testing::Values("node", "simple"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tapedeck
