// Models that PyTorch, JAX, Keras and scikit-learn exported, with their outputs, losses and gradients (models/README.md).
#include <tapedeck/tests/capture/onnx/onnx_data.h>

#include <tapedeck/capture/file/captured_file.h>

#include <fstream>
#include <map>

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(onnx_models()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ExportedModel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  std::string folder() const { return onnx_models() + "/" + GetParam(); }
  std::string model() const { return folder() + "/model.onnx"; }
  OnnxOptions options() const {
    OnnxOptions o;
    if (GetParam() == "resnet_block_dynamic") o.dims = {{"batch", 3}};
    return o;
  }
};

TEST_P(ExportedModel, ComputesWhatItsFrameworkComputes) {
  const std::vector<Tensor> inputs = read_pbs(folder() + "/inputs"), outputs = read_pbs(folder() + "/outputs");
  const OnnxImport import = import_onnx(model(), options());
  if (outputs.empty()) GTEST_SKIP() << "the model draws random numbers";
  Executor executor = executor_of(import.file);
  for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
  const std::vector<Tensor> got = executor.run_and_outputs();
  ASSERT_GE(got.size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(difference(got[i], outputs[i], 1e-5, 1e-5), "");
}

// A step of SGD moves a parameter by -0.01 times its gradient.
TEST_P(ExportedModel, HasTheGradientsOfItsFramework) {
  const std::string training = folder() + "/training";
  if (!fs::exists(training)) GTEST_SKIP() << "no gradients are stored for this model";
  OnnxOptions o = options();
  o.train = true;
  std::ifstream(training + "/loss.txt") >> o.loss;
  const OnnxImport import = import_onnx(model(), o);
  std::map<std::string, std::string> names;
  std::map<std::string, std::vector<double>> before;
  for (const OnnxImport::Parameter& p : import.parameters) {
    names[p.initializer] = p.name;
    before[p.name] = numbers(import.file.state.at(p.name));
  }
  constexpr double kRate = 0.01;
  Executor executor = executor_of(import.file);
  const std::vector<Tensor> inputs = read_pbs(folder() + "/inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
  executor.set_input("target", read_pb(training + "/target.pb"));
  const std::vector<Tensor> results = executor.run_and_outputs();
  EXPECT_EQ(difference(results[0], read_pb(training + "/loss.pb"), 1e-5, 1e-6), "");
  int compared = 0;
  for (int i = 0;; ++i) {
    const std::string path = training + "/gradient_" + std::to_string(i) + ".pb";
    if (!fs::exists(path)) break;
    const onnx::TensorData data = onnx::read_tensor(path);
    ASSERT_TRUE(names.count(data.name)) << data.name << " is no parameter";
    const std::vector<double> wanted = numbers(onnx::tensor_of(data, path)), was = before[names[data.name]];
    const std::vector<double> is = numbers(executor.state(names[data.name]));
    double length = 0;
    for (double g : wanted) length = std::max(length, std::abs(g));
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      // The step itself is rounded to the precision of the parameter.
      const double rounding = std::abs(was[k]) * 1.2e-7 / kRate;
      ASSERT_NEAR((was[k] - is[k]) / kRate, wanted[k], 1e-4 * length + 2 * rounding + 1e-6) << data.name << " " << k;
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Classifiers of scikit-learn give labels and then probabilities, which a loss must not take for logits.
TEST(OnnxClassifiers, HaveTheLossOfTheirProbabilities) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  for (const char* name : {"sklearn_mlp_classifier", "sklearn_mlp_binary", "sklearn_logistic", "sklearn_logistic_binary"}) {
    SCOPED_TRACE(name);
    const std::string folder = onnx_models() + "/" + name;
    const OnnxImport step = import_onnx(folder + "/model.onnx", {.train = true, .loss = "cross_entropy"});
    const Tensor probabilities = read_pbs(folder + "/outputs").at(1);
    const std::vector<double> p = numbers(probabilities);
    const auto rows = static_cast<std::size_t>(probabilities.size(0)),
               classes = static_cast<std::size_t>(probabilities.size(1));
    std::vector<std::int64_t> target;
    double wanted = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      target.push_back(static_cast<std::int64_t>(i % classes));
      wanted -= std::log(p[i * classes + i % classes]) / static_cast<double>(rows);
    }
    Executor executor = executor_of(step.file);
    executor.set_input(0, read_pbs(folder + "/inputs").at(0));
    executor.set_input("target", from_bytes({DType::i64, {probabilities.size(0)}}, target.data()));
    EXPECT_NEAR(executor.run_and_outputs().at(0).item(), wanted, 1e-4 * wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Onnx, ExportedModel, ::testing::ValuesIn(model_names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tapedeck
