// Tests the layers with parameters of any values. The oracles are plain loops over doubles, written from the definitions in
// PyTorch's documentation; they call no op. Weights of Linear and of recurrent layers lie as [in,out].
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace tapedeck {
namespace {

using Values = std::vector<double>;
using Size = std::size_t;

Values values_of(const Tensor& t) {
  const std::vector<float> floats = t.detach().to_vector<float>();
  return {floats.begin(), floats.end()};
}
Size size_of(const Tensor& t, int d) { return static_cast<Size>(t.size(d)); }

void expect_near_values(const Tensor& got, const Values& wanted, double tolerance = 1e-5) {
  const Values values = values_of(got);
  ASSERT_EQ(values.size(), wanted.size());
  for (Size i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], tolerance) << "element " << i;
}

// Parameters that are ones or zeros at first would hide that a layer leaves them out.
void randomise(Module& net, std::int64_t seed) {
  const NoGrad no_grad;
  manual_seed(seed);
  for (const Tensor& p : net.parameters()) copy_(p, normal(p.shape()) * 0.5);
}

// ---- linear, embedding ----

// The rows of x [rows,in] times W [in,out], plus b [out] unless it is empty.
Values product(const Values& x, const Values& w, const Values& b, Size in, Size out) {
  Values y;
  for (Size r = 0; r < x.size() / in; ++r)
    for (Size o = 0; o < out; ++o) {
      double sum = b.empty() ? 0 : b[o];
      for (Size i = 0; i < in; ++i) sum += x[r * in + i] * w[i * out + o];
      y.push_back(sum);
    }
  return y;
}

TEST(LayerOracles, Linear) {
  struct Net : Module {
    Linear with{*this, "with", 5, 3}, without{*this, "without", 5, 3, {.bias = false}};
  } net;
  randomise(net, 1);
  const Tensor x = normal({2, 4, 5});
  expect_near_values(net.with(x), product(values_of(x), values_of(net.with.weight), values_of(net.with.bias), 5, 3));
  expect_near_values(net.without(x), product(values_of(x), values_of(net.without.weight), {}, 5, 3));
}

TEST(LayerOracles, Embedding) {
  struct Net : Module {
    Embedding table{*this, "table", 6, 3};
  } net;
  randomise(net, 2);
  const std::vector<std::int64_t> ids = {5, 0, 2, 2};
  const Values table = values_of(net.table.weight);
  Values wanted;
  for (const std::int64_t id : ids)
    for (Size k = 0; k < 3; ++k) wanted.push_back(table[static_cast<Size>(id) * 3 + k]);
  expect_near_values(net.table(from_vector(ids, {2, 2})), wanted, 0);
}

// ---- convolutions: those of one and two dimensions are of three, with sizes of 1 in front ----

using Triple = std::array<std::int64_t, 3>;

struct Volume {
  std::int64_t n = 1, c = 1;
  Triple size = {1, 1, 1};
  Values v;

  static Volume of(const Tensor& t) {
    Volume x{t.size(0), t.size(1), {1, 1, 1}, values_of(t)};
    const int dims = t.rank() - 2;
    for (int d = 0; d < dims; ++d) x.size[static_cast<Size>(3 - dims + d)] = t.size(2 + d);
    return x;
  }
  static Volume zeros(std::int64_t n, std::int64_t c, Triple size) {
    return {n, c, size, Values(static_cast<Size>(n * c * size[0] * size[1] * size[2]))};
  }
  bool holds(const Triple& p) const {
    for (Size d = 0; d < 3; ++d)
      if (p[d] < 0 || p[d] >= size[d]) return false;
    return true;
  }
  double& at(std::int64_t i, std::int64_t k, const Triple& p) {
    return v[static_cast<Size>((((i * c + k) * size[0] + p[0]) * size[1] + p[1]) * size[2] + p[2])];
  }
};

template <class F>
void for_each(const Triple& size, F&& f) {
  for (std::int64_t a = 0; a < size[0]; ++a)
    for (std::int64_t b = 0; b < size[1]; ++b)
      for (std::int64_t c = 0; c < size[2]; ++c) f(Triple{a, b, c});
}

struct Window {
  Triple stride = {1, 1, 1}, padding = {0, 0, 0}, dilation = {1, 1, 1}, output_padding = {0, 0, 0};
  std::int64_t groups = 1;

  // Where element k of the kernel at place p lies in the larger of both sides.
  Triple touched(const Triple& p, const Triple& k) const {
    Triple at;
    for (Size d = 0; d < 3; ++d) at[d] = p[d] * stride[d] + k[d] * dilation[d] - padding[d];
    return at;
  }
};

void add_bias(const Tensor& bias, Volume* y) {
  if (!bias.defined()) return;
  const Values b = values_of(bias);
  for (std::int64_t i = 0; i < y->n; ++i)
    for (std::int64_t o = 0; o < y->c; ++o)
      for_each(y->size, [&](const Triple& p) { y->at(i, o, p) += b[static_cast<Size>(o)]; });
}

Values convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, const Window& how) {
  Volume x = Volume::of(input), w = Volume::of(weight);  // w.n: channels out; w.c: channels in of a group
  Triple size;
  for (Size d = 0; d < 3; ++d)
    size[d] = (x.size[d] + 2 * how.padding[d] - how.dilation[d] * (w.size[d] - 1) - 1) / how.stride[d] + 1;
  Volume y = Volume::zeros(x.n, w.n, size);
  const std::int64_t out_of_group = w.n / how.groups;
  for (std::int64_t i = 0; i < x.n; ++i)
    for (std::int64_t o = 0; o < w.n; ++o)
      for (std::int64_t c = 0; c < w.c; ++c)
        for_each(size, [&](const Triple& p) {
          for_each(w.size, [&](const Triple& k) {
            const Triple at = how.touched(p, k);
            if (x.holds(at)) y.at(i, o, p) += w.at(o, c, k) * x.at(i, o / out_of_group * w.c + c, at);
          });
        });
  add_bias(bias, &y);
  return y.v;
}

