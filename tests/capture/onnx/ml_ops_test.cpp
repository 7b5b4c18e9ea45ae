// Ops of the domain ai.onnx.ml, against loops over single numbers.
#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/onnx/wire_model.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <tapedeck/engine/ir/error.h>

#include <limits>

namespace tapedeck {
namespace {

using Reals = std::vector<double>;
using Rows = std::vector<std::vector<float>>;

const Rows kRows = {{1, -2, 0.5F}, {0, 0, 0}, {-3, 4, 2}};

class MlOps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  OnnxImport import(const std::string& op, const std::vector<std::string>& attributes, const OnnxOptions& options = {},
                    std::size_t results = 1, int type = 1) {
    std::vector<std::string> names = {"y", "z"}, outputs;
    names.resize(results);
    for (const std::string& name : names) outputs.push_back(wire::value(name, {}));
    const std::string node = wire::node({op, {"x"}, names, attributes, "ai.onnx.ml"});
    const std::string bytes =
        wire::model(wire::graph({{node}, {wire::value("x", {static_cast<std::int64_t>(kRows.size()), 3}, type)}, outputs}), 20,
                    wire::bytes(8, wire::bytes(1, "ai.onnx.ml") + wire::number(2, 3)));
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << bytes;
    return import_onnx(folder_.file("m.onnx"), options);
  }
  static std::vector<Tensor> run(const OnnxImport& import, const Tensor& x) {
    Executor executor = executor_of(import.file);
    executor.set_input(0, x);
    return executor.run_and_outputs();
  }
  static Tensor tensor(const Rows& rows) {
    std::vector<float> flat;
    for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return from_bytes({DType::f32, {static_cast<std::int64_t>(rows.size()), 3}}, flat.data());
  }
  Reals result(const std::string& op, const std::vector<std::string>& attributes, const Rows& rows = kRows) {
    return numbers(run(import(op, attributes), tensor(rows))[0]);
  }
  std::string fault(const std::string& op, const std::vector<std::string>& attributes) {
    try {
      import(op, attributes);
    } catch (const ParseError& e) {
      return e.what();
    }
    return {};
  }
  // One number for each element, computed from the element, its row and its column.
  static Reals each(const std::function<double(double, const std::vector<float>&, std::size_t)>& f) {
    Reals all;
    for (const auto& row : kRows)
      for (std::size_t i = 0; i < row.size(); ++i) all.push_back(f(static_cast<double>(row[i]), row, i));
    return all;
  }
  static void expect_near(const Reals& got, const Reals& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
  }
  TemporaryFolder folder_;
};

// The dot product of a row and three coefficients from `at` on.
double product(const std::vector<float>& row, const std::vector<float>& coefficients, std::size_t at) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(coefficients[at + i]);
  return sum;
}

TEST_F(MlOps, ScalerMovesAndScalesFeatures) {
  const std::vector<float> offset = {1, 2, 3}, scale = {0.5F, 2, -1};
  expect_near(result("Scaler", {wire::reals("offset", offset), wire::reals("scale", scale)}),
              each([&](double x, const auto&, std::size_t i) {
                return (x - static_cast<double>(offset[i])) * static_cast<double>(scale[i]);
              }));
  expect_near(result("Scaler", {wire::reals("offset", {1}), wire::reals("scale", {4})}),
              each([](double x, const auto&, std::size_t) { return (x - 1) * 4; }));
}

TEST_F(MlOps, NormalizerDividesRowsByTheirNorm) {
  const auto total = [](const std::vector<float>& row, const auto& join) {
    double sum = 0;
    for (float v : row) sum = join(sum, static_cast<double>(v));
    return sum == 0 ? 1 : sum;
  };
  expect_near(result("Normalizer", {wire::text("norm", "L1")}), each([&](double x, const auto& row, std::size_t) {
                return x / total(row, [](double a, double v) { return a + std::abs(v); });
              }));
  expect_near(result("Normalizer", {wire::text("norm", "L2")}), each([&](double x, const auto& row, std::size_t) {
                return x / std::sqrt(total(row, [](double a, double v) { return a + v * v; }));
              }));
  expect_near(result("Normalizer", {wire::text("norm", "MAX")}), each([&](double x, const auto& row, std::size_t) {
                return x / total(row, [](double a, double v) { return std::max(a, v); });
              }));
}

TEST_F(MlOps, BinarizerComparesWithItsThreshold) {
  expect_near(result("Binarizer", {wire::real("threshold", 0.5F)}),
              each([](double x, const auto&, std::size_t) { return x > 0.5 ? 1 : 0; }));
}

