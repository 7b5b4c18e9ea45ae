// Tests run_eagerly(), the oracle of many tests, against results by hand, and the default values that stand in for missing
// data.
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace tapedeck {
namespace {

using Floats = std::vector<float>;

TEST(RunEagerly, ComputesOutputsAndUpdates) {
  const Graph g = parse(R"(graph g(%x: f32[2]) state(%a: f32[2], %b: f32[2], %k: f32[2]) {
    %c: f32[2] = constant() {value=[10.0,20.0]}
    %y: f32[2] = add(%x, %c)
    %z: f32[2] = mul(%y, %a)
    return %z, %x
    update %a = %b, %b = %y
  })");
  const EagerResult r = run_eagerly(g, {tensor({1, 2})}, {tensor({2, 3}), tensor({5, 6}), tensor({7, 8})});
  EXPECT_EQ(r.outputs[0].to_vector<float>(), (Floats{22, 66}));
  EXPECT_EQ(r.outputs[1].to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(r.state[0].to_vector<float>(), (Floats{5, 6}));
  EXPECT_EQ(r.state[1].to_vector<float>(), (Floats{11, 22}));
  EXPECT_EQ(r.state[2].to_vector<float>(), (Floats{7, 8}));
}

TEST(RunEagerly, LeavesWhatItWasGivenAlone) {
  const Graph g = parse(R"(graph g(%x: f32[2,2]) state(%a: f32[2,2]) {
    %t: f32[2,2] = transpose(%a) {axes=[1,0]}
    return %t, %x
    update %a = %x
  })");
  Tensor x = from_vector(Floats{1, 2, 3, 4}, {2, 2}), a = from_vector(Floats{5, 6, 7, 8}, {2, 2});
  const EagerResult r = run_eagerly(g, {x}, {a});
  EXPECT_EQ(a.to_vector<float>(), (Floats{5, 6, 7, 8}));
  std::memset(a.mutable_data(), 0, 16);
  std::memset(x.mutable_data(), 0, 16);
  EXPECT_EQ(r.outputs[0].to_vector<float>(), (Floats{5, 7, 6, 8}));
  EXPECT_EQ(r.outputs[1].to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(r.state[0].to_vector<float>(), (Floats{1, 2, 3, 4}));
}

TEST(RunEagerly, RecordsNothingAndDropsValuesAfterTheirLastReader) {
  std::string text = "graph chain(%x: f32[100000]) {\n";
  for (int i = 0; i < 20; ++i)
    text += "%v" + std::to_string(i) + ": f32[100000] = neg(" + (i ? "%v" + std::to_string(i - 1) : "%x") + ")\n";
  text += "return %v19 }";
  const Graph g = parse(text);
  Tensor x = default_value({DType::f32, {100000}}, 1, "x");
  x.requires_grad(true);
  const std::int64_t before = Allocator::host().stats().bytes_in_use;
  Allocator::host().reset_peak();
  const EagerResult r = run_eagerly(g, {x}, {});
  EXPECT_LE(Allocator::host().stats().peak_bytes - before, 4 * 400000);
  EXPECT_FALSE(r.outputs[0].requires_grad());
  EXPECT_EQ(tape_stats().nodes, 0);
  EXPECT_TRUE(bit_equal(r.outputs[0], x));
}

TEST(RunEagerly, RefusesWhatDoesNotFit) {
  const Graph g = parse("graph g(%x: f32[2]) state(%s: f32[3]) { return %x }");
  EXPECT_THROW(run_eagerly(g, {}, {tensor({1, 2, 3})}), UsageError);
  EXPECT_THROW(run_eagerly(g, {tensor({1, 2})}, {}), UsageError);
  EXPECT_THROW(run_eagerly(g, {tensor({1, 2, 3})}, {tensor({1, 2, 3})}), TypeError);
  EXPECT_THROW(run_eagerly(g, {Tensor()}, {tensor({1, 2, 3})}), ExecutionError);
  EXPECT_THROW(run_eagerly(g, {abstract_tensor({DType::f32, {2}})}, {tensor({1, 2, 3})}), ExecutionError);
}

TEST(RunEagerly, FillsOpaqueValuesOfDeclaredTypes) {
  const Graph g = parse(R"(graph g(%x: u8[10]) {
    %a: u8[5], %b: f32[2,2] = opaque(%x) {us=1.0}
    %c: i64[3] = opaque(%b)
    return %a, %c
  })");
  const Tensor x = default_value({DType::u8, {10}}, 0, "x");
  const EagerResult r = run_eagerly(g, {x}, {}), again = run_eagerly(g, {x}, {});
  EXPECT_EQ(to_string(r.outputs[0].type()), "u8[5]");
  EXPECT_EQ(to_string(r.outputs[1].type()), "i64[3]");
  EXPECT_TRUE(bit_equal(r.outputs[1], again.outputs[1]));
}

TEST(RunEagerly, FaultsNameTheOpAndTheCall) {
  Graph g = parse(R"(graph g(%a: i32[2], %b: i32[2]) {
    %q: i32[2] = div(%a, %b)
    return %q
  })");
  g.nodes[0].origin.site = "train.cpp:12";
  const auto ints = [](std::vector<std::int32_t> v) { return from_vector(v, {static_cast<std::int64_t>(v.size())}); };
  try {
    run_eagerly(g, {ints({1, 2}), ints({1, 0})}, {});
    FAIL();
  } catch (const ExecutionError& e) {
    EXPECT_NE(std::string(e.what()).find("[div]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("train.cpp:12"), std::string::npos) << e.what();
  }
}

// ---- default values that stand in for missing data ----

TEST(DefaultValue, FloatsAreUniformAndDependOnSeedAndName) {
  const Type type{DType::f32, {20000}};
  const Floats v = default_value(type, 1, "x").to_vector<float>();
  double sum = 0, squares = 0;
  for (float f : v) {
    ASSERT_GE(f, -1.0f);
    ASSERT_LT(f, 1.0f);
    sum += f;
    squares += static_cast<double>(f) * f;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.02);
  EXPECT_NEAR(squares / 20000, 1.0 / 3, 0.02);
  EXPECT_TRUE(bit_equal(default_value(type, 1, "x"), default_value(type, 1, "x")));
  EXPECT_FALSE(bit_equal(default_value(type, 1, "x"), default_value(type, 2, "x")));
  EXPECT_FALSE(bit_equal(default_value(type, 1, "x"), default_value(type, 1, "y")));
  for (double d : default_value({DType::f64, {1000}}, 1, "x").to_vector<double>()) {
    ASSERT_GE(d, -1.0);
    ASSERT_LT(d, 1.0);
  }
}

TEST(DefaultValue, IntegersAndBoolsAreZero) {
  for (DType dtype : {DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const Tensor t = default_value({dtype, {7}}, 9, "n");
    std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes()));
    std::memcpy(bytes.data(), t.data(), bytes.size());
    EXPECT_EQ(bytes, std::vector<unsigned char>(bytes.size(), 0));
  }
  EXPECT_EQ(default_value({DType::f32, {0, 3}}, 1, "e").numel(), 0);
}

// Decodes a 16-bit float by the definition of the format.
double decoded(std::uint16_t h, int fraction_bits, int bias) {
  const int exponent = (h & 0x7FFF) >> fraction_bits;
  const int fraction = h & ((1 << fraction_bits) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                         : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  return h & 0x8000 ? -magnitude : magnitude;
}

TEST(DefaultValue, SixteenBitFloatsAreInRangeToo) {
  for (auto [dtype, bits, bias] : {std::tuple{DType::f16, 10, 15}, std::tuple{DType::bf16, 7, 127}}) {
    const Tensor t = default_value({dtype, {20000}}, 3, "h");
    const auto* h = static_cast<const std::uint16_t*>(t.data());
    double sum = 0, low = 1, high = -1;
    for (int i = 0; i < 20000; ++i) {
      const double value = decoded(h[i], bits, bias);
      sum += value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    EXPECT_NEAR(sum / 20000, 0, 0.02);
    EXPECT_EQ(low, -1.0);
    EXPECT_LT(high, 1.0);
    EXPECT_GT(high, 0.98);
  }
}

}  // namespace
}  // namespace tapedeck