// Every element of x spreads over the window of the result that would have read it.
Values transposed_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, const Window& how) {
  Volume x = Volume::of(input), w = Volume::of(weight);  // w.n: channels in; w.c: channels out of a group
  Triple size;
  for (Size d = 0; d < 3; ++d)
    size[d] =
        (x.size[d] - 1) * how.stride[d] - 2 * how.padding[d] + how.dilation[d] * (w.size[d] - 1) + 1 + how.output_padding[d];
  Volume y = Volume::zeros(x.n, w.c * how.groups, size);
  const std::int64_t in_of_group = w.n / how.groups;
  for (std::int64_t i = 0; i < x.n; ++i)
    for (std::int64_t c = 0; c < w.n; ++c)
      for (std::int64_t o = 0; o < w.c; ++o)
        for_each(x.size, [&](const Triple& p) {
          for_each(w.size, [&](const Triple& k) {
            const Triple at = how.touched(p, k);
            if (y.holds(at)) y.at(i, c / in_of_group * w.c + o, at) += w.at(c, o, k) * x.at(i, c, p);
          });
        });
  add_bias(bias, &y);
  return y.v;
}

TEST(LayerOracles, Convolutions) {
  struct Net : Module {
    Conv1d one{*this, "one", 4, 6, {.kernel = {3}, .stride = {2}, .padding = {2}, .dilation = {2}, .groups = 2}};
    Conv2d two{*this, "two", 3, 4, {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {1, 2}}};
    Conv2d plain{*this, "plain", 2, 3, 3, Stride(2), Padding(1)};
    Conv3d three{*this, "three", 2, 3, {.kernel = {2, 3, 1}, .stride = {1, 2, 1}, .padding = {1, 0, 0}, .bias = false}};
  } net;
  randomise(net, 3);
  Tensor x = normal({2, 4, 9});
  expect_near_values(net.one(x), convolution(x, net.one.weight, net.one.bias,
                                             {.stride = {1, 1, 2}, .padding = {0, 0, 2}, .dilation = {1, 1, 2}, .groups = 2}));
  x = normal({2, 3, 5, 7});
  expect_near_values(net.two(x), convolution(x, net.two.weight, net.two.bias,
                                             {.stride = {1, 1, 2}, .padding = {0, 1, 0}, .dilation = {1, 1, 2}}));
  x = normal({1, 2, 6, 5});
  expect_near_values(net.plain(x),
                     convolution(x, net.plain.weight, net.plain.bias, {.stride = {1, 2, 2}, .padding = {0, 1, 1}}));
  x = normal({1, 2, 3, 5, 4});
  expect_near_values(net.three(x), convolution(x, net.three.weight, Tensor(), {.stride = {1, 2, 1}, .padding = {1, 0, 0}}));
}

