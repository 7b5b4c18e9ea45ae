// Tests normalisation, attention and recurrent layers: names and counts of parameters, running statistics, messages. The
// oracle is each layer's definition written with plain ops.
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/attention.h>
#include <tapedeck/engine/nn/norm.h>
#include <tapedeck/engine/nn/recurrent.h>
#include <tapedeck/tests/engine/messages.h>
#include <tapedeck/tests/engine/values.h>

#include <cmath>

namespace tapedeck {
namespace {

using testing::expect_near;
using testing::message_of;
using testing::without_folders;

void expect_close(const Tensor& got, const Tensor& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const std::vector<float> values = wanted.to_vector<float>();
  expect_near(got, {values.begin(), values.end()}, tolerance);
}

std::vector<std::string> tensor_names(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& t : tensors) names.push_back(t.name().str());
  return names;
}

std::int64_t count_of(const Module& m) {
  std::int64_t n = 0;
  for (const Tensor& p : m.parameters()) n += p.numel();
  return n;
}

// ---- normalisation layers ----

struct PlainNormNet : Module {
  BatchNorm2d bn{*this, "bn", 1, {.eps = 0, .momentum = 0.5}};
  BatchNorm1d plain{*this, "plain", 3, {.affine = false}};
  LayerNorm ln{*this, "ln", 4};
  RmsNorm rms{*this, "rms", 4};
  GroupNorm gn{*this, "gn", 2, 6};
};

TEST(NormLayers, NameParametersAndBuffers) {
  PlainNormNet net;
  EXPECT_EQ(tensor_names(net.parameters()),
            (std::vector<std::string>{"bn.weight", "bn.bias", "ln.weight", "ln.bias", "rms.weight", "gn.weight", "gn.bias"}));
  EXPECT_EQ(tensor_names(net.buffers()),
            (std::vector<std::string>{"bn.running_mean", "bn.running_var", "plain.running_mean", "plain.running_var"}));
  for (const Tensor& b : net.buffers()) EXPECT_EQ(b.role(), Role::statistic);
}

TEST(NormLayers, BatchNormFollowsItsBatchesAndThenRests) {
  PlainNormNet net;
  // Mean 4, variance 5, unbiased 20 / 3. Momentum 0.5 moves the statistics half way from (0, 1).
  const Tensor x = from_vector(std::vector<float>{1, 3, 5, 7}, {1, 1, 2, 2});
  const double a = 1 / std::sqrt(5.0);
  expect_near(net.bn(x), {-3 * a, -a, a, 3 * a});
  expect_near(net.bn.running_mean, {2});
  expect_near(net.bn.running_var, {(1 + 20 / 3.0) / 2});
  net.train(false);
  const double b = 1 / std::sqrt((1 + 20 / 3.0) / 2);
  expect_near(net.bn(x), {-b, b, 3 * b, 5 * b});
  expect_near(net.bn.running_mean, {2});
}

TEST(NormLayers, RunningStatisticsHaveNoHistory) {
  PlainNormNet net;
  Tensor x = from_vector(std::vector<float>{1, 3, 5, 8}, {1, 1, 2, 2});
  x.requires_grad(true);
  backward(sum(square(net.bn(x))));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(net.bn.running_mean.requires_grad());
  backward(sum(square(net.bn(x))));  // the in-place update of the statistics makes no saved tensor stale
}

// Backward runs a checkpointed layer again. Its statistics must still be updated only once.
TEST(NormLayers, RecomputationDoesNotUpdateTwice) {
  PlainNormNet once, twice;
  Tensor x = from_vector(std::vector<float>{1, 3, 5, 8}, {1, 1, 2, 2});
  x.requires_grad(true);
  backward(sum(square(once.bn(x))));
  const Tensor wanted = x.grad();
  x.set_grad(Tensor());
  backward(sum(square(checkpoint([&] { return twice.bn(x); }))));
  EXPECT_TRUE(bit_equal(x.grad(), wanted));
  EXPECT_TRUE(bit_equal(once.bn.running_mean, twice.bn.running_mean));
  EXPECT_TRUE(bit_equal(once.bn.running_var, twice.bn.running_var));
}

TEST(NormLayers, AreTheirOps) {
  PlainNormNet net;
  const Tensor x = normal({3, 4}), g = normal({2, 6, 5});
  EXPECT_TRUE(bit_equal(net.ln(x), layer_norm(x, ones({4}), zeros({4}))));
  EXPECT_TRUE(bit_equal(net.rms(x), rms_norm(x, ones({4}), 1e-6)));
  EXPECT_TRUE(bit_equal(net.gn(g), group_norm(g, 2, ones({6}), zeros({6}))));
}

TEST(NormLayers, CountDimensions) {
  PlainNormNet net;
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.bn(zeros({2, 1, 3}));
                  }),
                  "[batch_norm] 'bn' takes 4 dimensions, got f32[2,1,3]");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.plain(zeros({2, 3, 1, 1}));
                  }),
                  "[batch_norm] 'plain' takes 2 to 3 dimensions, got f32[2,3,1,1]");
}

