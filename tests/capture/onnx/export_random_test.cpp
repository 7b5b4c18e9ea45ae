// Models that draw random numbers of their own in the place of those of Tapedeck.
#include <tapedeck/tests/capture/onnx/there_and_back.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace tapedeck {
namespace {

using Inputs = std::map<std::string, Tensor>;
constexpr OnnxExportOptions kRandom = {.external_data = false, .random = true};

class OnnxExportRandomTest : public OnnxExportTest {
 protected:
  // Records a step that ends with a new random state; the results are y0, y1, ...
  static TapeFile recorded(const std::function<Tensors(const Tensor&)>& fn, const Tensor& x) {
    next_step();  // an eager step before, so that the recording begins with no draws
    Capture capture;
    const Tensors results = fn(capture.input("x", x));
    next_step();
    for (std::size_t i = 0; i < results.size(); ++i) capture.output("y" + std::to_string(i), results[i]);
    return tape_of(capture.finish());
  }
  static Tensor ones(const Shape& shape) { return full(shape, 1); }
  std::map<std::string, int> ops_of_the_model() const {
    std::map<std::string, int> ops;
    for (const onnx::Node& node : onnx::read_model(path()).graph.nodes) ++ops[node.op];
    return ops;
  }
};

double share_of_zeros(const std::vector<double>& values) {
  return static_cast<double>(std::count(values.begin(), values.end(), 0.0)) / static_cast<double>(values.size());
}
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += (v - mean_of(values)) * (v - mean_of(values));
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// y and dy / dx of a function whose forward and backward drop the same elements.
Tensors with_gradient(const std::function<Tensor(const Tensor&)>& fn, const Tensor& x) {
  const Tensor y = fn(x);
  return {y, gradients({sum(y)}, {x})[0]};
}
Tensor leaf_of_ones(const Shape& shape) { return full(shape, 1).requires_grad(true); }

// ---- the option ----

TEST_F(OnnxExportRandomTest, WithoutTheOptionTheMessageNamesIt) {
  const TapeFile file = recorded([](const Tensor& x) { return Tensors{dropout(x, 0.5)}; }, ones({4}));
  EXPECT_NE(refusal(path(), file).find("--random lets the model draw others"), std::string::npos) << refusal(path(), file);
  EXPECT_EQ(refusal(path(), file, kRandom), "");
}

TEST_F(OnnxExportRandomTest, ADropoutWithoutBackwardComesBackAsOne) {
  const TapeFile file = recorded([](const Tensor& x) { return Tensors{dropout(x, 0.25)}; }, ones({4}));
  const TapeFile again = exported_and_imported(file, kRandom);
  EXPECT_EQ(ops_of_the_model().at("Dropout"), 1);
  EXPECT_NE(print(again.captured).find("dropout(%x, %rng) {p=0.25"), std::string::npos) << print(again.captured);
}

// ---- dropout ----

TEST_F(OnnxExportRandomTest, BackwardHasTheMaskOfForward) {
  const Tensor x = leaf_of_ones({100, 200});
  const TapeFile file = recorded(
      [](const Tensor& in) { return with_gradient([](const Tensor& v) { return dropout(dropout(v, 0.3), 0.5); }, in); }, x);
  const TapeFile again = exported_and_imported(file, kRandom);
  EXPECT_EQ(ops_of_the_model().at("Dropout"), 2);
  const Inputs got = run_once(again, {{"x", x}});
  EXPECT_EQ(difference(got.at("y1"), got.at("y0"), 1e-6, 0), "");
  EXPECT_NEAR(share_of_zeros(numbers(got.at("y0"))), 1 - 0.7 * 0.5, 0.02);
  const std::vector<double> values = numbers(got.at("y0"));
  EXPECT_NEAR(*std::max_element(values.begin(), values.end()), 1 / (0.7 * 0.5), 1e-5);
}

TEST_F(OnnxExportRandomTest, AlphaDropoutDropsInBackwardWhatItDropsInForward) {
  const Tensor x = leaf_of_ones({100, 100});
  const TapeFile file =
      recorded([](const Tensor& in) { return with_gradient([](const Tensor& v) { return alpha_dropout(v, 0.2); }, in); }, x);
  const Inputs wanted = run_once(file, {{"x", x}}), got = run_once(exported_and_imported(file, kRandom), {{"x", x}});
  const std::vector<double> y = numbers(got.at("y0")), d = numbers(got.at("y1"));
  std::set<std::pair<int, int>> pairs, wanted_pairs;  // in units of 1e-4
  const auto rounded = [](double v) { return static_cast<int>(std::lround(v * 1e4)); };
  for (std::size_t i = 0; i < y.size(); ++i) pairs.insert({rounded(y[i]), rounded(d[i])});
  for (std::size_t i = 0; i < y.size(); ++i)
    wanted_pairs.insert({rounded(numbers(wanted.at("y0"))[i]), rounded(numbers(wanted.at("y1"))[i])});
  EXPECT_EQ(pairs, wanted_pairs);
  EXPECT_NEAR(share_of_zeros(d), 0.2, 0.02);
}

// A step draws other masks than the step before, because its random state comes back, too.
TEST_F(OnnxExportRandomTest, EachStepDrawsAnew) {
  const Tensor x = ones({1000});
  const TapeFile file = recorded([](const Tensor& in) { return Tensors{dropout(in, 0.5)}; }, x);
  const TapeFile again = exported_and_imported(file, kRandom);
  Executor step = executor_of(again);
  step.set_input("x", x);
  const std::vector<double> first = numbers(step.run_and_outputs()[0]), second = numbers(step.run_and_outputs()[0]);
  EXPECT_NE(first, second);
  EXPECT_NEAR(share_of_zeros(second), 0.5, 0.08);
}

TEST_F(OnnxExportRandomTest, AStepOfTheZooTrains) {
  const Model& model = *find_model("mlp");
  const TapeFile file = tape_of(record_model(model, small_options(model)));
  const TapeFile again = exported_and_imported(file, kRandom);
  EXPECT_EQ(again.captured.updates.size(), file.captured.updates.size());
  EXPECT_GE(ops_of_the_model().at("Dropout"), 1);
  Executor step = executor_of(again);
  for (const auto& [name, value] : file.inputs) step.set_input(name, value);
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    last = outputs_by_name(again.captured, step.run_and_outputs()).at("loss").item();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.7 * first);
}

