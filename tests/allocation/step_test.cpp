// Every allocation of a training step fails once: of an eager step, of a capture, and of a replay.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/text/text.h>

#include <tapedeck/tests/allocation/every_allocation.h>
#include <tapedeck/tests/capture/replay_check.h>

#include <gtest/gtest.h>

#include <cstring>

namespace tapedeck {
namespace {

using test::fail_every_allocation;

struct Mlp : Module {
  Linear first{*this, "first", 6, 5}, second{*this, "second", 5, 3};
  Tensor operator()(const Tensor& x) { return second(relu(first(x))); }
};

std::string bits(const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.data());
  return std::string(bytes, bytes + t.bytes());
}

// A network, its optimizer and its batch. Steps begin with the same parameters, moments and random state.
class Training {
 public:
  Tensor step() {
    optimizer_.zero_grad();
    const Tensor loss = cross_entropy(net_(x_), y_);
    backward(loss);
    optimizer_.step();
    return loss;
  }

  std::string bits_of_state() const {
    std::string text;
    for (const Tensor& t : state()) text += bits(t);
    return text;
  }

  void save() {
    for (const Tensor& t : state()) saved_.push_back(bits(t));
  }
  void restore() {
    manual_seed(11);
    const std::vector<Tensor> now = state();
    for (std::size_t i = 0; i < saved_.size(); ++i)
      std::memcpy(const_cast<void*>(now[i].data()), saved_[i].data(), saved_[i].size());
  }
  const Tensor& x() const { return x_; }
  const Tensor& y() const { return y_; }

 private:
  struct Seed {
    Seed() { manual_seed(11); }
  };

  std::vector<Tensor> state() const {
    std::vector<Tensor> all = net_.parameters();
    for (const Tensor& t : optimizer_.state()) all.push_back(t);
    return all;
  }

  Seed seed_;  // before the network draws its parameters
  Mlp net_;
  Adam optimizer_{net_.parameters(), {.lr = 0.1}};
  Tensor x_ = full({4, 6}, 0.5), y_ = from_vector(std::vector<std::int64_t>{0, 1, 2, 1}, {4});
  std::vector<std::string> saved_;
};

TEST(AllocationFails, InAStepOfAWarmThread) {
  Training training;
  training.step();
  training.save();
  fail_every_allocation({.name = "an eager step"}, [&] {
    training.restore();
    const std::string loss = bits(training.step());
    return loss + training.bits_of_state();
  });
}

TEST(AllocationFails, InTheFirstStepsOfANewThread) {
  fail_every_allocation({.name = "a network, and two eager steps, on a new thread", .own_threads = true}, [] {
    Training training;
    training.step();
    const std::string loss = bits(training.step());
    return loss + training.bits_of_state();
  });
}

Graph captured(Training& training) {
  Capture capture("step");
  capture.input("x", training.x());
  capture.input("y", training.y());
  capture.output("loss", training.step());
  return capture.finish().graph;
}

TEST(AllocationFails, InACapture) {
  Training training;
  training.step();
  training.save();
  fail_every_allocation({.name = "a captured step"}, [&] {
    training.restore();
    const std::string text = print(captured(training));
    return text + training.bits_of_state();
  });
}

std::string replayed(const Plan& plan) {
  const Graph& g = plan.graph;
  Executor executor(plan, {.threads = 1});
  set_all(executor, stand_ins(g, 0, g.n_inputs, 1), stand_ins(g, g.n_inputs, g.n_state, 7));
  executor.run();
  executor.run();
  std::string text;
  for (const Tensor& t : executor.outputs()) text += bits(t);
  for (const std::string& name : executor.state_names()) text += bits(executor.state(name));
  return text;
}

TEST(AllocationFails, InAReplay) {
  Training training;
  training.step();
  const Plan plan = make_plan(captured(training));
  fail_every_allocation({.name = "an executor and two steps"}, [&] { return replayed(plan); });
}

}  // namespace
}  // namespace tapedeck
