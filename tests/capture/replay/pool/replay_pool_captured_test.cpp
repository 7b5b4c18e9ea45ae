// Tests captured steps in one pool: they share state by tensor, whatever names the steps give to a tensor. The oracle is
// eager code.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/nn/nn.h>

#include <tapedeck/tests/capture/replay/pool/replay_pool_graphs.h>

#include <memory>
#include <thread>

namespace tapedeck {
namespace {

struct Net : Module {
  Linear fc1{*this, "fc1", 6, 12}, fc2{*this, "fc2", 12, 4};
  Dropout drop{*this, "drop", 0.25};
  Tensor operator()(const Tensor& x) { return fc2(drop(relu(fc1(x)))); }
};

struct Steps {
  Net model;
  AdamW optimizer{model.parameters(), {.lr = 0.02}};
  Tensor hidden = zeros({4});  // unnamed state of one step, with the type of a bias of the other step

  std::vector<Tensor> train(const std::vector<Tensor>& in) {
    const Tensor loss = mean(model(in[0]) * in[1]);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return {loss};
  }
  std::vector<Tensor> evaluate(const std::vector<Tensor>& in) {
    const NoGrad no_grad;
    const Tensor y = sum(model(in[0]), {0});
    copy_(hidden, hidden + y);
    return {y, copy(hidden)};
  }
};

std::vector<Tensor> train_and_evaluate(bool captured, const std::shared_ptr<ReplayPool>& pool) {
  manual_seed(4);
  Steps steps;
  CapturedStepOptions for_training, for_evaluation;
  for_training.executor.pool = for_evaluation.executor.pool = pool;
  for_training.executor.name = "train";
  for_evaluation.executor.name = "evaluate";
  CapturedStep train = capture([&](const std::vector<Tensor>& in) { return steps.train(in); }, for_training);
  CapturedStep evaluate = capture([&](const std::vector<Tensor>& in) { return steps.evaluate(in); }, for_evaluation);
  std::vector<Tensor> all;
  const auto keep = [&](std::vector<Tensor> results) {
    for (Tensor& t : results) all.push_back(t.detach());
  };
  for (int i = 0; i < 9; ++i) {
    const std::int64_t batch = i % 3 == 2 ? 10 : 5;
    const std::vector<Tensor> in = {value("x", f32({batch, 6}), static_cast<std::uint64_t>(i)),
                                    value("y", f32({batch, 4}), static_cast<std::uint64_t>(i))};
    steps.model.train(true);
    keep(captured ? train(in) : steps.train(in));
    steps.model.train(false);
    if (i != 4) keep(captured ? evaluate({in[0]}) : steps.evaluate({in[0]}));
  }
  if (captured && pool) {
    const PoolReport report = pool->report();
    EXPECT_GE(report.members.size(), 4u) << "two batch sizes of each\n" << pool->explain();
    EXPECT_EQ(pool->observed_peak_bytes(), report.planned_peak_bytes) << pool->explain();
    int shared = 0;
    for (const PoolReport::State& s : report.state) shared += s.members.size() == report.members.size();
    EXPECT_EQ(shared, 4) << "weights and biases\n" << pool->explain();
    EXPECT_GT(report.saved_bytes(), 0);
  }
  for (const Tensor& p : steps.model.parameters()) all.push_back(copy(p).detach());
  return all;
}

// Steps share tensors and not names: two steps may use one name for different tensors.
TEST(ReplayPool, CapturedStepsShareTheirTensors) {
  const std::vector<Tensor> eager = train_and_evaluate(false, nullptr);
  for (const auto& pool : {new_pool(), std::shared_ptr<ReplayPool>()}) {
    const std::vector<Tensor> replayed = train_and_evaluate(true, pool);
    ASSERT_EQ(replayed.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(bit_equal(replayed[i], eager[i])) << i;
  }
}

TEST(ReplayPool, StepsThatCallDifferentTensorsAlike) {
  const auto pool = new_pool();
  const auto step = [&](const Tensor& counter) {
    CapturedStepOptions options;
    options.executor.pool = pool;
    return capture(
        [counter](const std::vector<Tensor>& in) -> std::vector<Tensor> {
          Tensor c = counter;
          add_(c, in[0]);
          return {copy(c)};
        },
        options);
  };
  const Tensor one = zeros({3}), two = zeros({3});
  CapturedStep first = step(one), second = step(two);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(first({tensor({1, 1, 1})})[0].to_vector<float>()[0], static_cast<float>(i));
    EXPECT_EQ(second({tensor({10, 10, 10})})[0].to_vector<float>()[0], static_cast<float>(10 * i));
  }
  EXPECT_EQ(one.to_vector<float>()[2], 6);
  EXPECT_EQ(two.to_vector<float>()[2], 60);
}

// ---- the gradient of captured steps ----

CapturedStep through(const Tensor& weight, const std::shared_ptr<ReplayPool>& pool) {
  CapturedStepOptions options;
  options.executor.pool = pool;
  return capture([weight](const std::vector<Tensor>& in) { return std::vector<Tensor>{tanh(matmul(in[0], weight))}; }, options);
}

// Eager code follows both steps. Their parameters have one name but different types.
TEST(ReplayPool, BackwardOfTwoStepsTakesTurns) {
  const auto pool = new_pool();
  Tensor one = value("one", f32({4, 4})), two = value("two", f32({4, 6})), plain_one = copied(one), plain_two = copied(two);
  for (Tensor* t : {&one, &two, &plain_one, &plain_two}) t->requires_grad(true);
  CapturedStep first = through(one, pool), second = through(two, pool);
  const Tensor x = value("x", f32({3, 4}));
  for (int i = 0; i < 4; ++i) {
    backward(sum(first({x})[0]));
    backward(sum(second({x})[0]));
    backward(sum(tanh(matmul(x, plain_one))));
    backward(sum(tanh(matmul(x, plain_two))));
    EXPECT_TRUE(bit_equal(one.grad(), plain_one.grad())) << i;
    EXPECT_TRUE(bit_equal(two.grad(), plain_two.grad())) << i;
  }
  EXPECT_EQ(pool->observed_peak_bytes(), pool->planned_peak_bytes()) << pool->explain();
}

// A member that shares by name has state with the name of the step's weight. It is another value: the member's own, or a
// tensor of the caller's.
TEST(ReplayPool, BackwardOfAStepLeavesStateOfItsNameAlone) {
  const auto pool = new_pool();
  Executor mine(make_plan(parse("graph mine(%x: f32[4]) state(%w: f32[4]) {\n  %y: f32[4] = add(%x, %w)\n  return %y\n}")),
                {.pool = pool});
  mine.set_state("w", ones({4}));
  mine.set_input("x", zeros({4}));
  Tensor w = full({4}, 7.0), bound = full({4}, 3.0);
  w.name("w");
  w.requires_grad(true);
  CapturedStepOptions options;
  options.executor.pool = pool;
  CapturedStep step = capture([w](const std::vector<Tensor>& in) { return std::vector<Tensor>{mul(in[0], w)}; }, options);
  const auto backwards = [&] {
    for (int i = 0; i < 4; ++i) {
      const Tensor y = step({ones({4})})[0];
      backward(sum(mul(y, y)));
    }
  };
  backwards();
  mine.run();
  EXPECT_TRUE(bit_equal(mine.outputs()[0], ones({4})));
  mine.bind_state("w", bound);
  backwards();
  EXPECT_TRUE(bit_equal(bound, full({4}, 3.0)));
  mine.run();
  EXPECT_TRUE(bit_equal(mine.outputs()[0], full({4}, 3.0)));
}

// A call that is refused because the pool is busy has changed nothing. A call that is accepted runs completely.
TEST(ReplayPool, ACallOfAStepHappensOrDoesNot) {
  const auto pool = new_pool();
  const auto counting = [&](const Tensor& counter) {
    CapturedStepOptions options;
    options.executor.pool = pool;
    return capture(
        [counter](const std::vector<Tensor>& in) {
          const NoGrad off;
          Tensor c = counter;
          const Tensor y = tanh(matmul(in[0], in[0]));
          add_(c, ones({1}));
          return std::vector<Tensor>{y, add(y, 1.0)};
        },
        options);
  };
  const Tensor counters[] = {zeros({1}), zeros({1})};
  CapturedStep steps[] = {counting(counters[0]), counting(counters[1])};
  const Tensor x = value("x", f32({48, 48}));
  int done[] = {0, 0};
  for (int k = 0; k < 2; ++k)
    for (; done[k] < 3; ++done[k]) steps[k]({x});
  const auto calls = [&](int k) {
    for (int i = 0; i < 10000; ++i) {
      try {
        steps[k]({x});
        ++done[k];
      } catch (const ExecutionError&) {
      }
    }
  };
  std::thread other([&] { calls(1); });
  calls(0);
  other.join();
  for (int k = 0; k < 2; ++k) EXPECT_EQ(counters[k].to_vector<float>()[0], static_cast<float>(done[k])) << k;
}

}  // namespace
}  // namespace tapedeck
