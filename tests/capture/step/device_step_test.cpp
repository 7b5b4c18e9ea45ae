// Captured steps of tensors on a device. The device is the fake runtime, whose kernels are those of the CPU and which notes
// races, so the oracle is the same code on the host, uncaptured, bit for bit.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/device/device_plan.h>
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/cuda_device.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>
#include <tapedeck/tests/capture/step/small_classifier.h>
#include <tapedeck/tests/engine/messages.h>

#include <gtest/gtest.h>

namespace tapedeck {
namespace {

class DeviceStepTest : public ::testing::Test {
 protected:
  void TearDown() override {
    device_->synchronize();
    for (const std::string& problem : fake_->problems()) ADD_FAILURE() << problem;
  }
  std::shared_ptr<test::FakeRuntime> fake_ = std::make_shared<test::FakeRuntime>();
  ScopedDevice replays_{fake_};
  std::unique_ptr<EagerDevice> device_ = test::waiting_eager_device(fake_);
  ScopedEagerDevice eager_{"cuda", *device_};
};

struct DeviceTrainer {
  explicit DeviceTrainer(const std::string& device)
      : device(device), optimizer((net.to(device), net.parameters()), {.lr = 0.01}) {}
  std::vector<Tensor> step(const std::vector<Tensor>& in) { return testing::train_classifier(net, optimizer, in); }
  Tensor there(const Tensor& t) const { return to_device(t, device); }

  const std::string device;
  testing::SmallClassifier net;
  AdamW optimizer;
};

struct DeviceTrace {
  std::vector<Tensor> losses, parameters;
  int replays = 0;
};

// Ten steps. `between` runs before each of them.
DeviceTrace train_on(const std::string& device, bool captured, const std::function<void(DeviceTrainer&, int)>& between = {},
                     const CapturedStepOptions& options = {}) {
  manual_seed(11);
  DeviceTrainer trainer(device);
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return trainer.step(in); }, options);
  DeviceTrace trace;
  for (int i = 0; i < 10; ++i) {
    if (between) between(trainer, i);
    next_step();
    const std::vector<Tensor> in = {trainer.there(testing::sample_x(i)), trainer.there(testing::sample_y(i))};
    const Tensor loss = captured ? step(in)[0] : trainer.step(in)[0];
    EXPECT_EQ(device_name(loss), device) << i;
    trace.losses.push_back(to_device(loss.detach(), "cpu"));
  }
  for (const Tensor& p : trainer.net.parameters()) trace.parameters.push_back(to_device(p.detach(), "cpu"));
  trace.replays = step.replays();
  return trace;
}

void expect_equal_traces(const DeviceTrace& got, const DeviceTrace& expected) {
  ASSERT_EQ(got.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) EXPECT_TRUE(bit_equal(got.losses[i], expected.losses[i])) << "loss " << i;
  for (std::size_t i = 0; i < got.parameters.size(); ++i)
    EXPECT_TRUE(bit_equal(got.parameters[i], expected.parameters[i])) << "parameter " << i;
}

TEST_F(DeviceStepTest, TrainsAsEagerCodeOnTheHost) {
  const DeviceTrace host = train_on("cpu", false), there = train_on("cuda", true);
  expect_equal_traces(there, host);
  EXPECT_EQ(there.replays, 8);
}

TEST_F(DeviceStepTest, SeesWhatEagerCodeWritesBetween) {
  const auto decay = [](DeviceTrainer& trainer, int i) {
    if (i % 3 != 2) return;
    const NoGrad no_grad;
    for (Tensor p : trainer.net.parameters()) mul_(p, 0.5);
  };
  const DeviceTrace host = train_on("cpu", false, decay), there = train_on("cuda", true, decay);
  expect_equal_traces(there, host);
  EXPECT_EQ(there.replays, 8);
}

TEST_F(DeviceStepTest, StateLiesInTheTensorsOfTheUserOnly) {
  DeviceTrainer trainer("cuda");
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return trainer.step(in); });
  const std::vector<Tensor> in = {trainer.there(testing::sample_x(0)), trainer.there(testing::sample_y(0))};
  for (int i = 0; i < 3; ++i) {
    next_step();
    step(in);
  }
  std::int64_t state_bytes = 0;
  for (const Tensor& t : step.captured()->state)
    if (device_name(t) == "cuda") state_bytes += t.bytes();
  EXPECT_GT(state_bytes, 1000);
  const std::int64_t before = step.observed_peak_bytes();
  EXPECT_LE(before, step.plan()->peak_bytes - state_bytes + 512 * 8 + 4096);  // blocks are aligned to 512 bytes
  const std::int64_t allocations = fake_->counts.allocations;
  for (int i = 0; i < 5; ++i) {
    next_step();
    step(in);
  }
  EXPECT_EQ(fake_->counts.allocations, allocations);
  EXPECT_EQ(step.replays(), 6);
  device_->synchronize();  // the results are there, so memory may be freed
}

TEST_F(DeviceStepTest, ResultsAreNewTensors) {
  const Tensor one = to_device(full({5}, 1.0), "cuda");
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + one, in[0]}; });
  std::vector<std::vector<Tensor>> results;
  for (int i = 0; i < 5; ++i) results.push_back(step({to_device(full({5}, i), "cuda")}));
  EXPECT_EQ(step.replays(), 3);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(bit_equal(to_device(results[i][0], "cpu"), full({5}, i + 1.0))) << i;
    EXPECT_TRUE(bit_equal(to_device(results[i][1], "cpu"), full({5}, i))) << i;
  }
}