TEST_F(MlOps, ImputerFillsIn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {7, 8, 9};
  expect_near(result("Imputer", {wire::reals("imputed_value_floats", values), wire::real("replaced_value_float", 0)}),
              each([&](double x, const auto&, std::size_t i) { return x == 0 ? static_cast<double>(values[i]) : x; }));
  expect_near(result("Imputer", {wire::reals("imputed_value_floats", {5}), wire::real("replaced_value_float", nan)},
                     {{1, nan, 2}, {nan, 0, 3}, {4, 4, 4}}),
              {1, 5, 2, 5, 0, 3, 4, 4, 4});
}

TEST_F(MlOps, LinearModelsHaveParameters) {
  const std::vector<float> weights = {1, 2, 3, -1, 0.5F, 0.25F}, bias = {0.5F, -0.5F};
  const OnnxImport read = import(
      "LinearRegressor", {wire::reals("coefficients", weights), wire::reals("intercepts", bias), wire::integer("targets", 2)});
  Reals wanted;
  for (const auto& row : kRows)
    for (std::size_t k = 0; k < 2; ++k) wanted.push_back(product(row, weights, 3 * k) + static_cast<double>(bias[k]));
  expect_near(numbers(run(read, tensor(kRows))[0]), wanted);
  ASSERT_EQ(read.parameters.size(), 2u);
  EXPECT_EQ(read.parameters[0].initializer, "y/coefficients");
  EXPECT_EQ(read.parameters[0].type, (Type{DType::f32, {2, 3}}));
  EXPECT_EQ(read.parameters[1].initializer, "y/intercepts");
}

// The gradient of the mean of squares, by hand: 2 (y - t) x / n.
TEST_F(MlOps, LinearModelsLearn) {
  const std::vector<float> weights = {1, 2, 3};
  OnnxOptions options;
  options.train = true;
  options.loss = "mse";
  const OnnxImport step = import("LinearRegressor", {wire::reals("coefficients", weights)}, options);
  Executor executor = executor_of(step.file);
  const std::vector<float> target = {1, 1, 1};
  executor.set_input(0, tensor(kRows));
  executor.set_input("target", from_bytes({DType::f32, {3, 1}}, target.data()));
  executor.run_and_outputs();
  Reals wanted;
  for (std::size_t i = 0; i < 3; ++i) {
    double slope = 0;
    for (const auto& row : kRows) slope += 2 * (product(row, weights, 0) - 1) * static_cast<double>(row[i]) / 3;
    wanted.push_back(static_cast<double>(weights[i]) - 0.01 * slope);
  }
  expect_near(numbers(executor.state(step.parameters.at(0).name)), wanted);
}

TEST_F(MlOps, ClassifiersGiveLabelsAndProbabilities) {
  const std::vector<float> weights = {1, 0, 0, 0, 1, 0, 0, 0, 1}, bias = {0.1F, 0.2F, 0.3F};
  const std::vector<Tensor> got =
      run(import("LinearClassifier",
                 {wire::reals("coefficients", weights), wire::reals("intercepts", bias),
                  wire::integers("classlabels_ints", {10, 20, 30}), wire::text("post_transform", "SOFTMAX")},
                 {}, 2),
          tensor(kRows));
  EXPECT_EQ(numbers(got[0]), (Reals{10, 30, 20}));
  Reals wanted;
  for (const auto& row : kRows) {
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k) sum += std::exp(static_cast<double>(row[k] + bias[k]));
    for (std::size_t k = 0; k < 3; ++k) wanted.push_back(std::exp(static_cast<double>(row[k] + bias[k])) / sum);
  }
  expect_near(numbers(got[1]), wanted);
}

TEST_F(MlOps, OneScoreStandsForTwoClasses) {
  const std::vector<float> weights = {1, 1, 1};
  for (const char* kind : {"NONE", "LOGISTIC"}) {
    const std::vector<Tensor> got = run(import("LinearClassifier",
                                               {wire::reals("coefficients", weights), wire::reals("intercepts", {0.25F}),
                                                wire::integers("classlabels_ints", {5, 6}), wire::text("post_transform", kind)},
                                               {}, 2),
                                        tensor(kRows));
    EXPECT_EQ(numbers(got[0]), (Reals{5, 6, 6}));
    Reals wanted;
    for (const auto& row : kRows) {
      const double score = product(row, weights, 0) + 0.25;
      const double second = std::string(kind) == "NONE" ? score : 1 / (1 + std::exp(-score));
      wanted.insert(wanted.end(), {1 - second, second});
    }
    expect_near(numbers(got[1]), wanted);
  }
}

