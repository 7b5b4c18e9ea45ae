// Results whose size only the data decide: the model states it. And the places of maxima in volumes.
#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/onnx/wire_model.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <array>

namespace tapedeck {
namespace {

constexpr int kOnnxBool = 9, kOnnxInt64 = 7;

class OnnxStatedSizes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  TapeFile import(const wire::GraphText& graph) {
    std::ofstream(path(), std::ios::binary) << wire::model(wire::graph(graph));
    return import_onnx(path()).file;
  }
  static Tensor run(const TapeFile& file, const std::vector<Tensor>& inputs) {
    Executor executor = make_executor(file);
    for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
    return executor.run_and_outputs()[0];
  }
  std::string path() const { return folder_.file("m.onnx"); }
  TemporaryFolder folder_;
};

const std::array<float, 6> kSome = {0, 2, 0, -1, 5, 0};
Tensor some() { return from_bytes({DType::f32, {2, 3}}, kSome.data()); }

TEST_F(OnnxStatedSizes, NonZeroTakesTheSizeOfItsType) {
  const wire::GraphText of_output = {
      {wire::node({"NonZero", {"x"}, {"y"}})}, {wire::value("x", {2, 3})}, {wire::value("y", {2, 3}, kOnnxInt64)}};
  EXPECT_EQ(numbers(run(import(of_output), {some()})), (std::vector<double>{0, 1, 1, 1, 0, 1}));
  const wire::GraphText between = {{wire::node({"NonZero", {"x"}, {"p"}}), wire::node({"Transpose", {"p"}, {"y"}})},
                                   {wire::value("x", {2, 3})},
                                   {wire::value("y", {})},
                                   {},
                                   {wire::value("p", {2, 3}, kOnnxInt64)}};
  EXPECT_EQ(numbers(run(import(between), {some()})), (std::vector<double>{0, 1, 1, 0, 1, 1}));
}

TEST_F(OnnxStatedSizes, ARunThatFindsAnotherNumberFails) {
  const TapeFile file =
      import({{wire::node({"NonZero", {"x"}, {"y"}})}, {wire::value("x", {2, 3})}, {wire::value("y", {2, 4}, kOnnxInt64)}});
  EXPECT_THROW(run(file, {some()}), Error);
}

TEST_F(OnnxStatedSizes, SizesThatAreNotStatedAreErrors) {
  const auto fault = [&](const std::string& type) -> std::string {
    try {
      import({{wire::node({"NonZero", {"x"}, { "y" }})}, {wire::value("x", {2, 3})}, { type }});
    } catch (const ParseError& e) {
      return e.what();
    }
    return {};
  };
  for (const std::string& type :
       {wire::value("y", {}, kOnnxInt64), wire::value("y", {2, -1}, kOnnxInt64), wire::value("y", {6}, kOnnxInt64)})
    EXPECT_NE(fault(type).find("known only when the model runs"), std::string::npos) << fault(type);
  EXPECT_NE(fault(wire::value("y", {2, 7}, kOnnxInt64)), "") << "there are six elements";
}

TEST_F(OnnxStatedSizes, CompressTakesSlicesAlongAnAxis) {
  const TapeFile file = import({{wire::node({"Compress", {"x", "c"}, {"y"}, {wire::integer("axis", 1)}})},
                                {wire::value("x", {2, 3}), wire::value("c", {3}, kOnnxBool)},
                                {wire::value("y", {2, 2})}});
  const std::array<bool, 3> condition = {false, true, true};
  EXPECT_EQ(numbers(run(file, {some(), from_bytes({DType::boolean, {3}}, condition.data())})),
            (std::vector<double>{2, 0, 5, 0}));
}

// The condition may be shorter than the axis, and without an axis the operand is flat.
TEST_F(OnnxStatedSizes, CompressTakesElementsOfTheFlatOperand) {
  const TapeFile file = import({{wire::node({"Compress", {"x", "c"}, {"y"}})},
                                {wire::value("x", {2, 3}), wire::value("c", {5}, kOnnxBool)},
                                {wire::value("y", {3})}});
  const std::array<bool, 5> condition = {true, true, false, false, true};
  EXPECT_EQ(numbers(run(file, {some(), from_bytes({DType::boolean, {5}}, condition.data())})), (std::vector<double>{0, 2, 5}));
}

// ONNX of this version has no Compress of bf16, so the type of its result is another one.
TEST_F(OnnxStatedSizes, TheExportStatesThem) {
  TapeFile file;
  file.captured = parse(R"(graph g(%x: bf16[6], %m: bool[6]) {
  %y: bf16[2] = masked_select(%x, %m) {count=2}
  %z: bf16[2] = neg(%y)
  return y=%y, z=%z
})");
  export_onnx(path(), file);
  const std::array<std::uint16_t, 6> x = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};  // 1 to 6
  const std::array<bool, 6> mask = {false, true, false, false, true, false};
  const TapeFile again = import_onnx(path()).file;
  const Tensor y = run(again, {from_bytes({DType::bf16, {6}}, x.data()), from_bytes({DType::boolean, {6}}, mask.data())});
  EXPECT_EQ(numbers(y), (std::vector<double>{2, 5}));
  EXPECT_NE(print(again.captured).find("masked_select"), std::string::npos) << print(again.captured);
}