// The step is a forward pass; eager code takes its gradient.
std::vector<Tensor> gradients_on(const std::string& device, bool captured) {
  manual_seed(5);
  testing::SmallClassifier net;
  net.to(device);
  CapturedStep step =
      capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net.fc2(relu(net.fc1(in[0])))}; });
  std::vector<Tensor> gradients;
  for (int i = 0; i < 4; ++i) {
    const std::vector<Tensor> in = {to_device(testing::sample_x(i), device)};
    const Tensor y = captured ? step(in)[0] : net.fc2(relu(net.fc1(in[0])));
    backward(mean(square(y)));
    for (Tensor p : net.parameters()) {
      gradients.push_back(p.grad().defined() ? to_device(p.grad().detach(), "cpu") : full({1}, -1.0));
      p.set_grad(Tensor());
    }
  }
  return gradients;
}

TEST_F(DeviceStepTest, GivesGradientsToEagerCode) {
  const std::vector<Tensor> host = gradients_on("cpu", false), there = gradients_on("cuda", true);
  ASSERT_EQ(host.size(), there.size());
  for (std::size_t i = 0; i < host.size(); ++i) EXPECT_TRUE(bit_equal(there[i], host[i])) << i;
}

// Gradients that a step leaves in grad() are tensors of the device as well.
TEST_F(DeviceStepTest, LeavesGradientsOnTheDevice) {
  Tensor w = to_device(full({4}, 2.0), "cuda");
  w.requires_grad(true);
  CapturedStep step = capture([&](const std::vector<Tensor>& in) {
    const Tensor loss = sum(w * w * in[0]);
    backward(loss);
    return std::vector<Tensor>{loss};
  });
  for (int i = 0; i < 5; ++i) {
    w.set_grad(Tensor());
    step({to_device(full({4}, i), "cuda")});
    ASSERT_EQ(device_name(w.grad()), "cuda");
    EXPECT_TRUE(bit_equal(to_device(w.grad(), "cpu"), full({4}, 4.0 * i))) << i;
  }
  EXPECT_GE(step.replays(), 2);
}

TEST_F(DeviceStepTest, ANetThatMovesIsRecordedAnew) {
  manual_seed(3);
  testing::SmallClassifier net;
  CapturedStep step = capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net.fc1(in[0])}; });
  const Tensor x = testing::sample_x(1);
  const Tensor expected = net.fc1(x).detach();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bit_equal(step({x})[0].detach(), expected));
  net.to("cuda");
  for (int i = 0; i < 4; ++i) {
    const Tensor y = step({to_device(x, "cuda")})[0].detach();
    ASSERT_EQ(device_name(y), "cuda");
    EXPECT_TRUE(bit_equal(to_device(y, "cpu"), expected)) << i;
  }
  net.to("cpu");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bit_equal(step({x})[0].detach(), expected));
  EXPECT_GE(step.replays(), 3);
}

TEST_F(DeviceStepTest, ABudgetChangesNoBit) {
  const DeviceTrace free = train_on("cuda", true);
  CapturedStepOptions options;
  options.plan.budget_percent = 93;
  const DeviceTrace tight = train_on("cuda", true, {}, options);
  expect_equal_traces(tight, free);
}

TEST_F(DeviceStepTest, ARunWithoutMemoryForStateCanBeTriedAgain) {
  Tensor w = full({5000}, 2.0);
  w.name("w").requires_grad(true);
  Capture capture("step");
  capture.output("y", w * 3.0);
  const Captured captured = capture.finish();
  Executor executor(make_device_plan(captured.graph, {}), {.device = "cuda", .state = StateSharing::by_tensor});
  executor.set_state("w", w);
  fake_->capacity = static_cast<std::size_t>(fake_->bytes_in_use());
  const std::string message = testing::message_of<ExecutionError>([&] { executor.run(); });
  EXPECT_NE(message.find("state, 20480 bytes, cannot be had on the device"), std::string::npos) << message;
  fake_->capacity = std::size_t{1} << 30;
  for (int i = 0; i < 3; ++i) executor.run();
  EXPECT_TRUE(bit_equal(executor.output("y"), full({5000}, 6.0)));
}

TEST_F(DeviceStepTest, AnExecutorOfTheHostCannotBindATensorOfTheDevice) {
  Tensor w = to_device(full({4}, 2.0), "cuda");
  w.name("w").requires_grad(true);
  Capture capture("step");
  capture.output("y", w * 2.0);
  const Captured captured = capture.finish();
  Executor on_host(make_plan(captured.graph, {}));
  const std::string message = testing::message_of<DeviceError>([&] { on_host.bind_state("w", w); });
  EXPECT_NE(message.find("state 'w' is on cuda, and the executor of 'step' runs on cpu"), std::string::npos) << message;
  on_host.set_state("w", w);
  on_host.run();
  EXPECT_TRUE(bit_equal(on_host.output("y"), full({4}, 4.0)));
}

}  // namespace
}  // namespace tapedeck
