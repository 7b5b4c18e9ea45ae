// Recurrent cells and layers. A layer computes the products with the input for all steps in one matrix product, then runs the
// steps one after another:
//
//       projected = x [t,n,in] W_ih + b      h_t = cell(projected[t], h_{t-1} W_hh)      y = concat(h_0, h_1, ...)
#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/nn/recurrent.h>
#include <tapedeck/engine/nn/rows.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <array>

namespace tapedeck {
namespace {

// x W + b + b': adds both biases at once.
Tensor project_all(const RecurrentWeights& w, const Tensor& x) {
  return add(matmul(x, w.weight_ih), add(w.bias_ih, w.bias_hh));
}
Tensor project_input(const RecurrentWeights& w, const Tensor& x) { return add(matmul(x, w.weight_ih), w.bias_ih); }

LstmState lstm_step(const RecurrentWeights& w, const Tensor& projected, const LstmState& before) {
  return lstm_cell(add(projected, matmul(before.h, w.weight_hh)), before.c);
}
Tensor gru_step(const RecurrentWeights& w, const Tensor& projected, const Tensor& h) {
  return gru_cell(projected, add(matmul(h, w.weight_hh), w.bias_hh), h);
}
Tensor rnn_step(const RecurrentWeights& w, const Tensor& projected, const Tensor& h, RnnActivation activation) {
  return rnn_cell(projected, matmul(h, w.weight_hh), activation);
}

void require_input(const Tensor& x, int rank, std::int64_t in, const char* form, Site site) {
  if (!x.defined()) throw TypeError(error_text("recurrent", "the operand is undefined", site));
  if (x.rank() != rank || x.size(-1) != in)
    throw TypeError(
        error_text("recurrent", fmt::format("the operand must be [{}{}], not {}", form, in, to_string(x.type())), site));
}

// The given state, or zeros [n,hidden] if it is undefined.
Tensor state_or_zeros(const Tensor& state, const Tensor& x, std::int64_t hidden, Site site) {
  const OnDeviceOf there(x);
  return state.defined() ? state : zeros({x.size(0), hidden}, x.dtype(), site);
}

std::int64_t hidden_of(const RecurrentWeights& w) { return w.weight_hh.size(0); }

}  // namespace

RecurrentWeights RecurrentModule::make_weights(std::int64_t in, std::int64_t hidden, std::int64_t gates,
                                               const std::string& suffix) {
  auto make = [&](const std::string& name, const Shape& shape) {
    return parameter(name + suffix, initial_uniform(*this, name + suffix, shape, hidden));
  };
  RecurrentWeights w;
  w.weight_ih = make("weight_ih", {in, gates * hidden});
  w.weight_hh = make("weight_hh", {hidden, gates * hidden});
  w.bias_ih = make("bias_ih", {gates * hidden});
  w.bias_hh = make("bias_hh", {gates * hidden});
  return w;
}

// ---- cells ----

LstmCell::LstmCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden)
    : RecurrentModule(parent, name), weights(make_weights(in, hidden, 4)) {}

LstmState LstmCell::operator()(const Arg& x, const LstmState& state) {
  const std::array<Tensor, 3> inputs{x.tensor(), state.h, state.c};
  const std::array<Tensor, 2> after = hooked(*this, x.site(), inputs, [&](const std::array<Tensor, 3>& in) {
    require_input(in[0], 2, weights.weight_ih.size(0), "batch,", x.site());
    const LstmState before{state_or_zeros(in[1], in[0], hidden_of(weights), x.site()),
                           state_or_zeros(in[2], in[0], hidden_of(weights), x.site())};
    const LstmState s = lstm_step(weights, project_all(weights, in[0]), before);
    return std::array{s.h, s.c};
  });
  return {after[0], after[1]};
}

GruCell::GruCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden)
    : RecurrentModule(parent, name), weights(make_weights(in, hidden, 3)) {}

Tensor GruCell::operator()(const Arg& x, const Tensor& h) {
  return hooked(*this, x.site(), std::array{x.tensor(), h}, [&](const std::array<Tensor, 2>& in) {
    require_input(in[0], 2, weights.weight_ih.size(0), "batch,", x.site());
    return gru_step(weights, project_input(weights, in[0]), state_or_zeros(in[1], in[0], hidden_of(weights), x.site()));
  });
}

RnnCell::RnnCell(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden, RnnActivation act)
    : RecurrentModule(parent, name), weights(make_weights(in, hidden, 1)), activation(act) {}

Tensor RnnCell::operator()(const Arg& x, const Tensor& h) {
  return hooked(*this, x.site(), std::array{x.tensor(), h}, [&](const std::array<Tensor, 2>& in) {
    require_input(in[0], 2, weights.weight_ih.size(0), "batch,", x.site());
    return rnn_step(weights, project_all(weights, in[0]), state_or_zeros(in[1], in[0], hidden_of(weights), x.site()),
                    activation);
  });
}

// ---- sequences ----