TEST(LayerOracles, TransposedConvolutions) {
  struct Net : Module {
    ConvTranspose1d one{*this, "one", 4, 6, {.kernel = {3}, .stride = {2}, .padding = {1}, .output_padding = {1}, .groups = 2}};
    ConvTranspose2d two{*this, "two", 3, 2, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}}};
    ConvTranspose3d three{*this, "three", 2, 3, {.kernel = {1, 2, 3}, .stride = {1, 2, 2}, .bias = false}};
  } net;
  randomise(net, 4);
  Tensor x = normal({2, 4, 5});
  expect_near_values(net.one(x), transposed_convolution(
                                     x, net.one.weight, net.one.bias,
                                     {.stride = {1, 1, 2}, .padding = {0, 0, 1}, .output_padding = {0, 0, 1}, .groups = 2}));
  x = normal({2, 3, 3, 4});
  expect_near_values(net.two(x), transposed_convolution(x, net.two.weight, net.two.bias,
                                                        {.stride = {1, 2, 1}, .padding = {0, 1, 0}, .dilation = {1, 1, 2}}));
  x = normal({1, 2, 2, 3, 2});
  expect_near_values(net.three(x), transposed_convolution(x, net.three.weight, Tensor(), {.stride = {1, 2, 2}}));
}

// ---- norms ----