// ---- places of maxima ----

struct Volume {
  std::int64_t depth, height, width;
  std::int64_t at(std::int64_t d, std::int64_t h, std::int64_t w) const { return (d * height + h) * width + w; }
  std::int64_t column(std::int64_t d, std::int64_t h, std::int64_t w) const { return d + depth * (h + height * w); }
};
constexpr Volume kIn{4, 5, 6}, kOut{3, 1, 4};

// Of one window of [2,3,2] with strides [2,1,2], padding [1,0,1] and dilations [1,2,1].
std::int64_t place_of_maximum(const float* x, std::int64_t od, std::int64_t oh, std::int64_t ow, bool columns_first) {
  float most = -1;
  std::int64_t place = -1;
  for (std::int64_t d = 2 * od - 1; d < 2 * od + 1; ++d)
    for (std::int64_t h = oh; h < oh + 5; h += 2)
      for (std::int64_t w = 2 * ow - 1; w < 2 * ow + 1; ++w) {
        if (d < 0 || w < 0 || d >= kIn.depth || w >= kIn.width || x[kIn.at(d, h, w)] <= most) continue;
        most = x[kIn.at(d, h, w)];
        place = columns_first ? kIn.column(d, h, w) : kIn.at(d, h, w);
      }
  return place;
}

TEST_F(OnnxStatedSizes, PlacesOfMaximaInVolumesCountThroughTheTensor) {
  constexpr std::int64_t planes = 2 * 3, volume = kIn.depth * kIn.height * kIn.width;
  std::vector<float> x(static_cast<std::size_t>(planes * volume));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 1009);
  for (const bool columns_first : {false, true}) {
    const std::vector<std::string> windows = {wire::integers("kernel_shape", {2, 3, 2}), wire::integers("strides", {2, 1, 2}),
                                              wire::integers("pads", {1, 0, 1, 1, 0, 1}),
                                              wire::integers("dilations", {1, 2, 1}),
                                              wire::integer("storage_order", columns_first ? 1 : 0)};
    const TapeFile file = import({{wire::node({"MaxPool", {"x"}, {"", "places"}, windows})},
                                  {wire::value("x", {2, 3, kIn.depth, kIn.height, kIn.width})},
                                  {wire::value("places", {})}});
    const Tensor places = run(file, {from_bytes({DType::f32, {2, 3, kIn.depth, kIn.height, kIn.width}}, x.data())});
    ASSERT_EQ(places.type(), (Type{DType::i64, {2, 3, kOut.depth, kOut.height, kOut.width}}));
    std::vector<double> wanted;
    for (std::int64_t p = 0; p < planes; ++p)
      for (std::int64_t d = 0; d < kOut.depth; ++d)
        for (std::int64_t h = 0; h < kOut.height; ++h)
          for (std::int64_t w = 0; w < kOut.width; ++w)
            wanted.push_back(static_cast<double>(p * volume + place_of_maximum(x.data() + p * volume, d, h, w, columns_first)));
    EXPECT_EQ(numbers(places), wanted);
  }
}

}  // namespace
}  // namespace tapedeck