TEST_F(MlOps, SupportVectorsRegress) {
  const std::vector<float> vectors = {1, 0, 0, 0, 2, 1}, weights = {0.5F, -1.5F};
  constexpr double kGamma = 0.25, kOffset = 1, kDegree = 3;
  const auto distance = [&](const std::vector<float>& row, std::size_t v) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += std::pow(static_cast<double>(row[i] - vectors[3 * v + i]), 2);
    return sum;
  };
  for (const std::string kind : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    SCOPED_TRACE(kind);
    Reals wanted;
    for (const auto& row : kRows) {
      double y = 0.125;
      for (std::size_t v = 0; v < 2; ++v) {
        const double p = product(vectors.empty() ? row : row, vectors, 3 * v), line = kGamma * p + kOffset;
        const double alike = kind == "LINEAR" ? p
                             : kind == "POLY" ? std::pow(line, kDegree)
                             : kind == "RBF"  ? std::exp(-kGamma * distance(row, v))
                                              : std::tanh(line);
        y += static_cast<double>(weights[v]) * alike;
      }
      wanted.push_back(y);
    }
    expect_near(result("SVMRegressor", {wire::text("kernel_type", kind), wire::reals("kernel_params", {0.25F, 1, 3}),
                                        wire::reals("support_vectors", vectors), wire::reals("coefficients", weights),
                                        wire::reals("rho", {0.125F}), wire::integer("n_supports", 2)}),
                wanted);
  }
  Reals wanted;
  for (const auto& row : kRows) wanted.push_back(product(row, {1, 2, 3}, 0) + 0.5 > 0 ? 1 : -1);
  expect_near(result("SVMRegressor",
                     {wire::reals("coefficients", {1, 2, 3}), wire::reals("rho", {0.5F}), wire::integer("one_class", 1)}),
              wanted);
}

TEST_F(MlOps, LabelsAreEncoded) {
  const std::vector<std::int64_t> ids = {3, 1, 7, 7, 5, 1, 9, 3, 3};
  const Tensor x = from_bytes({DType::i64, {3, 3}}, ids.data());
  const std::vector<std::string> map = {wire::integers("keys_int64s", {1, 3, 7}),
                                        wire::reals("values_floats", {0.5F, 1.5F, 2.5F}), wire::real("default_float", -4)};
  EXPECT_EQ(numbers(run(import("LabelEncoder", map, {}, 1, 7), x)[0]), (Reals{1.5, 0.5, 2.5, 2.5, -4, 0.5, -4, 1.5, 1.5}));
  const Tensor rows = run(import("OneHotEncoder", {wire::integers("cats_int64s", {3, 7})}, {}, 1, 7), x)[0];
  EXPECT_EQ(rows.type(), (Type{DType::f32, {3, 3, 2}}));
  EXPECT_EQ(numbers(rows), (Reals{1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0}));
}

TEST_F(MlOps, ScoresStayATensorWhereTheModelMakesMaps) {
  const OnnxImport read = import("ZipMap", {wire::integers("classlabels_int64s", {0, 1, 2})});
  EXPECT_EQ(numbers(run(read, tensor(kRows))[0]), each([](double x, const auto&, std::size_t) { return x; }));
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_NE(read.notes[0].find("ZipMap"), std::string::npos);
}

TEST_F(MlOps, RefusesWithAReason) {
  const auto expect_in = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  };
  expect_in(fault("TreeEnsembleRegressor", {}), "a tree asks one question after another");
  expect_in(fault("Forest", {}), "ONNX has no such op");
  expect_in(fault("LinearClassifier", {wire::reals("coefficients", {1, 2, 3}), wire::reals("intercepts", {1})}),
            "one label for each score");
  expect_in(fault("LinearRegressor", {wire::reals("coefficients", {1, 2, 3, 4})}),
            "one coefficient for each score and feature");
  expect_in(fault("LinearRegressor", {wire::reals("coefficients", {1, 2, 3}), wire::integer("targets", 0)}),
            "operand 1 is missing");
  expect_in(fault("LinearRegressor", {wire::reals("coefficients", {1, 2, 3}), wire::integer("targets", -1)}),
            "operand 1 is missing");
  expect_in(fault("Scaler", {wire::reals("offset", {1, 2})}), "one number for each feature in 'offset'");
  expect_in(fault("SVMRegressor", {wire::reals("rho", {1}), wire::integer("n_supports", std::int64_t{1} << 62)}),
            "one coefficient for each support vector");
  expect_in(fault("OneHotEncoder", {wire::integers("cats_strings", {})}), "texts are not supported");
}

}  // namespace
}  // namespace tapedeck
