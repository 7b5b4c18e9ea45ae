// Tests the CUDA runtime's status. Without a GPU every call returns a clear message; with a GPU it returns real answers.
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tapedeck::kernels::cuda {
namespace {

TEST(CudaRuntime, StatusIsConsistent) {
  const CudaStatus& status = cuda_status();
#if TAPEDECK_HAS_CUDA
  EXPECT_TRUE(status.built);
#else
  EXPECT_FALSE(status.built);
#endif
  EXPECT_EQ(status.available, status.device_count > 0);
  EXPECT_EQ(status.available, status.reason.empty());
  EXPECT_TRUE(status.built || !status.available);
}

TEST(CudaRuntime, SaysWhyThereIsNoDevice) {
  const CudaStatus& status = cuda_status();
  if (status.available) GTEST_SKIP() << "this machine has " << status.device_count << " CUDA device(s)";
  EXPECT_EQ(status.reason.find('\n'), std::string::npos) << "one line";
  EXPECT_EQ(status.reason.find(status.built ? "no CUDA device: " : "built without CUDA"), 0u) << status.reason;
}

TEST(CudaRuntime, CallsFailInWordsWithoutADevice) {
  if (cuda_status().available) GTEST_SKIP() << "this machine has a CUDA device";
  DeviceProperties properties;
  Stream stream = nullptr;
  void* memory = nullptr;
  EXPECT_NE(device_properties(0, &properties), nullptr);
  EXPECT_NE(stream_create(0, &stream), nullptr);
  EXPECT_NE(device_allocate(0, 64, &memory), nullptr);
  EXPECT_NE(synchronize(nullptr), nullptr);
  EXPECT_EQ(memory, nullptr);
}

TEST(CudaRuntime, KernelsAreThereIfBuilt) {
  for (const KernelEntry& entry : kernel_table()) EXPECT_EQ(entry.kernel != nullptr, cuda_status().built) << entry.op;
}

TEST(CudaRuntime, ALaunchThatFailsIsReportedInTheCall) {
  if (!cuda_status().built) GTEST_SKIP() << cuda_status().reason;
  if (cuda_status().available) GTEST_SKIP() << "this machine has a CUDA device";
  float x = 1, y = 2;
  View inputs[2], output;  // of rank 0
  inputs[0].data = inputs[1].data = &x;
  output.data = &y;
  KernelFault fault;
  KernelCall call;
  call.inputs = inputs;
  call.outputs = &output;
  call.n_inputs = 2;
  call.n_outputs = 1;
  call.fault = &fault;
  find_kernel("add")->kernel(call);
  ASSERT_NE(fault.what.load(), nullptr);
  EXPECT_STRNE(fault.what.load(), "");
  EXPECT_NE(fault.value.load(), 0) << "the error's number";
}

TEST(CudaRuntime, ManyThreadsSeeOneStatus) {
  std::vector<const CudaStatus*> seen(8);
  std::vector<std::thread> threads;
  for (auto& slot : seen) threads.emplace_back([&slot] { slot = &cuda_status(); });
  for (std::thread& thread : threads) thread.join();
  for (const CudaStatus* status : seen) EXPECT_EQ(status, &cuda_status());
}

}  // namespace
}  // namespace tapedeck::kernels::cuda