// ---- attention layers ----

struct AttentionNet : Module {
  MultiheadAttention attention{*this, "attention", 8, 2, {.causal = true}};
  TransformerBlock block{*this, "block", 8, {.heads = 4, .dropout = 0.1}};
};

// The same attention by matmul and softmax, head by head.
Tensor plain_attention(const MultiheadAttention& a, const Tensor& x, const Tensor& memory, bool causal) {
  const std::int64_t size = x.size(2), per_head = size / a.heads;
  const Tensor from_x = matmul(x, a.in_weight) + a.in_bias, from_memory = matmul(memory, a.in_weight) + a.in_bias;
  std::vector<Tensor> heads;
  for (std::int64_t head = 0; head < a.heads; ++head) {
    auto part = [&](const Tensor& t, std::int64_t which) {
      return slice(t, 2, which * size + head * per_head, which * size + (head + 1) * per_head);
    };
    Tensor scores =
        matmul(part(from_x, 0), transpose_last(part(from_memory, 1))) * (1 / std::sqrt(static_cast<double>(per_head)));
    if (causal) {
      std::vector<float> hidden;
      for (std::int64_t i = 0; i < x.size(1); ++i)
        for (std::int64_t j = 0; j < memory.size(1); ++j) hidden.push_back(j > i ? -INFINITY : 0);
      scores = scores + from_vector(hidden, {x.size(1), memory.size(1)});
    }
    heads.push_back(matmul(softmax(scores), part(from_memory, 2)));
  }
  return matmul(concat(heads, 2), a.out_weight) + a.out_bias;
}

TEST(AttentionLayers, MultiheadIsAttentionHeadByHead) {
  AttentionNet net;
  manual_seed(5);
  const Tensor x = normal({2, 5, 8}), memory = normal({2, 7, 8});
  expect_close(net.attention(x), plain_attention(net.attention, x, x, true));
  net.attention.options.causal = false;
  expect_close(net.attention(x, memory, {}), plain_attention(net.attention, x, memory, false));
  EXPECT_EQ(count_of(net.attention), 8 * 24 + 24 + 8 * 8 + 8);
}

TEST(AttentionLayers, GradientsReachEveryParameter) {
  AttentionNet net;
  backward(sum(square(net.block(net.attention(normal({2, 5, 8}))))));
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.grad().defined()) << p.name().view();
}

TEST(AttentionLayers, ABlockIsTwoBranches) {
  AttentionNet net;
  net.train(false);
  const Tensor x = normal({2, 5, 8});
  const Tensor attended = x + net.block.attention(net.block.norm1(x));
  expect_close(net.block(x), attended + net.block.fc2(relu(net.block.fc1(net.block.norm2(attended)))));
}

TEST(AttentionLayers, MistakesSayWhatIsWrong) {
  AttentionNet net;
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.attention(zeros({5, 8}));
                  }),
                  "[attention] the operand must be [batch,length,8], not f32[5,8]");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.attention(zeros({1, 5, 8}), Tensor(), Tensor());
                  }),
                  "[attention] the memory is undefined");
  EXPECT_EQ(message_of<UsageError>([&] { MultiheadAttention(net, "odd", 8, 3); }),
            "attention: a size of 8 does not fall into 3 heads");
}

// ---- recurrent layers ----

TEST(RecurrentOps, LstmCellByHand) {
  // All gates get 0: sigmoid gives 1/2 and tanh gives 0.
  LstmState s = lstm_cell(zeros({1, 4}), from_vector(std::vector<float>{2}, {1, 1}));
  expect_near(s.c, {1});
  expect_near(s.h, {std::tanh(1.0) / 2});
  // The input and output gates are open, the forget gate is closed: c' = tanh(g).
  s = lstm_cell(from_vector(std::vector<float>{50, -50, 0.5, 50}, {1, 4}), from_vector(std::vector<float>{2}, {1, 1}));
  expect_near(s.c, {std::tanh(0.5)});
  expect_near(s.h, {std::tanh(std::tanh(0.5))});
}

