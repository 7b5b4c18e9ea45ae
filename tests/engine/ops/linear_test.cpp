// Tests products: vectors and matrices as in NumPy, linear layers, and einsum against its definition.
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/create.h>
#include <tapedeck/engine/ops/linear.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/rearrange.h>

#include <map>
#include <random>

namespace tapedeck {
namespace {

using testing::counting;
using testing::floats_of;
using testing::here;
using testing::refusal;

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

Tensor random_f64(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  Doubles v(static_cast<std::size_t>(shape.numel()) + 1);
  for (double& x : v) x = static_cast<double>(random() % 2001) / 1000 - 1;
  return from_bytes({DType::f64, shape}, v.data());
}

TEST(Matmul, VectorsAreRowsAndColumns) {
  EXPECT_EQ(matmul(tensor({1, 2, 3}), tensor({4, 5, 6})).item(), 32);
  EXPECT_EQ(floats_of(matmul(counting({2, 3}), tensor({1, 1, 2}))), (Floats{5, 17}));
  EXPECT_EQ(floats_of(matmul(tensor({1, 2}), counting({2, 3}))), (Floats{6, 9, 12}));
  EXPECT_EQ(matmul(counting({4, 2, 3}), tensor({1, 0, 0})).shape(), (Shape{4, 2}));
  EXPECT_EQ(matmul(tensor({1, 0}), counting({4, 2, 3})).shape(), (Shape{4, 3}));
  EXPECT_EQ(matmul(counting({2, 1, 2, 3}), counting({5, 3, 1})).shape(), (Shape{2, 5, 2, 1}));
}

TEST(Linear, IsAProductAndABias) {
  EXPECT_EQ(floats_of(linear(counting({2, 2}), counting({2, 3}), tensor({10, 20, 30}))), (Floats{13, 24, 35, 19, 34, 49}));
  EXPECT_EQ(floats_of(linear(tensor({1, 2}), counting({2, 3}))), (Floats{6, 9, 12}));
  EXPECT_EQ(floats_of(linear(zeros({2, 0}), zeros({0, 2}), tensor({3, 4}))), (Floats{3, 4, 3, 4}));
}

// Compares linear() with matmul and add in f64, on sizes beyond one tile and on views with other orders of dimensions.
TEST(Linear, AgreesWithMatmulAndAdd) {
  const Tensor x = random_f64({3, 70, 300}, 1), w = random_f64({300, 270}, 2), bias = random_f64({270}, 3);
  const Doubles fused = linear(x, w, bias).to_vector<double>(), apart = add(matmul(x, w), bias).to_vector<double>();
  for (std::size_t i = 0; i < fused.size(); ++i) ASSERT_NEAR(fused[i], apart[i], 1e-11) << i;
  const Tensor turned = transpose(contiguous(transpose(x, {1, 0, 2})), {1, 0, 2});
  EXPECT_TRUE(bit_equal(linear(turned, transpose(contiguous(transpose(w, {1, 0})), {1, 0}), bias), linear(x, w, bias)));
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const Tensor x = counting({2, 3}), w = counting({4, 5}), bias = counting({4});
  EXPECT_EQ(refusal([&] { linear(here(x), w); }), "[linear] inner sizes differ: f32[2,3] x f32[4,5] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { linear(here(w), transpose_last(w), w); }),
            "[linear] bias f32[4,5] does not fit weights f32[5,4] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { linear(here(w), bias); }), "[linear] weights need two dimensions, got f32[4] (a.cpp:1)");
}

// ---- einsum ----

// einsum by its definition: every index runs through its range, and each result element sums the products. Without ellipsis
// and broadcasting.
Doubles by_definition(const std::vector<std::string>& inputs, const std::string& output, const std::vector<Tensor>& operands) {
  std::map<char, std::int64_t> size, at;
  std::vector<Doubles> data;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    for (std::size_t d = 0; d < inputs[k].size(); ++d) size[inputs[k][d]] = operands[k].size(static_cast<int>(d));
    data.push_back(operands[k].to_vector<double>());
  }
  const auto place = [&](const std::string& indices) {
    std::int64_t index = 0;
    for (char c : indices) index = index * size[c] + at[c];
    return static_cast<std::size_t>(index);
  };
  std::int64_t total = 1, results = 1;
  for (const auto& [c, n] : size) total *= n;
  for (char c : output) results *= size[c];
  Doubles out(static_cast<std::size_t>(results));
  for (std::int64_t step = 0; step < total; ++step) {
    std::int64_t rest = step;
    for (const auto& [c, n] : size) at[c] = rest % n, rest /= n;
    double product = 1;
    for (std::size_t k = 0; k < operands.size(); ++k) product *= data[k][place(inputs[k])];
    out[place(output)] += product;
  }
  return out;
}

TEST(Einsum, IsWhatTheEquationSays) {
  struct Case {
    std::vector<std::string> inputs;
    std::string output;
  };
  const std::map<char, std::int64_t> size = {{'a', 2}, {'b', 3}, {'i', 4}, {'j', 5}, {'k', 3}, {'l', 2}};
  const Case cases[] = {{{"ij", "jk"}, "ik"},
                        {{"ij", "jk"}, "ki"},
                        {{"ij"}, "ji"},
                        {{"ij"}, "j"},
                        {{"ij"}, ""},
                        {{"i", "i"}, ""},
                        {{"i", "j"}, "ij"},
                        {{"i", "j"}, ""},
                        {{"ij", "ij"}, "ij"},
                        {{"ij", "ij"}, "i"},
                        {{"bij", "bjk"}, "bik"},
                        {{"abij", "abkj"}, "abik"},
                        {{"bij", "jk"}, "bik"},
                        {{"bij", "kj"}, "kbi"},
                        {{"ii"}, "i"},
                        {{"ii"}, ""},
                        {{"iij"}, "ji"},
                        {{"iii"}, "i"},
                        {{"ii", "ij"}, "j"},
                        {{"ij", "jk", "kl"}, "il"},
                        {{"ab", "ab", "bk"}, "k"},
                        {{"i", "ij", "j"}, ""},
                        {{"aij", "l"}, "alj"},
                        {{"bi", "bj", "bk"}, "bijk"},
                        {{"ijk", "kl", "il"}, "j"},
                        {{"ij", "kl"}, "ljki"},
                        {{"", "ij"}, "ij"},
                        {{"aibj", "jbk"}, "kia"}};
  for (const Case& c : cases) {
    std::string equation;
    std::vector<Tensor> operands;
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      Shape shape;
      for (char index : c.inputs[k]) shape.sizes[shape.rank++] = size.at(index);
      operands.push_back(random_f64(shape, static_cast<unsigned>(k) + 1));
      equation += (k ? "," : "") + c.inputs[k];
    }
    SCOPED_TRACE(equation + "->" + c.output);
    const Tensor y = einsum(equation + "->" + c.output, operands);
    ASSERT_EQ(static_cast<std::size_t>(y.rank()), c.output.size());
    for (std::size_t d = 0; d < c.output.size(); ++d) EXPECT_EQ(y.size(static_cast<int>(d)), size.at(c.output[d]));
    const Doubles expected = by_definition(c.inputs, c.output, operands), got = y.to_vector<double>();
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-12) << i;
  }
}

