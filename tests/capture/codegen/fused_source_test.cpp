// Tests generated kernels on the host: their results have the bits of the CPU kernels, op by op.
#include <tapedeck/capture/codegen/compile.h>
#include <tapedeck/kernels/cuda/rtc_api.h>
#include <tapedeck/tests/capture/codegen/host_kernels.h>
#include <tapedeck/tests/capture/codegen/random_region.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tapedeck {
namespace {

using test::append;
using test::FusedCase;
using test::give;
using test::RandomRegion;

// ---- every op ----

Graph region_of(const testing::Example& e, const std::vector<Tensor>& operands) {
  Graph g;
  std::vector<ValueId> inputs;
  for (const Tensor& t : operands) inputs.push_back(g.add_input(fmt::format("x{}", inputs.size()), t.type()));
  give(&g, append(&g, *e.op, inputs, e.attrs()));
  return g;
}

bool has_kernel(const Op& op) {
  return op.is(kElementwise) && !op.is(kEffect) && op.n_regions == 0 && std::string_view(op.name) != "fused";
}

// Adds the example for one floating type, unless a generated kernel cannot hold it: then its op reports faults.
void add_example(const testing::Example& e, DType real, std::vector<FusedCase>* cases) {
  const std::vector<Tensor> operands = testing::make_operands(e, real, 5);
  Graph region = region_of(e, operands);
  if (region.values[region.outputs[0]].type.numel() == 0) return;
  FusedCase made(std::move(region), fmt::format("case_{}", cases->size()), operands);
  try {
    codegen::fused_source(made.region, made.layout);
  } catch (const DeviceError&) {
    const std::set<std::string> refused = {"div", "pow", "remainder", "fmod", "floor_divide", "left_shift", "right_shift"};
    EXPECT_TRUE(refused.count(e.op->name)) << e.text;
    EXPECT_FALSE(is_floating(operands[0].dtype())) << e.text;
    return;
  }
  cases->push_back(std::move(made));
}

class FusedOps : public ::testing::TestWithParam<DType> {};

TEST_P(FusedOps, HaveTheBitsOfTheirCpuKernels) {
  std::vector<FusedCase> cases;
  for (const Op* op : testing::chosen_ops()) {
    if (!has_kernel(*op)) continue;
    for (const char* text : op->examples) {
      const testing::Example e = testing::parse_example(*op, text);
      if (testing::usable_real(e, GetParam()) != GetParam()) continue;
      testing::guarded(*op, text, [&] { add_example(e, GetParam(), &cases); });
    }
  }
  EXPECT_GT(cases.size(), 80u);
  test::check_on_host(cases);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedOps, ::testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& info) { return dtype_name(info.param); });

// The prelude has the names that the functors use: NVRTC, which has no headers, compiles the first example of every op.
TEST(FusedSource, NvrtcTakesEveryOp) {
  std::string why;
  if (!kernels::cuda::rtc_api(&why)) GTEST_SKIP() << why;
  std::vector<FusedCase> cases;
  for (const Op* op : testing::chosen_ops()) {
    if (!has_kernel(*op) || op->examples.empty()) continue;
    testing::guarded(*op, op->name, [&] { add_example(testing::parse_example(*op, op->examples[0]), DType::f32, &cases); });
  }
  std::vector<codegen::FusedSource> sources;
  for (FusedCase& c : cases) {
    c.layout.lanes = 1;  // one kernel of each
    sources.push_back(codegen::fused_source(c.region, c.layout, c.name));
  }
  EXPECT_GT(sources.size(), 80u);
  const std::string ptx = codegen::compile_source(codegen::complete_text(sources), 999, codegen::KernelCache("")).image;
  for (const FusedCase& c : cases) EXPECT_NE(ptx.find(".entry " + c.name + "_plain("), std::string::npos) << c.name;
}

// ---- random regions ----

TEST(FusedSource, RandomRegionsHaveTheBitsOfTheirOpsOneByOne) {
  std::vector<FusedCase> cases;
  for (std::uint64_t seed = 0; seed < 120; ++seed)
    cases.push_back(RandomRegion(seed, seed % 2 == 0).make(fmt::format("region_{}", seed)));
  const auto wide = std::count_if(cases.begin(), cases.end(), [](const FusedCase& c) { return c.layout.lanes > 1; });
  EXPECT_GT(wide, 20);
  EXPECT_LT(wide, 110);
  test::check_on_host(cases);
}

// A conversion to f32 and back would change the bits of such a NaN; these ops move bytes only.
TEST(FusedSource, MovesHalvesWithTheirBits) {
  std::vector<FusedCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<std::uint16_t> bits = {0x7c01, 0xfe01, 0x7f81, 0xffc3, 0x0001, 0x8000, 0x7fff, 0x3c00};
    const Tensor x = from_bytes({dtype, {8}}, bits.data());
    const Tensor mask = greater(cast(arange(0, 8, 1, DType::f32), DType::f32), 3);
    Graph g;
    const ValueId m = g.add_input("m", mask.type()), a = g.add_input("a", x.type());
    const ValueId copied = append(&g, ops::copy, {a});
    give(&g, append(&g, ops::where, {m, copied, a}));
    cases.emplace_back(std::move(g), dtype_name(dtype), std::vector<Tensor>{mask, x});
  }
  test::check_on_host(cases);
  if (IsSkipped()) return;
  for (FusedCase& c : cases)
    c.outputs[0].for_elements([&](std::int64_t i, const unsigned char* got) {
      EXPECT_EQ(std::memcmp(got, static_cast<const unsigned char*>(c.operands[1].data()) + 2 * i, 2), 0) << c.name << ", " << i;
    });
}

}  // namespace
}  // namespace tapedeck