TEST(RecurrentOps, GruAndRnnCellsByHand) {
  const Tensor h = from_vector(std::vector<float>{2}, {1, 1});
  expect_near(gru_cell(zeros({1, 3}), zeros({1, 3}), h), {1});
  // r = 1/2, z = 1/2, n = tanh(0.25 + 0.5 * 0.5)
  const Tensor x = from_vector(std::vector<float>{0, 0, 0.25}, {1, 3}), s = from_vector(std::vector<float>{0, 0, 0.5}, {1, 3});
  expect_near(gru_cell(x, s, h), {(std::tanh(0.5) + 2) / 2});
  expect_near(rnn_cell(tensor({1, -2}), tensor({0.5, 1})), {std::tanh(1.5), std::tanh(-1.0)});
  expect_near(rnn_cell(tensor({1, -2}), tensor({0.5, 1}), RnnActivation::relu), {1.5, 0});
}

TEST(RecurrentOps, UnstackCutsAndItsGradientJoins) {
  Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  x.requires_grad(true);
  const std::vector<Tensor> pieces = unstack(x);
  ASSERT_EQ(pieces.size(), 3u);
  expect_near(pieces[2], {5, 6});
  backward(sum(mul(pieces[0], 2) + mul(pieces[2], 3)));
  expect_near(x.grad(), {2, 2, 0, 0, 3, 3});
}

TEST(RecurrentOps, MistakesSayWhatIsWrong) {
  auto text = [](auto f) {
    const std::string all = without_folders(message_of<TypeError>(f));
    return all.substr(0, all.rfind(" ("));
  };
  EXPECT_EQ(text([] { lstm_cell(zeros({2, 9}), zeros({2, 3})); }), "[lstm_cell] the gates must be f32[2,12], not f32[2,9]");
  EXPECT_EQ(text([] { lstm_cell(zeros({12}), zeros({3})); }), "[lstm_cell] the state needs two dimensions, got f32[3]");
  EXPECT_EQ(text([] {
              gru_cell(zeros({2, 9}), zeros({3, 9}), zeros({2, 3}));
            }),
            "[gru_cell] the gates must be f32[2,9], not f32[3,9]");
  EXPECT_EQ(text([] {
              unstack(zeros({0, 3}));
            }),
            "[unstack] needs at least one element along the first dimension, got f32[0,3]");
}

struct PlainRecurrentNet : Module {
  LstmCell lstm_cell{*this, "lstm_cell", 3, 4};
  GruCell gru_cell{*this, "gru_cell", 3, 4};
  RnnCell rnn_cell{*this, "rnn_cell", 3, 4, RnnActivation::relu};
  Lstm lstm{*this, "lstm", 3, 4, {.layers = 2, .bidirectional = true}};
  Gru gru{*this, "gru", 3, 4};
  Rnn rnn{*this, "rnn", 3, 4, {.layers = 2}};
};

TEST(RecurrentLayers, NameAndCountTheirParameters) {
  PlainRecurrentNet net;
  EXPECT_EQ(count_of(net.lstm_cell), 4 * 4 * (3 + 4 + 2));
  EXPECT_EQ(count_of(net.gru_cell), 3 * 4 * (3 + 4 + 2));
  EXPECT_EQ(count_of(net.rnn_cell), 4 * (3 + 4 + 2));
  EXPECT_EQ(count_of(net.lstm), 2 * 16 * (3 + 4 + 2) + 2 * 16 * (8 + 4 + 2));
  EXPECT_EQ(tensor_names(net.lstm.parameters())[4], "lstm.weight_ih_l0_reverse");
  EXPECT_EQ(tensor_names(net.lstm.parameters())[11], "lstm.bias_hh_l1");
}

TEST(RecurrentLayers, CellsFollowTheirFormulas) {
  PlainRecurrentNet net;
  manual_seed(6);
  const Tensor x = normal({2, 3}), h = normal({2, 4}), c = normal({2, 4});
  auto gate = [](const Tensor& t, int k) { return slice(t, 1, 4 * k, 4 * k + 4); };
  const RecurrentWeights& l = net.lstm_cell.weights;
  const Tensor gates = matmul(x, l.weight_ih) + l.bias_ih + matmul(h, l.weight_hh) + l.bias_hh;
  const Tensor next = sigmoid(gate(gates, 1)) * c + sigmoid(gate(gates, 0)) * tanh(gate(gates, 2));
  const LstmState s = net.lstm_cell(x, {h, c});
  expect_close(s.c, next);
  expect_close(s.h, sigmoid(gate(gates, 3)) * tanh(next));
  const RecurrentWeights& g = net.gru_cell.weights;
  const Tensor xi = matmul(x, g.weight_ih) + g.bias_ih, hi = matmul(h, g.weight_hh) + g.bias_hh;
  const Tensor z = sigmoid(gate(xi, 1) + gate(hi, 1)), n = tanh(gate(xi, 2) + sigmoid(gate(xi, 0) + gate(hi, 0)) * gate(hi, 2));
  expect_close(net.gru_cell(x, h), (1 - z) * n + z * h);
  const RecurrentWeights& r = net.rnn_cell.weights;
  expect_close(net.rnn_cell(x, h), relu(matmul(x, r.weight_ih) + r.bias_ih + matmul(h, r.weight_hh) + r.bias_hh));
}