TEST(Einsum, ImplicitResultsAndSpaces) {
  const Tensor a = counting({2, 3}), b = counting({3, 2});
  EXPECT_EQ(floats_of(einsum("ij,jk", {a, b})), floats_of(matmul(a, b)));
  EXPECT_EQ(floats_of(einsum(" b a ", {a})), floats_of(transpose(a, {1, 0})));
  EXPECT_EQ(einsum("ii", {counting({3, 3})}).item(), 12);
}

TEST(Einsum, EllipsisBroadcasts) {
  const Tensor a = random_f64({2, 1, 4, 3}, 1), b = random_f64({5, 3, 2}, 2);
  const Tensor product = einsum("...ij,...jk->...ik", {a, b});
  EXPECT_EQ(product.shape(), (Shape{2, 5, 4, 2}));
  const Doubles got = product.to_vector<double>(), expected = matmul(a, b).to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-12);
  EXPECT_TRUE(bit_equal(einsum("...ij->...ji", {a}), contiguous(transpose_last(a))));
  EXPECT_EQ(einsum("...", {a}).shape(), a.shape());
  EXPECT_EQ(einsum("i...->...", {a}).shape(), (Shape{1, 4, 3}));
  EXPECT_EQ(floats_of(einsum("ij,ij->i", {counting({2, 3}), ones({1, 3})})), (Floats{3, 12}));
  EXPECT_EQ(floats_of(einsum("ij,ij->j", {ones({1, 3}), counting({2, 3})})), (Floats{3, 5, 7}));
  EXPECT_EQ(einsum("ij,ij->", {ones({1, 3}), counting({2, 3})}).item(), 15);
}

