// Steps of training on the GPU, beside the same steps on the CPU. With a stand-in the GPU is the fake runtime of
// tests/capture/replay/device, whose kernels are those of the CPU.
#pragma once

#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck::gpu {

class ReplayTest : public GpuTest {
 protected:
  void SetUp() override;
  // The runtime of the GPU, or its stand-in.
  static kernels::cuda::DeviceRuntime& runtime();
  // Fewer steps where nothing is a GPU.
  static int steps(int n) { return stand_in() ? std::min(n, 20) : n; }
};

// A recorded step with values for its inputs and its state. Running an executor of the step changes neither.
struct Step {
  Graph graph;
  std::vector<Tensor> inputs, state;
};
Step record_step(const std::string& model, const ModelOptions& options);
Step step_of(const Captured& captured);

// Gives the executor the values of the step.
void set_values(Executor* executor, const Step& step);
// An executor with the values of the step.
Executor executor_on(const std::string& device, const Step& step, const PlanOptions& options = {},
                     CudaGraphs graphs = CudaGraphs::automatic);

// All outputs and all state of an executor.
std::vector<Tensor> everything(const Executor& executor);
// The names of those that differ in a bit; empty if none.
std::string differing(const Executor& executor, const std::vector<Tensor>& got, const std::vector<Tensor>& expected);
// Runs one step on both, from the state that `gpu` has. Every result of the GPU must be within `tolerance` of the CPU's, by the
// given measure. A net may make much of little: batch norm over two numbers, or AdamW with gradients that are zero but for
// rounding. So a result that is farther away is compared with what rounding does on the CPU: the step is run there once more,
// with each weight multiplied by 1 + shake or 1 - shake, and the result of the GPU may be eight times as far away as that of
// this step. Adds a failure for each result that is not near.
struct Nearness {
  double (*distance)(const Tensor& got, const Tensor& expected);
  double tolerance, shake;
};
void run_near_the_cpu(Executor& gpu, Executor& cpu, const Nearness& nearness, const std::string& when);

// The root of the mean square of the differences, relative to that of the expected numbers; 0 for equal integers, 1 for others.
double relative_distance(const Tensor& got, const Tensor& expected);

}  // namespace tapedeck::gpu
