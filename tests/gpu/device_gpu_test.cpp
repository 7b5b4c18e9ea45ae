// The tests print what the GPU is, and check that the vendor's libraries open.
#include <tapedeck/kernels/cuda/dnn_api.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/rtc_api.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace tapedeck::gpu {
namespace {

namespace cuda = kernels::cuda;

class DeviceGpu : public GpuTest {
 protected:
  void SetUp() override {
    if (stand_in()) GTEST_SKIP() << "a stand-in is no GPU";
    GpuTest::SetUp();
  }
};

TEST_F(DeviceGpu, DeviceIsDescribed) {
  cuda::DeviceProperties device;
  ASSERT_EQ(cuda::device_properties(0, &device), nullptr);
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memory_bytes, 0u);
  EXPECT_GE(device.sm, 50);
  EXPECT_GT(device.multiprocessors, 0);
  std::cout << device.name << ", sm_" << device.sm << ", " << (device.memory_bytes >> 20) << " MiB, driver "
            << device.driver_version << ", runtime " << device.runtime_version << "\n";
}

// A library that is not there is a failure where a GPU is required: our own kernels would take over, and nothing would show it.
#define REQUIRE_LIBRARY(api, why)                                     \
  do {                                                                \
    if (!(api) && std::getenv("TAPEDECK_REQUIRE_GPU")) FAIL() << why; \
    if (!(api)) GTEST_SKIP() << why;                                  \
  } while (false)

TEST_F(DeviceGpu, CublasLtOpens) {
  std::string why;
  const cuda::LtApi* api = cuda::lt_api(&why);
  REQUIRE_LIBRARY(api, why);
  cuda::LtHandle handle = nullptr;
  ASSERT_EQ(api->cublasLtCreate(&handle), 0);
  EXPECT_EQ(api->cublasLtDestroy(handle), 0);
}

TEST_F(DeviceGpu, CudnnOpens) {
  std::string why;
  const cuda::DnnApi* api = cuda::dnn_api(&why);
  REQUIRE_LIBRARY(api, why);
  cuda::DnnHandle handle = nullptr;
  ASSERT_EQ(api->cudnnCreate(&handle), 0);
  EXPECT_EQ(api->cudnnDestroy(handle), 0);
}

TEST_F(DeviceGpu, NvrtcOpens) {
  std::string why;
  const cuda::RtcApi* api = cuda::rtc_api(&why);
  REQUIRE_LIBRARY(api, why);
  int major = 0, minor = 0;
  EXPECT_EQ(api->nvrtcVersion(&major, &minor), 0);
  EXPECT_GE(major, 12);
}

}  // namespace
}  // namespace tapedeck::gpu
