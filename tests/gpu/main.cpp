// The program of the tests. On a machine that must have a GPU and has none it ends with exit code 6.
#include <tapedeck/kernels/cuda/runtime.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const tapedeck::kernels::cuda::CudaStatus& status = tapedeck::kernels::cuda::cuda_status();
  if (std::getenv("TAPEDECK_REQUIRE_GPU") && !status.available) {
    std::fprintf(stderr, "gpu_check: %s\n", status.reason.c_str());
    return 6;
  }
  return RUN_ALL_TESTS();
}