TEST(RecurrentLayers, AStateNotGivenIsZeros) {
  PlainRecurrentNet net;
  const Tensor x = normal({2, 3}), zero = zeros({2, 4});
  EXPECT_TRUE(bit_equal(net.gru_cell(x), net.gru_cell(x, zero)));
  EXPECT_TRUE(bit_equal(net.lstm_cell(x).h, net.lstm_cell(x, {zero, zero}).h));
}

Tensor row(const Tensor& t, std::int64_t i) { return reshape(slice(t, 0, i, i + 1), {t.size(1), t.size(2)}); }

TEST(RecurrentLayers, ASequenceIsItsCellStepByStep) {
  PlainRecurrentNet net;
  manual_seed(7);
  const Tensor x = normal({5, 2, 3}), h0 = normal({1, 2, 4});
  net.gru_cell.weights = net.gru.weights[0];
  Tensor h = row(h0, 0);
  const RecurrentResult r = net.gru(x, h0);
  for (std::int64_t t = 0; t < 5; ++t) {
    h = net.gru_cell(row(x, t), h);
    expect_close(row(r.y, t), h);
  }
  expect_close(row(r.h, 0), h);
}

TEST(RecurrentLayers, LayersStackAndDirectionsMeet) {
  PlainRecurrentNet net;
  manual_seed(8);
  const Tensor x = normal({4, 2, 3});
  // Computes each layer by hand, forward and backward, and joins the outputs.
  Tensor layer = x;
  for (std::size_t l = 0; l < 2; ++l) {
    std::vector<Tensor> y[2] = {std::vector<Tensor>(4), std::vector<Tensor>(4)};
    for (std::size_t d = 0; d < 2; ++d) {
      LstmState s{zeros({2, 4}), zeros({2, 4})};
      const RecurrentWeights& w = net.lstm.weights[2 * l + d];
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t t = d == 0 ? i : 3 - i;
        s = lstm_cell(
            matmul(row(layer, static_cast<std::int64_t>(t)), w.weight_ih) + w.bias_ih + matmul(s.h, w.weight_hh) + w.bias_hh,
            s.c);
        y[d][t] = reshape(s.h, {1, 2, 4});
      }
    }
    layer = concat({concat(y[0], 0), concat(y[1], 0)}, 2);
  }
  const LstmResult r = net.lstm(x);
  expect_close(r.y, layer);
  ASSERT_EQ(r.state.h.shape(), (Shape{4, 2, 4}));
  // the forward direction of the last layer ends at the last step
  expect_close(row(r.state.h, 2), slice(row(layer, 3), 1, 0, 4));
  expect_close(row(r.state.h, 3), slice(row(layer, 0), 1, 4, 8));  // the reverse direction ends at the first step
  EXPECT_EQ(r.state.c.shape(), (Shape{4, 2, 4}));
}

TEST(RecurrentLayers, GradientsReachEveryParameter) {
  PlainRecurrentNet net;
  const Tensor x = normal({4, 2, 3});
  backward(sum(square(net.lstm(x).y)));
  backward(sum(square(net.gru(x).y)));
  backward(sum(square(net.rnn(x).y)));
  for (const Module* m : {static_cast<Module*>(&net.lstm), static_cast<Module*>(&net.gru), static_cast<Module*>(&net.rnn)})
    for (const Tensor& p : m->parameters()) EXPECT_TRUE(p.grad().defined()) << p.name().view();
}

TEST(RecurrentLayers, MistakesSayWhatIsWrong) {
  PlainRecurrentNet net;
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.lstm(zeros({4, 3}));
                  }),
                  "[recurrent] the operand must be [length,batch,3], not f32[4,3]");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.gru_cell(zeros({4, 2}));
                  }),
                  "[recurrent] the operand must be [batch,3], not f32[4,2]");
  EXPECT_MENTIONS(message_of<TypeError>([&] {
                    net.gru(zeros({5, 2, 3}), zeros({2, 4}));
                  }),
                  "[recurrent] the initial state must be f32[1,2,4], not f32[2,4]");
  EXPECT_EQ(message_of<UsageError>([&] { Gru(net, "none", 3, 4, {.layers = 0}); }),
            "recurrent: needs at least one layer, got 0");
}

}  // namespace
}  // namespace tapedeck
