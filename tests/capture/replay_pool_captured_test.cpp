// Captured steps over one pool: the tensors are shared, whatever they are called.
#include <tapedeck/capture/capture.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/nn.h>

#include <tapedeck/tests/capture/replay_pool_graphs.h>

#include <memory>

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
  Tensor hidden = zeros({4});   // unnamed state of one step, of the type of a bias in the other

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
    const std::vector<Tensor> in = {value("x", f32({batch, 6}), static_cast<std::uint64_t>(i)), value("y", f32({batch, 4}), static_cast<std::uint64_t>(i))};
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

// The tensors are what is shared, not their names: two steps may call different tensors alike.
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
    return capture([counter](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      Tensor c = counter;
      add_(c, in[0]);
      return {copy(c)};
    }, options);
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

}  // namespace
}  // namespace tapedeck
