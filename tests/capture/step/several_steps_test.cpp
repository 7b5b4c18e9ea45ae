// Tests a captured step that holds several training steps, and one that adds up gradients over several batches before it
// updates. The oracle is the same function, run eagerly.
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/step/dropout_net.h>

#include <gtest/gtest.h>

namespace tapedeck::several_steps_test {
namespace {

using Tensors = std::vector<Tensor>;

struct Training {
  testing::DropoutNet net;
  AdamW optimizer{net.parameters(), {.lr = 1e-2}};

  Tensor loss(const Tensor& x, const Tensor& y) { return mean(square(net(x) - y)); }

  // A training step for each batch of in[0] and in[1].
  Tensors steps(const Tensors& in) {
    Tensors losses;
    for (std::int64_t i = 0; i < in[0].size(0); ++i) {
      losses.push_back(loss(in[0][i], in[1][i]));
      backward(losses.back());
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  }

  // One update by the mean of the gradients of all batches.
  Tensors accumulate(const Tensors& in) {
    const std::int64_t n = in[0].size(0);
    Tensors losses;
    for (std::int64_t i = 0; i < n; ++i) {
      losses.push_back(loss(in[0][i], in[1][i]) / n);
      backward(losses.back());
    }
    optimizer.step();
    optimizer.zero_grad();
    return losses;
  }
};

// Losses of five calls and the parameters after them.
Tensors train(Tensors (Training::*body)(const Tensors&), bool captured) {
  manual_seed(21);
  Training training;
  CapturedStep step = capture([&](const Tensors& in) { return (training.*body)(in); });
  const Tensor x = normal({3, 5, 3}), y = normal({3, 5, 2});
  Tensors all;
  for (int i = 0; i < 5; ++i) {
    const Tensors losses = captured ? step({x + i, y}) : (training.*body)({x + i, y});
    all.insert(all.end(), losses.begin(), losses.end());
  }
  EXPECT_EQ(step.replays(), captured ? 3 : 0);
  for (const Tensor& parameter : training.net.parameters()) all.push_back(parameter.detach());
  return all;
}

void expect_same(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << i;
}

TEST(SeveralSteps, InOneCaptureGiveTheBitsOfEagerSteps) {
  expect_same(train(&Training::steps, true), train(&Training::steps, false));
}

TEST(SeveralSteps, GradientsAddUpOverBatches) {
  const Tensors accumulated = train(&Training::accumulate, true);
  expect_same(accumulated, train(&Training::accumulate, false));
}

}  // namespace
}  // namespace tapedeck::several_steps_test