// ---- regions ----

TEST_F(OnnxExportRandomTest, BranchesOfForwardAndBackwardShareTheMask) {
  const auto fn = [](const Tensor& v) {
    return cond(
        greater(sum(v), 0), [&](const Tensors& c) { return Tensors{dropout(c[0], 0.5)}; },
        [&](const Tensors& c) { return Tensors{neg(c[0])}; }, {v})[0];
  };
  const Tensor x = leaf_of_ones({2000});
  const TapeFile file = recorded([&](const Tensor& in) { return with_gradient(fn, in); }, x);
  const Inputs got = run_once(exported_and_imported(file, kRandom), {{"x", x}});
  EXPECT_EQ(difference(got.at("y1"), got.at("y0"), 1e-6, 0), "");
  EXPECT_NEAR(share_of_zeros(numbers(got.at("y0"))), 0.5, 0.06);
}

// Pass k multiplies by 1.5 and drops; the gradient is the same product.
TEST_F(OnnxExportRandomTest, PassesDrawApartAndBackwardHasTheirMasks) {
  for (const bool reverse : {false, true}) {
    const auto fn = [reverse](const Tensor& v) {
      return scan(
                 [](const Tensors& c) {
                   return Tensors{c[0], dropout(c[1], 0.5)};
                 },
                 {full({}, 0)}, {v}, {}, {.reverse = reverse})
          .stacked[0];
    };
    const Tensor x = leaf_of_ones({3, 2000});
    const TapeFile file = recorded([&](const Tensor& in) { return with_gradient(fn, in); }, x);
    const Inputs got = run_once(exported_and_imported(file, kRandom), {{"x", x}});
    EXPECT_EQ(difference(got.at("y1"), got.at("y0"), 1e-6, 0), "");
    const std::vector<double> y = numbers(got.at("y0"));
    EXPECT_NEAR(share_of_zeros(y), 0.5, 0.04);
    const std::vector<double> one(y.begin(), y.begin() + 2000), two(y.begin() + 2000, y.begin() + 4000);
    EXPECT_NE(one, two);
  }
}