TEST(Einsum, HasGradients) {
  Tensor a = counting({2, 3}), b = counting({3, 2});
  a.requires_grad(true);
  b.requires_grad(true);
  backward(sum(einsum("ij,jk->ki", {a, b})));
  EXPECT_EQ(floats_of(a.grad()), (Floats{1, 5, 9, 1, 5, 9}));
  EXPECT_EQ(floats_of(b.grad()), (Floats{3, 3, 5, 5, 7, 7}));
}

TEST(Einsum, RefusesEquationsThatDoNotFit) {
  const Tensor a = counting({2, 3});
  const auto text = [&](const char* equation, const std::vector<Tensor>& operands) {
    return refusal([&] { einsum(equation, operands, {"a.cpp", 1}); });
  };
  EXPECT_EQ(text("ij,jk", {a}), "[einsum] 1 operands are too few in 'ij,jk' (a.cpp:1)");
  EXPECT_EQ(text("ij", {a, a}), "[einsum] 2 operands are too many in 'ij' (a.cpp:1)");
  EXPECT_EQ(text("ijk", {a}), "[einsum] 'ijk' does not fit f32[2,3] in 'ijk' (a.cpp:1)");
  EXPECT_EQ(text("ij,jk->ik", {a, a}), "[einsum] index 'j' has sizes 3 and 2 in 'ij,jk->ik' (a.cpp:1)");
  EXPECT_EQ(text("ii->i", {a}), "[einsum] index 'i' has sizes 2 and 3 in 'ii->i' (a.cpp:1)");
  EXPECT_EQ(text("ij->ik", {a}), "[einsum] index 'k' of the result is no operand's in 'ij->ik' (a.cpp:1)");
  EXPECT_EQ(text("ij->ii", {a}), "[einsum] index 'i' occurs twice in the result in 'ij->ii' (a.cpp:1)");
  EXPECT_EQ(text("i1", {a}), "[einsum] unexpected '1' in 'i1' (a.cpp:1)");
  EXPECT_EQ(text("", {}), "[einsum] needs at least one tensor (a.cpp:1)");
}

TEST(Products, CommonCases) {
  EXPECT_EQ(dot(tensor({1, 2}), tensor({3, 4})).item(), 11);
  EXPECT_EQ(floats_of(outer(tensor({1, 2}), tensor({3, 4, 5}))), (Floats{3, 4, 5, 6, 8, 10}));
  EXPECT_EQ(floats_of(bmm(counting({2, 1, 2}), counting({2, 2, 1}))), (Floats{1, 13}));
  EXPECT_EQ(trace(counting({3, 3})).item(), 12);
  EXPECT_EQ(trace(counting({3, 3}), 1).item(), 6);
  const Tensor a = counting({2, 3, 4}), b = counting({3, 4, 2});
  EXPECT_EQ(floats_of(tensordot(a, b)), floats_of(matmul(reshape(a, {2, 12}), reshape(b, {12, 2}))));
  EXPECT_EQ(floats_of(tensordot(a, b, {2, 1}, {1, 0})), floats_of(tensordot(a, b)));
  EXPECT_EQ(tensordot(a, b, 0).rank(), 6);
  EXPECT_EQ(refusal([&] { dot(here(a), b); }), "[dot] needs 1 dimension, got f32[2,3,4] (a.cpp:1)");
  EXPECT_EQ(refusal([&] { bmm(here(a), b); }), "[bmm] batches differ: f32[2,3,4] and f32[3,4,2] (a.cpp:1)");
  EXPECT_EQ(refusal([&] {
              tensordot(here(a), b, {0, 1}, {0, 0});
            }),
            "[tensordot] cannot pair axis 1 of f32[2,3,4] with axis 0 of f32[3,4,2] (a.cpp:1)");
}

}  // namespace
}  // namespace tapedeck
