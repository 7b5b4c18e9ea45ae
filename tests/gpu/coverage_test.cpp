// The tests compare the ops with the kernels for the device. They need no GPU.
#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/device_schedule.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/kernel_table.h>

#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>

namespace tapedeck {
namespace {

namespace cuda = kernels::cuda;

TEST(GpuCoverage, EveryRowIsAnOp) {
  for (const cuda::KernelEntry& entry : cuda::kernel_table()) EXPECT_NE(find_op(entry.op), nullptr) << entry.op;
}

TEST(GpuCoverage, OpsWithAKernel) {
  int with = 0, all = 0;
  std::string without;
  for (const Op* op : all_ops()) {
    if (op->n_regions > 0 || op->is(kHostCall) || op->is(kPlanOnly) || !op->kernels[0]) continue;
    ++all;
    if (cuda::find_kernel(op->name))
      ++with;
    else
      without += std::string(" ") + op->name;
  }
  std::cout << with << " of " << all << " ops have a kernel for the device; without:" << without << "\n";
  EXPECT_GT(with, 0);
}

// No node of a step of the zoo runs on the host, so each step is one CUDA graph.
TEST(GpuCoverage, StepsOfTheZooNeedNoHost) {
  std::set<std::string> missing;
  for (const Model& model : all_models()) {
    for (const char* dtype : {"f32", "bf16"}) {
      ModelOptions options = small_options(model);
      options.dtype = dtype;
      options.abstract = true;
      const Plan plan = make_device_plan(record_model(model, options).graph, {.find_floor = false});
      const DeviceSchedule schedule = device_schedule(plan);
      for (const HostNode& node : schedule.host_nodes)
        missing.insert(std::string(plan.graph.nodes[static_cast<std::size_t>(node.node)].op->name) + " (" + node.why + ")");
      EXPECT_EQ(schedule.graphs, 1) << model.name << " " << dtype;
    }
  }
  for (const std::string& op : missing) ADD_FAILURE() << op;
}

}  // namespace
}  // namespace tapedeck
