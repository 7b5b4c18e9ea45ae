// Tests hooks of modules in captured steps. The oracle is an eager twin, which must have the same bits after every step.
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tapedeck::module_hooks_test {
namespace {

using testing::message_of;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Out = std::span<Tensor>;

// A net whose hooks add values to the results of its step.
struct Trainer {
  struct Net : Module {
    Sequential body{*this, "body"};
    Net() { body.add<Linear>(6, 8).add(&relu).add<Dropout>(0.25).add<Linear>(8, 4); }
  } net;
  Adam optimizer{net.parameters()};
  Tensors statistics;
  int hook_calls = 0;

  // The mean of the outputs of every layer.
  std::vector<ModuleHook> watch() {
    std::vector<ModuleHook> hooks;
    for (Module* layer : net.body.children())
      hooks.push_back(after_call(*layer, [this](Module&, In, Out out) {
        const NoGrad no_grad;
        ++hook_calls;
        statistics.push_back(mean(out[0]));
      }));
    return hooks;
  }
  Tensors step(const Tensors& in) {
    statistics.clear();
    const Tensor loss = mean(square(net.body(in[0])));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    Tensors results{loss};
    results.insert(results.end(), statistics.begin(), statistics.end());
    return results;
  }
};

using Hooks = std::vector<ModuleHook>;
using Before = std::function<void(Trainer&, Hooks*, int)>;  // called before step i

struct Outcome {
  Tensors values;
  int recordings = 0, replays = 0, hook_calls = 0;
  std::string explanation;
};

// Trains for twelve steps.
Outcome train(bool captured, const Before& before) {
  manual_seed(3);
  Trainer trainer;
  CapturedStep step([&](const Tensors& in) { return trainer.step(in); });
  Hooks hooks;
  Outcome run;
  for (int i = 0; i < 12; ++i) {
    before(trainer, &hooks, i);
    const Tensors in{full({5, 6}, 0.25 * i - 1)};
    for (const Tensor& t : captured ? step(in) : trainer.step(in)) run.values.push_back(t.detach());
  }
  for (const Tensor& p : trainer.net.parameters()) run.values.push_back(copy(p.detach()));
  run.recordings = step.recordings(), run.replays = step.replays(), run.hook_calls = trainer.hook_calls;
  run.explanation = step.explain();
  return run;
}

Outcome expect_as_eager(const Before& before) {
  const Outcome eager = train(false, before);
  Outcome captured = train(true, before);
  EXPECT_EQ(eager.values.size(), captured.values.size());
  for (std::size_t i = 0; i < std::min(eager.values.size(), captured.values.size()); ++i)
    EXPECT_TRUE(bit_equal(eager.values[i], captured.values[i])) << "value " << i;
  return captured;
}

TEST(CapturedModuleHook, AReplayComputesStatisticsAndDoesNotCallTheFunction) {
  const Outcome run = expect_as_eager([](Trainer& t, Hooks* hooks, int i) {
    if (i == 0) *hooks = t.watch();
  });
  EXPECT_EQ(run.values.size(), 12u * (1 + 3) + 4);
  EXPECT_EQ(run.recordings, 2);
  EXPECT_EQ(run.replays, 10);
  EXPECT_EQ(run.hook_calls, 2 * 3) << "a hook runs when the step is recorded, and in no replay";
}

TEST(CapturedModuleHook, AddedHooksAreRecordedAndRemovedOnesForgotten) {
  const Outcome run = expect_as_eager([](Trainer& t, Hooks* hooks, int i) {
    if (i == 4) *hooks = t.watch();
    if (i == 8) hooks->clear();
  });
  EXPECT_EQ(run.values.size(), 12u + 4 * 3 + 4);
  EXPECT_EQ(run.recordings, 4) << "two programs, and the first is known again when the hooks are gone";
  EXPECT_EQ(run.hook_calls, 2 * 3);
  EXPECT_MENTIONS(run.explanation, "modules have other hooks than they had");
}

TEST(CapturedModuleHook, ReplacedTensorsAreTrainedThrough) {
  const Outcome run = expect_as_eager([](Trainer& t, Hooks* hooks, int i) {
    if (i > 0) return;
    Module& last = *t.net.body.children().back();
    hooks->push_back(before_call(last, [](Module&, Out in) { in[0] = in[0] + normal({8}) * 0.1; }));
    hooks->push_back(after_call(t.net.body, [](Module&, In in, Out out) { out[0] = out[0] * 2 + mean(in[0]); }));
  });
  EXPECT_EQ(run.recordings, 2);
  EXPECT_EQ(run.replays, 10);
}

TEST(CapturedModuleHook, AHookThatTheStepAddsAndRemovesIsPartOfTheStep) {
  Trainer trainer;
  CapturedStep step([&](const Tensors& in) {
    const Hooks hooks = trainer.watch();
    return trainer.step(in);
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step({ones({5, 6})}).size(), 4u);
  EXPECT_EQ(step.recordings(), 2);
  EXPECT_EQ(step.replays(), 3);
}

TEST(CapturedModuleHook, NodesOfAHookHaveAPathOfTheirOwn) {
  Trainer trainer;
  const Hooks hooks = trainer.watch();
  CapturedStep step([&](const Tensors& in) { return trainer.step(in); });
  step({ones({5, 6})});
  std::vector<std::string> paths;
  for (const Node& node : step.captured()->graph.nodes) paths.push_back(node.origin.path.str());
  for (const char* layer : {"body.0", "body.2", "body.3"})
    EXPECT_GE(std::count(paths.begin(), paths.end(), layer + std::string(".after_call")), 1) << layer;
}

TEST(CapturedModuleHook, AHookReadsNoValueInsideACapture) {
  Trainer trainer;
  double seen = 0;
  ModuleHook reads = after_call(trainer.net.body, [&](Module&, In, Out out) { seen = mean(out[0]).item(); });
  CapturedStep step([&](const Tensors& in) { return trainer.step(in); });
  message_of<CaptureError>([&] { step({ones({5, 6})}); });
  EXPECT_EQ(seen, 0);
  reads.remove();
  EXPECT_EQ(step({ones({5, 6})}).size(), 1u);
}

}  // namespace
}  // namespace tapedeck::module_hooks_test