struct Moments {
  double mean = 0, variance = 0;  // biased
};
Moments moments_of(const Values& v) {
  Moments m;
  for (const double x : v) m.mean += x / static_cast<double>(v.size());
  for (const double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  return m;
}

struct NormNet : Module {
  BatchNorm1d batch{*this, "batch", 3, {.eps = 1e-3, .momentum = 0.3}};
  LayerNorm layer{*this, "layer", Shape{2, 4}, 1e-2};
  RmsNorm rms{*this, "rms", 5, 1e-2};
  GroupNorm group{*this, "group", 2, 6, 1e-2};
};

// x[n,c,l] by the moments of its channel.
Values channel_normalised(const Tensor& input, const BatchNorm& layer, const std::vector<Moments>& by_channel) {
  const Values x = values_of(input), w = values_of(layer.weight), b = values_of(layer.bias);
  const Size channels = size_of(input, 1), length = size_of(input, 2);
  Values y;
  for (Size i = 0; i < x.size(); ++i) {
    const Size c = i / length % channels;
    y.push_back((x[i] - by_channel[c].mean) / std::sqrt(by_channel[c].variance + 1e-3) * w[c] + b[c]);
  }
  return y;
}

TEST(LayerOracles, BatchNormWhileTrainingAndAfter) {
  NormNet net;
  randomise(net, 5);
  std::vector<Moments> running(3, {0, 1});
  for (int step = 0; step < 3; ++step) {
    const Tensor input = normal({4, 3, 2}) * 2 + 1;
    const Values x = values_of(input);
    std::vector<Values> channels(3);
    for (Size i = 0; i < x.size(); ++i) channels[i / 2 % 3].push_back(x[i]);
    std::vector<Moments> batch;
    for (const Values& channel : channels) batch.push_back(moments_of(channel));
    expect_near_values(net.batch(input), channel_normalised(input, net.batch, batch));
    for (Size c = 0; c < 3; ++c) {
      running[c].mean = 0.7 * running[c].mean + 0.3 * batch[c].mean;
      running[c].variance = 0.7 * running[c].variance + 0.3 * batch[c].variance * 8 / 7;
    }
  }
  expect_near_values(net.batch.running_mean, {running[0].mean, running[1].mean, running[2].mean});
  expect_near_values(net.batch.running_var, {running[0].variance, running[1].variance, running[2].variance});
  net.train(false);
  const Tensor input = normal({2, 3, 2});
  expect_near_values(net.batch(input), channel_normalised(input, net.batch, running));
}

TEST(LayerOracles, LayerNormOverTwoDimensions) {
  NormNet net;
  randomise(net, 6);
  const Tensor input = normal({3, 2, 4}) + 2;
  const Values x = values_of(input), w = values_of(net.layer.weight), b = values_of(net.layer.bias);
  Values wanted;
  for (Size row = 0; row < 3; ++row) {
    const Moments m =
        moments_of({x.begin() + static_cast<std::ptrdiff_t>(8 * row), x.begin() + static_cast<std::ptrdiff_t>(8 * row + 8)});
    for (Size i = 0; i < 8; ++i) wanted.push_back((x[8 * row + i] - m.mean) / std::sqrt(m.variance + 1e-2) * w[i] + b[i]);
  }
  expect_near_values(net.layer(input), wanted);
}

TEST(LayerOracles, RmsNorm) {
  NormNet net;
  randomise(net, 7);
  const Tensor input = normal({2, 3, 5}) + 1;
  const Values x = values_of(input), w = values_of(net.rms.weight);
  Values wanted;
  for (Size row = 0; row < 6; ++row) {
    double squares = 0;
    for (Size i = 0; i < 5; ++i) squares += x[5 * row + i] * x[5 * row + i] / 5;
    for (Size i = 0; i < 5; ++i) wanted.push_back(x[5 * row + i] / std::sqrt(squares + 1e-2) * w[i]);
  }
  expect_near_values(net.rms(input), wanted);
}

TEST(LayerOracles, GroupNorm) {
  NormNet net;
  randomise(net, 8);
  constexpr Size kLength = 4, kOfGroup = 3 * kLength;  // three channels in each of two groups
  const Tensor input = normal({2, 6, kLength}) - 1;
  const Values x = values_of(input), w = values_of(net.group.weight), b = values_of(net.group.bias);
  Values wanted;
  for (Size g = 0; g < 4; ++g) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(g * kOfGroup);
    const Moments m = moments_of({first, first + kOfGroup});
    for (Size i = 0; i < kOfGroup; ++i) {
      const Size channel = g % 2 * 3 + i / kLength;
      wanted.push_back((x[g * kOfGroup + i] - m.mean) / std::sqrt(m.variance + 1e-2) * w[channel] + b[channel]);
    }
  }
  expect_near_values(net.group(input), wanted);
}

// ---- recurrent layers ----

