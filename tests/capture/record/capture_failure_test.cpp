// Tests captures that fail: for each op of a training step, one capture fails at this op. Nothing leaks, the eager results
// before the failure stand, and the next capture works.
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/host.h>

#include <gtest/gtest.h>

#include <cstring>

namespace tapedeck {
namespace {

using Tensors = std::vector<Tensor>;

struct StopCapture {};

// A training step: forward with a checkpoint region, dropout, running statistics, in-place writes and a host call; backward;
// an optimizer with moments.
struct Trainer : Module {
  Linear fc1{*this, "fc1", 4, 6};
  BatchNorm1d bn{*this, "bn", 6};
  Dropout drop{*this, "drop", 0.5};
  Linear fc2{*this, "fc2", 6, 3};
  Tensor seen = [] {
    Tensor t = zeros({3});
    t.name("seen").role(Role::statistic);
    return t;
  }();
  AdamW optimizer{parameters(), {.lr = 0.1}};

  Tensors operator()(const Tensors& in) {
    const Tensor h = checkpoint([&] { return drop(relu(bn(fc1(in[0])))); });
    const Tensor y = fc2(h);
    on_host(y, [](const Tensor&) {});
    add_(seen, sum(y.detach(), {0}));
    const Tensor own = y * 1;
    mul_(slice(own, 0, 0, 1), 2);
    const Tensor loss = mean(square(own));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  }
  // The bytes of all tensors that live longer than a step.
  std::vector<unsigned char> state() {
    Tensors all = parameters();
    for (const Tensor& t : buffers()) all.push_back(t);
    for (const Tensor& t : optimizer.state()) all.push_back(t);
    all.push_back(seen);
    std::vector<unsigned char> bytes;
    for (const Tensor& t : all) {  // reads the bytes directly, because the capture would refuse a host read
      const auto* from = static_cast<const unsigned char*>(t.impl()->data());
      bytes.insert(bytes.end(), from, from + t.bytes());
    }
    return bytes;
  }
};

Tensor input() { return reshape(arange(20, DType::f32), {5, 4}) * 0.1; }

// At every op, notes the trainer's state, or stops the step at op `stop_at`.
class Injector : public RecordWatch {
 public:
  explicit Injector(Trainer& trainer, int stop_at = -1) : trainer_(trainer), stop_at_(stop_at) {}
  void recorded(const Recorder& tape, NodeId n) override {
    const Node& node = tape.graph.nodes[n];
    ++phases_[static_cast<int>(node.origin.phase)];
    in_region_ += node.origin.region != kNone;
    if (stop_at_ < 0)
      states_.push_back(trainer_.state());
    else if (count_ == stop_at_)
      throw StopCapture{};
    ++count_;
  }
  int count() const { return count_; }
  int phase(Phase p) const { return phases_[static_cast<int>(p)]; }
  int in_region() const { return in_region_; }
  const std::vector<unsigned char>& state_at(int k) const { return states_[k]; }

