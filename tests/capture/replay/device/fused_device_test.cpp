// Fused nodes in steps on a device: as kernels that are compiled at run time, or as the kernels of their nodes. The step stays
// one graph, and equals eager execution bit for bit.
#include <tapedeck/capture/codegen/kernel_cache.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ops/fused.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/capture/codegen/environment.h>
#include <tapedeck/tests/capture/codegen/fake_modules.h>
#include <tapedeck/tests/capture/codegen/fake_rtc.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace tapedeck {
namespace {

constexpr const char* kStep =
    R"(graph step(%x: f32[40,30], %b: bf16[40,30], %k: i32[40,30]) state(%w: f32[30,30], %r: f32[30]) {
    %h: f32[40,30] = matmul(%x, %w)
    %z: f32[40,30] = add(%h, %r)
    %y: f32[40,30] = tanh(%z)
    %m: f32[40,30] = mul(%y, %h)
    %c: bf16[40,30] = cast(%m) {dtype=bf16}
    %d: bf16[40,30] = add(%c, %b)
    %e: bf16[40,30] = sigmoid(%d)
    %f: f32[40,30] = cast(%e) {dtype=f32}
    %g: f32[30] = sum(%f) {axes=[0]}
    %r2: f32[30] = add(%r, %g)
    %i: i32[40,30] = mul(%k, %k)
    %j: i32[40,30] = sub(%i, %k)
    return %f, %j
    update %r = %r2
  })";

// Runs four steps on the device and compares them with eager execution.
void check_step(const std::shared_ptr<test::FakeRuntime>& fake, std::int64_t host_nodes) {
  const ScopedDevice scope(fake);
  const Graph g = parse(kStep);
  const Plan plan = make_plan(run_pass(pass_named("fuse"), g, {.fuse_elements = 1}));
  const auto is_fused = [](const Node& node) { return node.op == &ops::fused; };
  ASSERT_GT(std::count_if(plan.graph.nodes.begin(), plan.graph.nodes.end(), is_fused), 0);
  {
    Executor executor(plan, {.device = "cuda"});
    std::vector<Tensor> state = stand_ins(g, g.n_inputs, g.n_state, 7);
    set_all(executor, stand_ins(g, 0, g.n_inputs, 0), state);
    for (int step = 0; step < 4; ++step) {
      const std::vector<Tensor> inputs = stand_ins(g, 0, g.n_inputs, static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
      const EagerResult eager = run_eagerly(g, inputs, state);
      executor.run();
      expect_equal(executor, eager, "step " + std::to_string(step));
      state = eager.state;
    }
    EXPECT_EQ(executor.device_counters().host_nodes > 0, host_nodes > 0);
    if (host_nodes == 0) {
      EXPECT_EQ(executor.device_counters().graph_launches, 3) << "all but the first step";
    }
  }
  for (const std::string& problem : fake->problems()) ADD_FAILURE() << problem;
  EXPECT_TRUE(fake->at_rest());
}

TEST(FusedOnDevice, NodesRunOneByOneWithoutACompiler) { check_step(std::make_shared<test::FakeRuntime>(), 0); }

TEST(FusedOnDevice, RunOnTheHostIfTheDeviceLacksAnOp) {
  const auto fake = std::make_shared<test::FakeRuntime>();
  fake->missing = {"tanh"};
  check_step(fake, 1);
}

TEST(FusedOnDevice, AreKernelsOfTheirOwn) {
  if (::access(TAPEDECK_CXX, X_OK) != 0) GTEST_SKIP() << "there is no compiler " TAPEDECK_CXX;
  const test::Environment cache("TAPEDECK_KERNEL_CACHE", "off");
  const test::FakeRtc rtc;
  const test::FakeModules modules;
  const kernels::cuda::ScopedFake<kernels::cuda::RtcApi> fake_rtc(rtc.api);
  const kernels::cuda::ScopedFake<kernels::cuda::ModuleApi> fake_modules(modules.api);
  const auto fake = std::make_shared<test::FakeRuntime>();
  fake->capability = 90;
  check_step(fake, 0);
  EXPECT_GT(test::FakeModules::launches, 0);
  EXPECT_EQ(test::FakeModules::loaded, 0) << "a kernel was not unloaded";
}

}  // namespace
}  // namespace tapedeck
