// Tests compile_fused() from the region to the launch. A fake takes the place of NVRTC and of the loader of CUDA: it compiles
// the text with the compiler of the host, and a launch runs the kernel there.
#include <tapedeck/capture/codegen/fused_kernel.h>
#include <tapedeck/tests/capture/codegen/environment.h>
#include <tapedeck/tests/capture/codegen/fake_modules.h>
#include <tapedeck/tests/capture/codegen/fake_rtc.h>
#include <tapedeck/tests/capture/codegen/host_kernels.h>
#include <tapedeck/tests/capture/codegen/regions.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

using codegen::compile_fused;
using codegen::FusedRequest;
using kernels::cuda::ModuleApi;
using test::FakeModules;
using test::FusedCase;

FusedCase case_of(const char* graph, std::uint64_t seed) {
  const test::ParsedRegion parsed(graph);
  std::mt19937_64 random(seed);
  std::vector<Tensor> operands;
  const Graph& g = parsed.region();
  for (ValueId v = 0; v < g.n_inputs; ++v) operands.push_back(test::random_tensor(g.values[v].type, random));
  return FusedCase(g, "fused", operands);
}

FusedRequest request(const FusedCase& c) { return {&c.region, c.input_views, c.output_views}; }

class FusedKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access(TAPEDECK_CXX, X_OK) != 0) GTEST_SKIP() << "there is no compiler " TAPEDECK_CXX;
  }

  TemporaryFolder folder_;
  const test::Environment cache_{"TAPEDECK_KERNEL_CACHE", folder_.file("cache").c_str()};
  test::FakeRtc rtc_;
  FakeModules modules_;
  kernels::cuda::ScopedFake<kernels::cuda::RtcApi> fake_rtc_{rtc_.api};
  kernels::cuda::ScopedFake<ModuleApi> fake_modules_{modules_.api};
};

TEST_F(FusedKernels, RunAtNewAddressesOnTheStreamOfTheCall) {
  FusedCase c = case_of(test::kRegions[1].graph, 3);
  const auto made = compile_fused(std::vector{request(c)}, 90);
  ASSERT_TRUE(made[0].kernel) << made[0].why;
  for (int round = 0; round < 2; ++round) {
    FusedCase other = case_of(test::kRegions[1].graph, 3 + static_cast<std::uint64_t>(round));
    KernelFault fault;
    KernelCall call = other.call(&fault);
    call.stream = &other;
    call.attrs = made[0].kernel.get();
    codegen::run_fused_kernel(call);
    other.expect_results("a run");
    EXPECT_EQ(FakeModules::last_stream, &other);
    EXPECT_EQ(FakeModules::last_bytes, 8u * static_cast<std::size_t>(codegen::argument_places(other.layout).words));
    EXPECT_EQ(fault.what.load(), nullptr);
  }
}

TEST_F(FusedKernels, CompileEqualSourcesOnce) {
  const FusedCase a = case_of(test::kRegions[0].graph, 1), b = case_of(test::kRegions[0].graph, 2),
                  other = case_of(test::kRegions[2].graph, 1);
  {
    const auto made = compile_fused(std::vector{request(a), request(other), request(b)}, 90);
    for (const auto& result : made) EXPECT_TRUE(result.kernel) << result.why;
    EXPECT_EQ(test::FakeRtc::compilations, 2);
    EXPECT_EQ(FakeModules::loaded, 2);
  }
  EXPECT_EQ(FakeModules::loaded, 0);
  compile_fused(std::vector{request(b)}, 90);
  EXPECT_EQ(test::FakeRtc::compilations, 2) << "the disk has it";
}

TEST_F(FusedKernels, WriteOverAnOperand) {
  FusedCase c = case_of(test::kRegions[1].graph, 9);
  c.input_views[0].data = c.output_views[0].data;
  c.outputs[0].set(c.operands[0].data());
  const auto made = compile_fused(std::vector{request(c)}, 90);
  ASSERT_TRUE(made[0].kernel) << made[0].why;
  KernelFault fault;
  made[0].kernel->run(c.call(&fault));
  c.expect_results("in place");
}

TEST_F(FusedKernels, SayWhyThereIsNone) {
  const FusedCase c = case_of(R"(graph g(%x: i32[8], %y: i32[8]) {
  %r: i32[8] = fused(%x, %y) (%a: i32[8], %b: i32[8]) {
    %t: i32[8] = sub(%a, %b)
    %u: i32[8] = div(%t, %b)
    return %u
  }
  return %r
})",
                              1);
  const auto refused = compile_fused(std::vector{request(c)}, 90);
  EXPECT_FALSE(refused[0].kernel);
  EXPECT_MENTIONS(refused[0].why, "[div] a generated kernel cannot hold it");
  FakeModules::failure = "load";
  const FusedCase fine = case_of(test::kRegions[0].graph, 1);
  EXPECT_MENTIONS(compile_fused(std::vector{request(fine)}, 90)[0].why, "the image is refused");
}

TEST_F(FusedKernels, ReportARefusedLaunch) {
  const FusedCase c = case_of(test::kRegions[0].graph, 1);
  const auto made = compile_fused(std::vector{request(c)}, 90);
  ASSERT_TRUE(made[0].kernel) << made[0].why;
  FakeModules::failure = "launch";
  KernelFault fault;
  made[0].kernel->run(c.call(&fault));
  EXPECT_STREQ(fault.what.load(), "the launch is refused");
}

TEST_F(FusedKernels, LaunchNothingForNoElements) {
  const FusedCase c = case_of(R"(graph g(%x: f32[0,4]) {
  %r: f32[0,4] = fused(%x) (%a: f32[0,4]) {
    %t: f32[0,4] = exp(%a)
    return %t
  }
  return %r
})",
                              1);
  const auto made = compile_fused(std::vector{request(c)}, 90);
  ASSERT_TRUE(made[0].kernel) << made[0].why;
  KernelFault fault;
  made[0].kernel->run(c.call(&fault));
  EXPECT_EQ(FakeModules::launches, 0);
}

TEST(FusedKernelsWithoutCuda, HaveAReason) {
  if (kernels::cuda::cuda_status().available) GTEST_SKIP() << "this machine has CUDA";
  const test::Environment off("TAPEDECK_KERNEL_CACHE", "off");
  const FusedCase c = case_of(test::kRegions[0].graph, 1);
  const auto made = compile_fused(std::vector{request(c)}, 90);
  EXPECT_FALSE(made[0].kernel);
  EXPECT_NE(made[0].why, "");
}

}  // namespace
}  // namespace tapedeck