TEST_F(OnnxExportRandomTest, AMaskThatAnotherLoopDrawsAgainIsRefused) {
  const auto fn = [](const Tensor& v) {
    return scan([](const Tensors& c) { return Tensors{dropout(c[0], 0.5)}; }, {v}, {}, {},
                {.max_trips = 3, .checkpoint_every = 2})
        .carried[0];
  };
  const TapeFile file = recorded([&](const Tensor& in) { return with_gradient(fn, in); }, leaf_of_ones({4}));
  EXPECT_NE(refusal(path(), file, kRandom).find("another loop draws the same numbers"), std::string::npos);
  const TapeFile forward = recorded([&](const Tensor& in) { return Tensors{fn(in)}; }, ones({4}));
  EXPECT_EQ(refusal(path(), forward, kRandom), "");
}

TEST_F(OnnxExportRandomTest, AWhileDrawsInItsPasses) {
  const auto fn = [](const Tensor& v) {
    return Tensors{while_loop([](const Tensors& c) { return less(c[1], 3); },
                              [](const Tensors& c) {
                                return Tensors{c[0] + uniform({2000}), add(c[1], 1)};
                              },
                              {v, full({}, 0)})
                       .carried[0]};
  };
  const Tensor x = full({2000}, 0);
  const Inputs got = run_once(exported_and_imported(recorded(fn, x), kRandom), {{"x", x}});
  EXPECT_NEAR(mean_of(numbers(got.at("y0"))), 1.5, 0.06);
  EXPECT_NEAR(deviation_of(numbers(got.at("y0"))), std::sqrt(3.0 / 12), 0.05);  // three draws, each its own
}

// ---- distributions ----

TEST_F(OnnxExportRandomTest, DrawsHaveTheirDistributions) {
  const auto fn = [](const Tensor& x) {
    const Tensor p = mul(x, 0.3);
    return Tensors{uniform({5000}, -1, 3),
                   normal({5000}, 2, 0.5),
                   bernoulli(p),
                   randint(-2, 3, {5000}),
                   randperm(50, DType::i32),
                   multinomial(tensor({1, 0, 3}), 5000, true),
                   multinomial(tensor({1, 0.5, 3}), 3),
                   uniform({5000}, 0, 1, DType::bf16)};
  };
  const Tensor x = ones({5000});
  const Inputs got = run_once(exported_and_imported(recorded(fn, x), kRandom), {{"x", x}});
  const std::vector<double> u = numbers(got.at("y0")), g = numbers(got.at("y1")), b = numbers(got.at("y2")),
                            k = numbers(got.at("y3")), m = numbers(got.at("y5"));
  EXPECT_NEAR(mean_of(u), 1, 0.06);
  EXPECT_NEAR(deviation_of(u), 4 / std::sqrt(12.0), 0.05);
  EXPECT_GE(*std::min_element(u.begin(), u.end()), -1);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 3);
  EXPECT_NEAR(mean_of(g), 2, 0.03);
  EXPECT_NEAR(deviation_of(g), 0.5, 0.02);
  EXPECT_EQ(std::set<double>(b.begin(), b.end()), (std::set<double>{0, 1}));
  EXPECT_NEAR(mean_of(b), 0.3, 0.03);
  EXPECT_EQ(std::set<double>(k.begin(), k.end()), (std::set<double>{-2, -1, 0, 1, 2}));
  EXPECT_NEAR(mean_of(k), 0, 0.08);
  const std::vector<double> order = numbers(got.at("y4"));
  EXPECT_EQ(std::set<double>(order.begin(), order.end()).size(), 50u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(std::set<double>(m.begin(), m.end()), (std::set<double>{0, 2}));
  EXPECT_NEAR(mean_of(m), 1.5, 0.06);
  const std::vector<double> all = numbers(got.at("y6"));
  EXPECT_EQ(std::set<double>(all.begin(), all.end()), (std::set<double>{0, 1, 2}));
  EXPECT_EQ(got.at("y7").dtype(), DType::bf16);
}

}  // namespace
}  // namespace tapedeck