 private:
  Trainer& trainer_;
  int stop_at_, count_ = 0, in_region_ = 0;
  int phases_[3] = {};
  std::vector<std::vector<unsigned char>> states_;
};

template <class F>
bool stops(RecordWatch* watch, F&& f) {
  const Scoped<RecordWatch*> watching(watch_of_captures(), watch);
  try {
    f();
    return false;
  } catch (const StopCapture&) {
    return true;
  }
}

TEST(CaptureFailure, AtEveryOpInTurn) {
  int ops = 0;
  {
    manual_seed(8);
    Trainer trainer;
    Injector counter(trainer);
    CapturedStep step = capture([&](const Tensors& in) { return trainer(in); });
    EXPECT_FALSE(stops(&counter, [&] { step({input()}); }));
    ops = counter.count();
    EXPECT_GT(counter.phase(Phase::forward), 12);
    EXPECT_GT(counter.phase(Phase::backward), 12);
    EXPECT_GT(counter.phase(Phase::update), 6);
    EXPECT_GT(counter.in_region(), 3);
  }
  for (int k = 0; k < ops; ++k) {
    SCOPED_TRACE(k);
    // The state that an undisturbed step has at this op.
    manual_seed(8);
    Trainer undisturbed;
    Injector states(undisturbed);
    {
      CapturedStep step = capture([&](const Tensors& in) { return undisturbed(in); });
      stops(&states, [&] { step({input()}); });
    }

    manual_seed(8);
    Trainer trainer;
    const Tensor x = input();
    const std::uint64_t draws = thread_state().draws.size();
    const MemoryStats before = Allocator::host().stats();
    {
      CapturedStep step = capture([&](const Tensors& in) { return trainer(in); });
      Injector injector(trainer, k);
      ASSERT_TRUE(stops(&injector, [&] { step({x}); }));
      EXPECT_EQ(trainer.state(), states.state_at(k)) << "the eager result stands";
      EXPECT_EQ(step.recordings(), 0);
      EXPECT_FALSE(thread_state().tape->capturing);
      EXPECT_EQ(thread_state().region, kNone);
      EXPECT_EQ(thread_state().twin, kNone);
      EXPECT_EQ(thread_state().phase, Phase::forward);
      EXPECT_TRUE(thread_state().grad_enabled);
    }
    trainer.optimizer.zero_grad();
    EXPECT_EQ(tape_stats().nodes, 0);
    EXPECT_EQ(tape_stats().values, 0);
    EXPECT_EQ(Allocator::host().stats().bytes_in_use, before.bytes_in_use);
    EXPECT_EQ(Allocator::host().stats().blocks_in_use, before.blocks_in_use);
    EXPECT_GE(thread_state().draws.size() + 1, draws);
    // The next capture works. It may see another program in its first call, because the failed call has not moved the random
    // state on.
    CapturedStep next = capture([&](const Tensors& in) { return trainer(in); });
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(next({x})[0].defined());
    EXPECT_GE(next.replays(), 1);
  }
}

// The same in checked mode: the failed call is a call of a recorded step, and its tape differs from the recording.
TEST(CaptureFailure, AtEveryOpOfACheckedCall) {
  manual_seed(8);
  Trainer trainer;
  CapturedStepOptions options;
  options.mode = CaptureMode::checked;
  bool failing = false;
  int left = 0;
  CapturedStep step = capture(
      [&](const Tensors& in) {
        // The recording has no sin(), so a step that calls it fails. Each round calls it one place later: at the start of
        // the step, between the parts of forward, after backward.
        if (failing && left == 0) sin(in[0]);
        const Tensor y = trainer.fc1(in[0]);
        if (failing && left == 1) sin(y);
        const Tensor loss = mean(square(y));
        if (failing && left == 2) sin(loss);
        backward(loss);
        if (failing && left == 3) sin(in[0]);
        trainer.optimizer.step();
        trainer.optimizer.zero_grad();
        return Tensors{loss};
      },
      options);
  const Tensor x = input();
  for (int i = 0; i < 3; ++i) step({x});
  const MemoryStats before = Allocator::host().stats();
  for (left = 0; left < 4; ++left) {
    failing = true;
    EXPECT_THROW(step({x}), CaptureError) << left;
    failing = false;
    trainer.optimizer.zero_grad();
    EXPECT_EQ(Allocator::host().stats().bytes_in_use, before.bytes_in_use) << left;
    EXPECT_EQ(Allocator::host().stats().blocks_in_use, before.blocks_in_use) << left;
    step({x});
  }
  EXPECT_EQ(step.checks(), 5);
}

// max_pool2d_grad has no gradient, and needs none for a gradient of zeros. Zeros that come from outside of a capture are data:
// a replay may get other bytes.
TEST(CaptureFailure, OnlyZerosThatTheStepMakesAreKnown) {
  Tensor leaf = ones({1, 1, 2, 2});
  leaf.requires_grad(true);
  const Tensor dy = ones({1, 1, 1, 1});
  const auto gradient_with = [&](const Tensor& head) -> Tensors {
    return gradients({max_pool2d_grad(leaf, dy, {}), square(leaf)}, {leaf}, {.heads = {head, ones(leaf.shape())}});
  };
  CapturedStep made_inside = capture([&](const Tensors& in) { return gradient_with(zeros(in[0].shape())); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(made_inside({leaf.detach()})[0].to_vector<float>(), std::vector<float>(4, 2));
  EXPECT_EQ(made_inside.replays(), 1);
  CapturedStep given = capture([&](const Tensors& in) { return gradient_with(in[0]); });
  EXPECT_THROW(given({zeros({1, 1, 2, 2})}), GradientError);
}

}  // namespace
}  // namespace tapedeck