RecurrentLayers::RecurrentLayers(Module& parent, const std::string& name, std::int64_t in, std::int64_t hidden,
                                 std::int64_t gates, RecurrentOptions o)
    : RecurrentModule(parent, name), options(o) {
  if (o.layers < 1) throw UsageError(fmt::format("recurrent: needs at least one layer, got {}", o.layers));
  const int directions = o.bidirectional ? 2 : 1;
  for (int layer = 0; layer < o.layers; ++layer)
    for (int direction = 0; direction < directions; ++direction)
      weights.push_back(make_weights(layer == 0 ? in : directions * hidden, hidden, gates,
                                     fmt::format("_l{}{}", layer, direction ? "_reverse" : "")));
}

// Runs one layer in one direction, and returns y [t,n,hidden]. On entry *states holds the states before the first step, and
// on return those after the last step.
Tensor RecurrentLayers::run_direction(const RecurrentWeights& w, const Tensor& x, bool reverse, States* states) const {
  const std::vector<Tensor> projected = unstack(rows_like(project(w, as_rows(x)), x));
  std::vector<Tensor> outputs(projected.size());
  for (std::size_t i = 0; i < projected.size(); ++i) {
    const std::size_t at = reverse ? projected.size() - 1 - i : i;
    *states = step(w, projected[at], *states);
    outputs[at] = reshape((*states)[0], {1, x.size(1), hidden_of(w)});
  }
  return concat(outputs, 0);
}

RecurrentLayers::Result RecurrentLayers::run(const Arg& x, const States& initial) {
  std::vector<Tensor> inputs = initial;
  inputs.insert(inputs.begin(), x.tensor());
  std::vector<Tensor> outputs = hooked(*this, x.site(), std::move(inputs), [&](const std::vector<Tensor>& in) {
    const Result r = run_layers(in[0], States(in.begin() + 1, in.end()), x.site());
    std::vector<Tensor> all = r.states;
    all.insert(all.begin(), r.y);
    return all;
  });
  return {outputs[0], States(outputs.begin() + 1, outputs.end())};
}

RecurrentLayers::Result RecurrentLayers::run_layers(Tensor x, const States& initial, Site site) const {
  require_input(x, 3, weights[0].weight_ih.size(0), "length,batch,", site);
  const std::int64_t hidden = hidden_of(weights[0]), rows = static_cast<std::int64_t>(weights.size());
  const Type state{x.dtype(), {rows, x.size(1), hidden}};
  for (const Tensor& s : initial)
    if (s.defined() && s.type() != state)
      throw TypeError(error_text(
          "recurrent", fmt::format("the initial state must be {}, not {}", to_string(state), to_string(s.type())), site));
  const OnDeviceOf there(x);  // for states that are not given
  std::vector<States> last(initial.size());
  const std::size_t directions = options.bidirectional ? 2 : 1;
  for (std::size_t row = 0; row < weights.size(); row += directions) {
    if (row > 0 && training() && options.dropout > 0) x = dropout(x, options.dropout);
    std::vector<Tensor> sides;
    for (std::size_t direction = 0; direction < directions; ++direction) {
      const auto at = static_cast<std::int64_t>(row + direction);
      States states;
      for (const Tensor& s : initial)
        states.push_back(s.defined() ? reshape(slice(s, 0, at, at + 1), {x.size(1), hidden})
                                     : zeros({x.size(1), hidden}, x.dtype(), site));
      sides.push_back(run_direction(weights[row + direction], x, direction == 1, &states));
      for (std::size_t k = 0; k < states.size(); ++k) last[k].push_back(reshape(states[k], {1, x.size(1), hidden}));
    }
    x = directions == 1 ? sides[0] : concat(sides, 2);
  }
  Result result{x, {}};
  for (const States& s : last) result.states.push_back(s.size() == 1 ? s[0] : concat(s, 0));
  return result;
}

LstmResult Lstm::operator()(const Arg& x, const LstmState& initial) {
  const Result r = run(x, {initial.h, initial.c});
  return {r.y, {r.states[0], r.states[1]}};
}
Tensor Lstm::project(const RecurrentWeights& w, const Tensor& x) const { return project_all(w, x); }
RecurrentLayers::States Lstm::step(const RecurrentWeights& w, const Tensor& projected, const States& before) const {
  const LstmState s = lstm_step(w, projected, {before[0], before[1]});
  return {s.h, s.c};
}

RecurrentResult Gru::operator()(const Arg& x, const Tensor& initial) {
  const Result r = run(x, {initial});
  return {r.y, r.states[0]};
}
Tensor Gru::project(const RecurrentWeights& w, const Tensor& x) const { return project_input(w, x); }
RecurrentLayers::States Gru::step(const RecurrentWeights& w, const Tensor& projected, const States& before) const {
  return {gru_step(w, projected, before[0])};
}

RecurrentResult Rnn::operator()(const Arg& x, const Tensor& initial) {
  const Result r = run(x, {initial});
  return {r.y, r.states[0]};
}
Tensor Rnn::project(const RecurrentWeights& w, const Tensor& x) const { return project_all(w, x); }
RecurrentLayers::States Rnn::step(const RecurrentWeights& w, const Tensor& projected, const States& before) const {
  return {rnn_step(w, projected, before[0], activation)};
}

}  // namespace tapedeck
