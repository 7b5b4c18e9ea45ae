// References of the recurrent cells, number by number. Gradients follow the chain rule through every intermediate value.
#include <tapedeck/engine/ops/recurrent.h>
#include <tapedeck/tests/engine/reference.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

// Calls f(state index, gate) for every element of a state [n,h]. gate(k) is the index of gate k in [n, count h]; there are
// `count` gates.
template <class F>
void for_each_cell(const Type& state, std::int64_t count, F&& f) {
  const std::int64_t h = state.shape[1];
  for (std::int64_t i = 0; i < state.numel(); ++i)
    f(static_cast<std::size_t>(i), [=](std::int64_t k) { return static_cast<std::size_t>((i / h * count + k) * h + i % h); });
}

const AddReference lstm_reference("lstm_cell", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array h = blank(out[0]), c = blank(out[1]);
  for_each_cell(out[0], 4, [&](std::size_t at, auto gate) {
    const std::vector<double>& gates = x[0].v;
    c.v[at] = sigma(gates[gate(1)]) * x[1].v[at] + sigma(gates[gate(0)]) * std::tanh(gates[gate(2)]);
    h.v[at] = sigma(gates[gate(3)]) * std::tanh(c.v[at]);
  });
  return std::vector<Array>{h, c};
});

const AddReference lstm_grad_reference("lstm_cell_grad", [](const Example&, const std::vector<Array>& x,
                                                            const std::vector<Type>& out) {
  Array dgates = blank(out[0]), dc = blank(out[1]);
  for_each_cell(out[1], 4, [&](std::size_t at, auto gate) {
    const double i = sigma(x[0].v[gate(0)]), f = sigma(x[0].v[gate(1)]), g = std::tanh(x[0].v[gate(2)]),
                 o = sigma(x[0].v[gate(3)]);
    const double before = x[1].v[at], next = f * before + i * g, dh = x[2].v[at];
    const double dnext = x[3].v[at] + dh * o / std::pow(std::cosh(next), 2);
    const double di = dnext * g, df = dnext * before, dg = dnext * i, d_o = dh * std::tanh(next);
    dgates.v[gate(0)] = di * i * (1 - i);
    dgates.v[gate(1)] = df * f * (1 - f);
    dgates.v[gate(2)] = dg * (1 - g * g);
    dgates.v[gate(3)] = d_o * o * (1 - o);
    dc.v[at] = dnext * f;
  });
  return std::vector<Array>{dgates, dc};
});

const AddReference gru_reference("gru_cell", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array next = blank(out[0]);
  for_each_cell(out[0], 3, [&](std::size_t at, auto gate) {
    const double r = sigma(x[0].v[gate(0)] + x[1].v[gate(0)]), z = sigma(x[0].v[gate(1)] + x[1].v[gate(1)]);
    const double n = std::tanh(x[0].v[gate(2)] + r * x[1].v[gate(2)]);
    next.v[at] = (1 - z) * n + z * x[2].v[at];
  });
  return std::vector<Array>{next};
});

const AddReference gru_grad_reference("gru_cell_grad", [](const Example&, const std::vector<Array>& x,
                                                          const std::vector<Type>& out) {
  Array dx = blank(out[0]), ds = blank(out[1]), dh = blank(out[2]);
  for_each_cell(out[2], 3, [&](std::size_t at, auto gate) {
    const double r = sigma(x[0].v[gate(0)] + x[1].v[gate(0)]), z = sigma(x[0].v[gate(1)] + x[1].v[gate(1)]);
    const double state = x[1].v[gate(2)], n = std::tanh(x[0].v[gate(2)] + r * state), dnext = x[3].v[at];
    const double before_n = dnext * (1 - z) * (1 - n * n), before_r = before_n * state * r * (1 - r),
                 before_z = dnext * (x[2].v[at] - n) * z * (1 - z);
    dx.v[gate(0)] = ds.v[gate(0)] = before_r;
    dx.v[gate(1)] = ds.v[gate(1)] = before_z;
    dx.v[gate(2)] = before_n;
    ds.v[gate(2)] = before_n * r;
    dh.v[at] = dnext * z;
  });
  return std::vector<Array>{dx, ds, dh};
});

const AddReference unstack_reference("unstack", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  std::vector<Array> pieces;
  for (std::size_t i = 0, at = 0; i < out.size(); ++i) {
    pieces.push_back(blank(out[i]));
    for (double& v : pieces.back().v) v = x[0].v[at++];
  }
  return pieces;
});

}  // namespace
}  // namespace tapedeck::testing
