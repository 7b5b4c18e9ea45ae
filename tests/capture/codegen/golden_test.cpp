// Tests the text of three kernels: TAPEDECK_UPDATE_GOLDEN=1 writes the files anew.
#include <tapedeck/capture/codegen/fused_source.h>
#include <tapedeck/tests/capture/codegen/regions.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace tapedeck {
namespace {

class GoldenSource : public ::testing::TestWithParam<test::NamedRegion> {};

TEST_P(GoldenSource, IsAsItWas) {
  const test::ParsedRegion parsed(GetParam().graph);
  const std::string body = codegen::fused_source(parsed.region(), parsed.layout()).body;
  const std::string path = std::string(TAPEDECK_SOURCE_DIR "/tests/capture/codegen/") + GetParam().name + ".cu.golden";
  if (std::getenv("TAPEDECK_UPDATE_GOLDEN")) write_all(path, body);
  EXPECT_EQ(body, read_all(path));
}

INSTANTIATE_TEST_SUITE_P(Regions, GoldenSource, ::testing::ValuesIn(test::kRegions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FusedSource, DependsOnAccessAndNotOnSizesOrNames) {
  const auto body = [](const std::string& text) {
    const test::ParsedRegion parsed(text);
    return codegen::fused_source(parsed.region(), parsed.layout()).body;
  };
  const std::string first = body(R"(graph g(%x: f32[8,16], %b: f32[16]) {
  %y: f32[8,16] = fused(%x, %b) (%p: f32[8,16], %q: f32[16]) {
    %t: f32[8,16] = add(%p, %q)
    return %t
  }
  return %y
})");
  EXPECT_EQ(first, body(R"(graph h(%in: f32[3,5,40], %bias: f32[40]) {
  %out: f32[3,5,40] = fused(%in, %bias) (%a: f32[3,5,40], %c: f32[40]) {
    %sum: f32[3,5,40] = add(%a, %c)
    return %sum
  }
  return %out
})"));
  EXPECT_NE(first, body(R"(graph g(%x: f32[8,16], %b: f32[8,16]) {
  %y: f32[8,16] = fused(%x, %b) (%p: f32[8,16], %q: f32[8,16]) {
    %t: f32[8,16] = add(%p, %q)
    return %t
  }
  return %y
})"));
}

}  // namespace
}  // namespace tapedeck
