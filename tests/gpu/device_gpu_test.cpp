// The tests print what the GPU is, and check that the vendor's libraries open.
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <iostream>

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

TEST_F(DeviceGpu, CublasLtOpens) {
  std::string why;
  const cuda::LtApi* api = cuda::lt_api(&why);
  if (!api) GTEST_SKIP() << why;
  cuda::LtHandle handle = nullptr;
  ASSERT_EQ(api->cublasLtCreate(&handle), 0);
  EXPECT_EQ(api->cublasLtDestroy(handle), 0);
}

}  // namespace
}  // namespace tapedeck::gpu
