// Tests the harness itself, without a GPU: the kernels of the CPU pass, and kernels with planted mistakes do not.
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/tests/gpu/harness/check_op.h>
#include <tapedeck/tests/gpu/harness/device_step.h>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <functional>

namespace tapedeck::gpu {
namespace {

TEST(GpuHarness, TheKernelsOfTheCpuPass) {
  const std::unique_ptr<Device> device = host_device();
  int calls = 0;
  for (const kernels::cuda::KernelEntry& entry : kernels::cuda::kernel_table()) {
    const Op* op = find_op(entry.op);
    ASSERT_NE(op, nullptr) << entry.op;
    if (!device->has(*op)) continue;
    const Findings findings = check_op(*device, *op);
    EXPECT_TRUE(findings.wrong.empty()) << findings.text();
    EXPECT_GT(findings.calls, 0) << entry.op;
    calls += findings.calls;
  }
  EXPECT_GT(calls, 1000);
}

// The host, with a mistake behind every kernel.
class Planted : public Device {
 public:
  using Mistake = std::function<void(const KernelCall& call, int run)>;
  explicit Planted(Mistake mistake) : mistake_(std::move(mistake)) {}

  std::string name() const override { return "planted"; }
  unsigned char* allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  void release(unsigned char* memory) override { host_->release(memory); }
  void write(void* to, const void* from, std::size_t bytes) override { host_->write(to, from, bytes); }
  void read(void* to, const void* from, std::size_t bytes) override { host_->read(to, from, bytes); }
  bool has(const Op& op) const override { return host_->has(op); }
  bool takes_halves(const Op& op) const override { return host_->takes_halves(op); }
  std::int64_t workspace(const Op& op, const KernelCall& call) const override { return host_->workspace(op, call); }
  KernelFault* fault() override { return host_->fault(); }
  void run(const Op& op, KernelCall call) override {
    host_->run(op, call);
    mistake_(call, runs_++);
  }
  void wait() override {}

 private:
  std::unique_ptr<Device> host_ = host_device();
  Mistake mistake_;
  int runs_ = 0;
};

std::string complaint(const std::string& example, Planted::Mistake mistake) {
  Planted device(std::move(mistake));
  const DType f32 = DType::f32;
  const Findings findings = check_example(device, example, {&f32, 1});
  return findings.wrong.empty() ? "" : findings.wrong[0];
}

const char* const kSum = "sum(f32[6,50]) {axes=[1]}";

TEST(GpuHarness, NoMistakeGivesNoComplaint) {
  EXPECT_EQ(complaint(kSum, [](const KernelCall&, int) {}), "");
}

TEST(GpuHarness, AWrongElementIsFound) {
  const auto change = [](const KernelCall& call, int) { call.outputs[0].as<float>()[4] += 0.05f; };
  EXPECT_NE(complaint(kSum, change).find("element 4 of f32[6]"), std::string::npos) << complaint(kSum, change);
}

TEST(GpuHarness, AWrongBitOfACopyIsFound) {
  const auto change = [](const KernelCall& call, int) { call.outputs[0].as<unsigned char>()[8] ^= 1; };
  EXPECT_NE(complaint("concat(f32[2,3], f32[2,3]) {axis=0}", change).find("element 2"), std::string::npos);
}

TEST(GpuHarness, AnElementThatWasNotWrittenIsFound) {
  const auto forget = [](const KernelCall& call, int) {
    for (int byte = 0; byte < 4; ++byte) call.outputs[0].as<unsigned char>()[20 + byte] = 0xff;
  };
  EXPECT_NE(complaint(kSum, forget).find("element 5"), std::string::npos);
}

TEST(GpuHarness, AWriteBehindTheResultIsFound) {
  const auto write = [](const KernelCall& call, int) { call.outputs[0].as<float>()[6] = 0; };
  EXPECT_NE(complaint(kSum, write).find("byte 24 of result 0 was written"), std::string::npos) << complaint(kSum, write);
}

TEST(GpuHarness, AWriteBeforeTheResultIsFound) {
  const auto write = [](const KernelCall& call, int) { call.outputs[0].as<float>()[-1] = 0; };
  EXPECT_NE(complaint(kSum, write).find("was written"), std::string::npos);
}

TEST(GpuHarness, AWriteToAnOperandIsFound) {
  const auto write = [](const KernelCall& call, int) { call.inputs[0].as<float>()[7] = 0; };
  EXPECT_NE(complaint(kSum, write).find("byte 28 of operand 0 was written"), std::string::npos);
}

TEST(GpuHarness, AResultThatChangesFromRunToRunIsFound) {
  const auto drift = [](const KernelCall& call, int run) {
    if (run % 2 == 1) call.outputs[0].as<unsigned char>()[0] ^= 1;
  };
  EXPECT_NE(complaint(kSum, drift).find("a second run gives other bits"), std::string::npos) << complaint(kSum, drift);
}

TEST(GpuHarness, AFaultIsReported) {
  const auto fault = [](const KernelCall& call, int) { call.fault->report("index out of range", 12); };
  EXPECT_NE(complaint(kSum, fault).find("the kernel reports: index out of range (12)"), std::string::npos);
}

TEST(GpuHarness, AWriteBehindTheWorkspaceIsFound) {
  const auto write = [](const KernelCall& call, int) { static_cast<unsigned char*>(call.workspace)[call.workspace_bytes] = 0; };
  Planted device(write);
  const Op& op = *find_op("conv2d");
  Findings findings;
  for (const char* text : op.examples) {
    const DType half = DType::bf16;  // the workspace holds the operands in f32
    findings.add(check_example(device, text, {&half, 1}));
  }
  ASSERT_FALSE(findings.wrong.empty());
  EXPECT_NE(findings.wrong[0].find("behind the workspace was written"), std::string::npos) << findings.wrong[0];
}

// ---- steps near the CPU's ----

// A step that multiplies a weight by `factor`. A difference of two weights that are equal but for rounding is chaotic.
Executor product_step(double factor, bool chaotic) {
  Tensor w = full({64}, 0.75);
  w.requires_grad(true);
  const Tensor start = full({64}, 3.0);
  Capture capture("product");
  const Tensor x = capture.input("x", start);
  const Tensor y = w * factor * x;
  capture.output("y", chaotic ? (y - x * 0.75) * 1e6 : y);
  const Step step = step_of(capture.finish());
  return executor_on("cpu", step);
}

TEST(NearTheCpu, SeesAWrongResult) {
  Executor right = product_step(1.0, false), wrong = product_step(1.01, false), same = product_step(1.0, false);
  const Nearness nearness{&relative_distance, 2e-3, 0x1p-20};
  run_near_the_cpu(same, right, nearness, "the same step");
  EXPECT_NONFATAL_FAILURE(run_near_the_cpu(wrong, right, nearness, "a wrong step"), "a wrong step, output 0");
}

TEST(NearTheCpu, AllowsWhatRoundingDoes) {
  Executor right = product_step(1.0, true), rounded = product_step(1.0 + 0x1p-21, true), wrong = product_step(1.001, true);
  const Nearness nearness{&relative_distance, 2e-3, 0x1p-20};
  run_near_the_cpu(rounded, right, nearness, "a rounded step");
  EXPECT_NONFATAL_FAILURE(run_near_the_cpu(wrong, right, nearness, "a wrong step"), "a wrong step, output 0");
}

}  // namespace
}  // namespace tapedeck::gpu
