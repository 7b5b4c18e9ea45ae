// Runs kernels that are compiled at run time (capture/codegen) on a GPU. The oracle is the CPU: the ops of the region one by
// one must give the same bits. The ops are those that no math library computes. Without a GPU every case is skipped and says
// why; with TAPEDECK_REQUIRE_GPU it fails instead.
#include <tapedeck/capture/codegen/fused_kernel.h>
#include <tapedeck/kernels/cuda/rtc_api.h>
#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/tests/capture/codegen/random_region.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

namespace cuda = kernels::cuda;
using test::FusedCase;

#define CHECK_CUDA(call)                              \
  do {                                                \
    const char* error = (call);                       \
    ASSERT_EQ(error, nullptr) << #call ": " << error; \
  } while (false)

class FusedGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!cuda::cuda_status().available)
      why = cuda::cuda_status().reason;
    else
      cuda::rtc_api(&why);
    if (why.empty()) {
      CHECK_CUDA(cuda::device_properties(0, &device_));
      CHECK_CUDA(cuda::stream_create(0, &stream_));
    } else if (std::getenv("TAPEDECK_REQUIRE_GPU")) {
      FAIL() << why;
    } else {
      GTEST_SKIP() << why;
    }
  }
  void TearDown() override {
    if (stream_) cuda::stream_destroy(stream_);
  }

  std::vector<codegen::FusedResult> compile(const std::vector<FusedCase>& cases) {
    std::vector<codegen::FusedRequest> requests;
    for (const FusedCase& c : cases) requests.push_back({&c.region, c.input_views, c.output_views});
    return codegen::compile_fused(requests, device_.sm);
  }

  // Runs the kernel on copies that begin `shift` elements behind an aligned address.
  void run(const codegen::FusedKernel& kernel, FusedCase& c, std::int64_t shift) {
    std::vector<void*> memory;
    const auto send = [&](test::Stored& s, View* v) {
      void* at = nullptr;
      const std::size_t offset = static_cast<std::size_t>(shift) * dtype_size(v->dtype);
      CHECK_CUDA(cuda::device_allocate(0, s.bytes.size() + offset, &at));
      memory.push_back(at);
      v->data = static_cast<char*>(at) + offset;
      CHECK_CUDA(cuda::copy_to_device(v->data, s.bytes.data(), s.bytes.size(), stream_));
    };
    c.forget_results();
    for (std::size_t k = 0; k < c.inputs.size(); ++k) send(c.inputs[k], &c.input_views[k]);
    for (std::size_t k = 0; k < c.outputs.size(); ++k) send(c.outputs[k], &c.output_views[k]);
    KernelFault fault;
    KernelCall call = c.call(&fault);
    call.stream = stream_;
    kernel.run(call);
    EXPECT_EQ(fault.what.load(), nullptr) << fault.what.load();
    for (std::size_t k = 0; k < c.outputs.size(); ++k)
      CHECK_CUDA(cuda::copy_to_host(c.outputs[k].bytes.data(), c.output_views[k].data, c.outputs[k].bytes.size(), stream_));
    CHECK_CUDA(cuda::synchronize(stream_));
    for (void* at : memory) CHECK_CUDA(cuda::device_free(at));
    c.expect_results(fmt::format("{}, {} elements behind an aligned address", c.name, shift));
  }

  cuda::DeviceProperties device_;
  cuda::Stream stream_ = nullptr;
};

TEST_F(FusedGpu, RandomRegionsEqualTheirOpsOneByOne) {
  std::vector<FusedCase> cases;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    cases.push_back(test::RandomRegion(seed, true).make(fmt::format("region {}", seed)));
  const auto began = std::chrono::steady_clock::now();
  const auto made = compile(cases);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::cout << cases.size() << " kernels in " << took.count() << " ms\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSERT_TRUE(made[i].kernel) << made[i].why;
    for (const std::int64_t shift : {0, 1}) run(*made[i].kernel, cases[i], shift);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tapedeck
