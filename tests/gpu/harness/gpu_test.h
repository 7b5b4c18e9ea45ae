// The fixture of tests that need a GPU. Without one each case is skipped and says why; with TAPEDECK_REQUIRE_GPU it fails. With
// TAPEDECK_GPU_STAND_IN=host the kernels of the CPU take the place of the GPU: that shows that the tests themselves work.
#pragma once

#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/tests/gpu/harness/device.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace tapedeck::gpu {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (stand_in()) return;
    const kernels::cuda::CudaStatus& status = kernels::cuda::cuda_status();
    if (!status.available && std::getenv("TAPEDECK_REQUIRE_GPU")) FAIL() << status.reason;
    if (!status.available) GTEST_SKIP() << status.reason;
  }

  static bool stand_in() { return std::getenv("TAPEDECK_GPU_STAND_IN") != nullptr; }

  // One device for the whole process: its memory and stream last until the end.
  static Device& device() {
    static const std::unique_ptr<Device> the_device = stand_in() ? host_device() : cuda_device();
    return *the_device;
  }

  // Runs f. If the device is lost, no later case of this process can run: the process ends, and its caller runs the other
  // cases in a new one (check.py).
  template <class F>
  static void guarded(F&& f) {
    try {
      f();
    } catch (const DeviceLost& lost) {
      std::printf("device lost: %s\n", lost.what());
      std::fflush(stdout);
      std::_Exit(70);
    }
  }
};

}  // namespace tapedeck::gpu