enum class Kind { lstm, gru, tanh, relu };
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Cell {
  Kind kind;
  Size in, hidden;
  Values weight_ih, weight_hh, bias_ih, bias_hh;

  Cell(Kind k, const RecurrentWeights& w)
      : kind(k),
        in(size_of(w.weight_ih, 0)),
        hidden(size_of(w.weight_hh, 0)),
        weight_ih(values_of(w.weight_ih)),
        weight_hh(values_of(w.weight_hh)),
        bias_ih(values_of(w.bias_ih)),
        bias_hh(values_of(w.bias_hh)) {}

  // One step of one row. c is used by LSTM alone.
  void step(const Values& x, Values* h, Values* c) const {
    const Size gates = bias_ih.size();
    const Values a = product(x, weight_ih, bias_ih, in, gates), b = product(*h, weight_hh, bias_hh, hidden, gates);
    for (Size i = 0; i < hidden; ++i) {
      const auto both = [&](Size gate) { return a[gate * hidden + i] + b[gate * hidden + i]; };
      if (kind == Kind::lstm) {
        (*c)[i] = sigmoid_of(both(1)) * (*c)[i] + sigmoid_of(both(0)) * std::tanh(both(2));
        (*h)[i] = sigmoid_of(both(3)) * std::tanh((*c)[i]);
      } else if (kind == Kind::gru) {
        const double r = sigmoid_of(both(0)), z = sigmoid_of(both(1));
        const double n = std::tanh(a[2 * hidden + i] + r * b[2 * hidden + i]);
        (*h)[i] = (1 - z) * n + z * (*h)[i];
      } else {
        (*h)[i] = kind == Kind::tanh ? std::tanh(both(0)) : std::max(both(0), 0.0);
      }
    }
  }
};

// The rows of a matrix, or of a slice of a larger tensor that begins at row `first`.
std::vector<Values> rows_of(const Values& v, Size first, Size count, Size length) {
  std::vector<Values> rows;
  for (Size r = first; r < first + count; ++r)
    rows.emplace_back(v.begin() + static_cast<std::ptrdiff_t>(r * length),
                      v.begin() + static_cast<std::ptrdiff_t>((r + 1) * length));
  return rows;
}

