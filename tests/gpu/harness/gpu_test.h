// The fixture of tests that need a GPU. Without one each case is skipped and says why; with TAPEDECK_REQUIRE_GPU it fails. With
// TAPEDECK_GPU_STAND_IN=host the kernels of the CPU take the place of the GPU, which shows that the tests themselves work; with
// TAPEDECK_GPU_STAND_IN=emulated the CUDA kernels run in the emulator.
#pragma once

#include <tapedeck/kernels/cuda/runtime.h>
#include <tapedeck/tests/gpu/harness/device.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

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
  static std::unique_ptr<Device> open() {
    if (!stand_in()) return cuda_device();
    return std::string(std::getenv("TAPEDECK_GPU_STAND_IN")) == "emulated" ? emulated_device() : host_device();
  }

  // One device for the whole process: its memory and stream last until the end.
  static Device& device() {
    static const std::unique_ptr<Device> the_device = open();
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