Values joined(const std::vector<Values>& rows) {
  Values all;
  for (const Values& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

struct RecurrentNet : Module {
  LstmCell lstm_cell{*this, "lstm_cell", 3, 4};
  GruCell gru_cell{*this, "gru_cell", 3, 4};
  RnnCell tanh_cell{*this, "tanh_cell", 3, 4}, relu_cell{*this, "relu_cell", 3, 4, RnnActivation::relu};
  Lstm lstm{*this, "lstm", 3, 4, {.layers = 2, .bidirectional = true}};
  Gru gru{*this, "gru", 3, 4, {.layers = 2, .bidirectional = true}};
  Rnn rnn{*this, "rnn", 3, 4, {.layers = 3}};
  Rnn relu_rnn{*this, "relu_rnn", 3, 4, {.bidirectional = true}, RnnActivation::relu};
};

TEST(LayerOracles, RecurrentCells) {
  RecurrentNet net;
  randomise(net, 9);
  const Tensor x = normal({2, 3}), h = normal({2, 4}), c = normal({2, 4});
  const std::vector<Values> words = rows_of(values_of(x), 0, 2, 3);
  const auto after = [&](Kind kind, const RecurrentWeights& w, std::vector<Values>* states, std::vector<Values>* cells) {
    *states = rows_of(values_of(h), 0, 2, 4), *cells = rows_of(values_of(c), 0, 2, 4);
    for (Size r = 0; r < 2; ++r) Cell(kind, w).step(words[r], &(*states)[r], &(*cells)[r]);
  };
  std::vector<Values> states, cells;
  after(Kind::lstm, net.lstm_cell.weights, &states, &cells);
  const LstmState s = net.lstm_cell(x, {h, c});
  expect_near_values(s.h, joined(states));
  expect_near_values(s.c, joined(cells));
  after(Kind::gru, net.gru_cell.weights, &states, &cells);
  expect_near_values(net.gru_cell(x, h), joined(states));
  after(Kind::tanh, net.tanh_cell.weights, &states, &cells);
  expect_near_values(net.tanh_cell(x, h), joined(states));
  after(Kind::relu, net.relu_cell.weights, &states, &cells);
  expect_near_values(net.relu_cell(x, h), joined(states));
}

struct Sequence {
  Values y, h, c;  // [t,n,directions 4], [layers directions,n,4] twice
};

// x [t,n,3] through the layers. `h0` and `c0` are [layers directions,n,4].
Sequence run_layers(Kind kind, const RecurrentLayers& layers, const Tensor& x, const Values& h0, const Values& c0) {
  const Size steps = size_of(x, 0), n = size_of(x, 1), directions = layers.options.bidirectional ? 2 : 1;
  std::vector<Values> words = rows_of(values_of(x), 0, steps * n, 3), last_h, last_c;
  for (Size row = 0; row < layers.weights.size(); row += directions) {
    std::vector<Values> outputs(steps * n);
    for (Size direction = 0; direction < directions; ++direction) {
      const Cell cell(kind, layers.weights[row + direction]);
      std::vector<Values> h = rows_of(h0, (row + direction) * n, n, 4), c = rows_of(c0, (row + direction) * n, n, 4);
      for (Size i = 0; i < steps; ++i)
        for (Size r = 0; r < n; ++r) {
          const Size at = (direction == 0 ? i : steps - 1 - i) * n + r;
          cell.step(words[at], &h[r], &c[r]);
          outputs[at].insert(outputs[at].end(), h[r].begin(), h[r].end());
        }
      last_h.insert(last_h.end(), h.begin(), h.end());
      last_c.insert(last_c.end(), c.begin(), c.end());
    }
    words = outputs;
  }
  return {joined(words), joined(last_h), joined(last_c)};
}

TEST(LayerOracles, RecurrentLayersFromAnyState) {
  RecurrentNet net;
  randomise(net, 10);
  const Tensor x = normal({4, 2, 3}), h4 = normal({4, 2, 4}), c4 = normal({4, 2, 4}), h3 = normal({3, 2, 4}),
               h2 = normal({2, 2, 4});
  const LstmResult lstm = net.lstm(x, {h4, c4});
  Sequence wanted = run_layers(Kind::lstm, net.lstm, x, values_of(h4), values_of(c4));
  expect_near_values(lstm.y, wanted.y);
  expect_near_values(lstm.state.h, wanted.h);
  expect_near_values(lstm.state.c, wanted.c);
  const auto check = [&](Kind kind, const RecurrentLayers& layers, const RecurrentResult& got, const Tensor& h0) {
    wanted = run_layers(kind, layers, x, values_of(h0), values_of(h0));
    expect_near_values(got.y, wanted.y);
    expect_near_values(got.h, wanted.h);
  };
  check(Kind::gru, net.gru, net.gru(x, h4), h4);
  check(Kind::tanh, net.rnn, net.rnn(x, h3), h3);
  check(Kind::relu, net.relu_rnn, net.relu_rnn(x, h2), h2);
}

// ---- attention ----

// One head of one example: the rows of q [t,d], k [s,d], v [s,d]; `hidden(i, j)` says that row i does not see row j.
template <class Hidden>
std::vector<Values> attention(const std::vector<Values>& q, const std::vector<Values>& k, const std::vector<Values>& v,
                              Hidden&& hidden) {
  std::vector<Values> y;
  for (Size i = 0; i < q.size(); ++i) {
    Values weights;
    double sum = 0;
    for (Size j = 0; j < k.size(); ++j) {
      double score = 0;
      for (Size d = 0; d < q[i].size(); ++d) score += q[i][d] * k[j][d];
      weights.push_back(hidden(i, j) ? 0 : std::exp(score / std::sqrt(static_cast<double>(q[i].size()))));
      sum += weights.back();
    }
    Values row(v[0].size());
    for (Size j = 0; j < k.size(); ++j)
      for (Size d = 0; d < row.size(); ++d) row[d] += weights[j] / sum * v[j][d];
    y.push_back(row);
  }
  return y;
}

TEST(LayerOracles, MultiheadAttentionWithAndWithoutBias) {
  constexpr Size kSize = 6, kHeads = 3, kHead = 2, kLength = 4;
  struct Net : Module {
    MultiheadAttention causal{*this, "causal", kSize, kHeads, {.causal = true}};
    MultiheadAttention bare{*this, "bare", kSize, kHeads, {.bias = false}};
  } net;
  randomise(net, 11);
  const Tensor x = normal({2, kLength, kSize});
  const auto wanted = [&](const MultiheadAttention& layer) {
    const Values in_bias = layer.in_bias.defined() ? values_of(layer.in_bias) : Values();
    const Values out_bias = layer.out_bias.defined() ? values_of(layer.out_bias) : Values();
    const Values qkv = product(values_of(x), values_of(layer.in_weight), in_bias, kSize, 3 * kSize);
    Values mixed(2 * kLength * kSize);
    for (Size b = 0; b < 2; ++b)
      for (Size head = 0; head < kHeads; ++head) {
        std::vector<Values> of[3];  // queries, keys, values
        for (Size which = 0; which < 3; ++which)
          for (Size t = 0; t < kLength; ++t) {
            const Size first = (b * kLength + t) * 3 * kSize + which * kSize + head * kHead;
            of[which].push_back({qkv[first], qkv[first + 1]});
          }
        const bool causal = layer.options.causal;
        const std::vector<Values> y = attention(of[0], of[1], of[2], [causal](Size i, Size j) { return causal && j > i; });
        for (Size t = 0; t < kLength; ++t)
          for (Size d = 0; d < kHead; ++d) mixed[(b * kLength + t) * kSize + head * kHead + d] = y[t][d];
      }
    return product(mixed, values_of(layer.out_weight), out_bias, kSize, kSize);
  };
  expect_near_values(net.causal(x), wanted(net.causal));
  expect_near_values(net.bare(x), wanted(net.bare));
}

// ---- dropout: an element, or a channel, is kept and scaled, or it is dropped ----

struct DropNet : Module {
  Dropout drop{*this, "drop", 0.25};
  Dropout2d drop2d{*this, "drop2d", 0.25};
  AlphaDropout alpha{*this, "alpha", 0.25};
};

TEST(LayerOracles, DropoutKeepsScaledElementsOrWholeChannels) {
  DropNet net;
  manual_seed(12);
  const Values y = values_of(net.drop(full({40, 50}, 3)));
  double kept = 0;
  for (const double value : y) {
    EXPECT_TRUE(value == 0 || value == 4) << value;
    kept += value == 4;
  }
  EXPECT_NEAR(kept / 2000, 0.75, 5 * std::sqrt(0.25 * 0.75 / 2000));  // five standard deviations

  const Values z = values_of(net.drop2d(full({20, 10, 2, 3}, 3)));
  std::set<double> seen;
  for (Size channel = 0; channel < 200; ++channel)
    for (Size i = 0; i < 6; ++i) {
      EXPECT_EQ(z[channel * 6 + i], z[channel * 6]) << "channel " << channel << " is dropped in part";
      seen.insert(z[channel * 6 + i]);
    }
  EXPECT_EQ(seen, (std::set<double>{0, 4}));
}

// Of Self-Normalizing Neural Networks (Klambauer et al., 2017): dropped elements become a' = -lambda alpha, and a x + b has the
// mean and the variance of x if these are 0 and 1: a = (q + a'^2 q (1 - q))^-1/2, b = -a (1 - q) a', with q kept.
TEST(LayerOracles, AlphaDropoutHasTwoValues) {
  DropNet net;
  manual_seed(13);
  const double q = 0.75, low = -1.0507009873554805 * 1.6732632423543772;
  const double a = 1 / std::sqrt(q + low * low * q * (1 - q)), b = -a * (1 - q) * low;
  int kept = 0;
  for (const double value : values_of(net.alpha(full({1000}, 0.5)))) {
    const bool keeps = std::abs(value - (a * 0.5 + b)) < 1e-5;
    EXPECT_TRUE(keeps || std::abs(value - (a * low + b)) < 1e-5) << value;
    kept += keeps;
  }
  EXPECT_NEAR(kept / 1000.0, q, 5 * std::sqrt(q * (1 - q) / 1000));
}

}  // namespace
}  // namespace tapedeck
