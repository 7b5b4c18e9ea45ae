// Recurrent layers. The products with the input are one matrix product for all steps; then the steps run one after another.
// ONNX orders the rows of weights by gate: i o f c (LSTM), z r h (GRU). The cells of Tapedeck want i f g o, and r z n.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <functional>

namespace tapedeck::onnx {

namespace {

constexpr std::int64_t kMostSteps = 1 << 13;

// The weights of one direction, for products from the left: [in, gates hidden] and [hidden, gates hidden].
struct Weights {
  Tensor input, state;
  Tensor input_bias = {}, state_bias = {}, peepholes = {};  // undefined where there are none
};

struct Layer {
  Tensor x;  // [t, n, in]
  std::int64_t hidden = 0, directions = 1;
  bool batch_first = false;
};

Layer layer_of(const NodeCall& n, std::int64_t gates) {
  Layer layer;
  layer.batch_first = n.flag("layout");
  n.require(n[0].rank() == 3 && n[1].rank() == 3 && n[2].rank() == 3, "x, W and R must have three dimensions");
  layer.hidden = n.integer("hidden_size", n[2].size(2));
  const std::string direction = n.text("direction", "forward");
  n.require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "the direction is unknown");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.x = layer.batch_first ? transpose(n.arg(0), {1, 0, 2}) : n[0];
  n.require(layer.x.size(0) <= kMostSteps, "more than 8,192 steps are not supported");
  // The attribute may be any number. After the first comparison it is a size, which can be multiplied.
  n.require(n[2].size(2) == layer.hidden && n[1].size(0) == layer.directions && n[2].size(0) == layer.directions &&
                n[1].size(1) == gates * layer.hidden && n[2].size(1) == gates * layer.hidden && n[1].size(2) == layer.x.size(2),
            "the sizes of x, W and R do not fit");
  n.require(!n.has("clip"), "clipped cells are not supported");
  if (n.has(4)) {
    for (std::int64_t length : n.integers(4))
      n.require(length == layer.x.size(0), "sequences that end before the last step are not supported");
  }
  return layer;
}

void require_activations(const NodeCall& n, const std::vector<std::string>& usual) {
  const std::vector<std::string> given = n.texts("activations");
  for (std::size_t i = 0; i < given.size(); ++i)
    n.require(given[i] == usual[i % usual.size()], "the activation '" + given[i] + "' is not supported in this layer");
}

// One direction of a tensor that has the direction in front.
Tensor of_direction(const NodeCall& n, const Tensor& t, std::int64_t direction) {
  return t.size(0) == 1 ? reshape(n.arg(t), Shape(std::span(t.shape().begin() + 1, t.shape().end())))
                        : select(n.arg(t), 0, direction);
}

// The rows of the gates in another order.
Tensor with_gates(const NodeCall& n, const Tensor& rows, std::int64_t hidden, const Integers& order) {
  Tensors parts;
  for (std::int64_t gate : order) parts.push_back(slice_along(n.arg(rows), 0, gate * hidden, (gate + 1) * hidden));
  return parts.size() == 1 ? rows : concat(parts, 0, n.site());
}

Weights weights_of(const NodeCall& n, const Layer& layer, std::int64_t direction, const Integers& order) {
  const auto gates = static_cast<std::int64_t>(order.size());
  const auto matrix = [&](std::size_t operand) {
    return transpose_last(n.arg(with_gates(n, of_direction(n, n[operand], direction), layer.hidden, order)));
  };
  Weights w{matrix(1), matrix(2)};
  if (n.has(7)) w.peepholes = of_direction(n, n[7], direction);
  if (!n.has(3)) return w;
  n.require(n[3].rank() == 2 && n[3].size(1) == 2 * gates * layer.hidden, "the size of B does not fit");
  const Tensor both = of_direction(n, n[3], direction);
  const std::int64_t half = gates * layer.hidden;
  w.input_bias = with_gates(n, slice_along(n.arg(both), 0, 0, half), layer.hidden, order);
  w.state_bias = with_gates(n, slice_along(n.arg(both), 0, half, 2 * half), layer.hidden, order);
  return w;
}

Tensor initial(const NodeCall& n, std::size_t operand, const Layer& layer, std::int64_t direction) {
  if (!n.has(operand)) return zeros({layer.x.size(1), layer.hidden}, layer.x.dtype(), n.site());
  n.require(n[operand].rank() == 3, "an initial state must have three dimensions");
  const Tensor state = layer.batch_first ? transpose(n.arg(operand), {1, 0, 2}) : n[operand];
  return of_direction(n, state, direction);
}

// The products of the input for all steps: [t, n, gates hidden], with the biases if they may be added already.
Tensors projected(const NodeCall& n, const Layer& layer, const Weights& w, bool with_state_bias) {
  const std::int64_t steps = layer.x.size(0), batch = layer.x.size(1);
  const Tensor rows = reshape(n.arg(layer.x), {steps * batch, layer.x.size(2)});
  Tensor all = matmul(n.arg(rows), w.input);
  if (w.input_bias.defined()) {
    const Tensor bias = with_state_bias ? add(n.arg(w.input_bias), w.state_bias) : w.input_bias;
    all = add(n.arg(all), bias);
  }
  return unstack(n.arg(reshape(n.arg(all), {steps, batch, all.size(1)})));
}

// Runs the steps of all directions. step(direction weights, product of the input, state) gives the next state, whose first
// tensor is a row of the result.
using Step = std::function<Tensors(const Weights& w, const Tensor& product, const Tensors& state)>;

struct Plan {
  Integers gate_order;
  std::size_t states = 1;  // h, and for LSTM c
  bool adds_state_bias = true;
};

Tensors run_layer(const NodeCall& n, const Layer& layer, const Plan& plan, const Step& step) {
  const std::int64_t steps = layer.x.size(0), batch = layer.x.size(1);
  const bool reverse_only = n.text("direction", "forward") == "reverse";
  n.take_steps(steps * layer.directions);
  Tensors by_direction;                    // [t, 1, n, hidden]
  std::vector<Tensors> last(plan.states);  // [1, n, hidden]
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const bool reverse = reverse_only || d == 1;
    const Weights w = weights_of(n, layer, d, plan.gate_order);
    const Tensors products = projected(n, layer, w, plan.adds_state_bias);
    Tensors state;
    for (std::size_t i = 0; i < plan.states; ++i) state.push_back(initial(n, 5 + i, layer, d));
    Tensors rows(products.size());
    for (std::size_t i = 0; i < products.size(); ++i) {
      const std::size_t at = reverse ? products.size() - 1 - i : i;
      state = step(w, products[at], state);
      rows[at] = reshape(n.arg(state[0]), {1, 1, batch, layer.hidden});
    }
    if (rows.empty()) rows.push_back(zeros({steps, 1, batch, layer.hidden}, layer.x.dtype(), n.site()));
    by_direction.push_back(concat(rows, 0, n.site()));
    for (std::size_t i = 0; i < plan.states; ++i) last[i].push_back(reshape(n.arg(state[i]), {1, batch, layer.hidden}));
  }
  const auto joined = [&](const Tensors& parts, std::int64_t axis) {
    return parts.size() == 1 ? parts[0] : concat(parts, axis, n.site());
  };
  Tensor y = joined(by_direction, 1);
  if (layer.batch_first) y = transpose(n.arg(y), {2, 0, 1, 3});
  Tensors results = {y};
  for (const Tensors& parts : last) {
    const Tensor state = joined(parts, 0);
    results.push_back(layer.batch_first ? transpose(n.arg(state), {1, 0, 2}) : state);
  }
  return results;
}

// A cell whose gates read the state c, too: P [directions, 3 hidden] in the order i o f, of which o reads the new c.
LstmState peephole_cell(const NodeCall& n, const Tensor& gates, const Tensor& c, const Tensor& peepholes) {
  const std::int64_t hidden = c.size(1);
  const auto gate = [&](std::int64_t i) { return slice_along(n.arg(gates), 1, i * hidden, (i + 1) * hidden); };
  const auto seen = [&](std::int64_t i, const Tensor& state) {
    return mul(n.arg(slice_along(n.arg(peepholes), 0, i * hidden, (i + 1) * hidden)), state);
  };
  const Tensor in = sigmoid(add(n.arg(gate(0)), seen(0, c))), forget = sigmoid(add(n.arg(gate(1)), seen(2, c)));
  const Tensor next = add(n.arg(mul(n.arg(forget), c)), mul(n.arg(in), tanh(n.arg(gate(2)))));
  const Tensor out = sigmoid(add(n.arg(gate(3)), seen(1, next)));
  return {mul(n.arg(out), tanh(n.arg(next))), next};
}

Tensors lstm(NodeCall& n) {
  require_activations(n, {"Sigmoid", "Tanh", "Tanh"});
  n.require(!n.flag("input_forget"), "coupled gates are not supported");
  const Layer layer = layer_of(n, 4);
  n.require(!n.has(7) || (n[7].rank() == 2 && n[7].size(0) == layer.directions && n[7].size(1) == 3 * layer.hidden),
            "the size of P does not fit");
  return run_layer(n, layer, {{0, 2, 3, 1}, 2}, [&](const Weights& w, const Tensor& product, const Tensors& state) {
    if (w.peepholes.defined()) {
      const Tensor gates = add(n.arg(product), matmul(n.arg(state[0]), w.state));
      const LstmState next = peephole_cell(n, gates, state[1], w.peepholes);
      return Tensors{next.h, next.c};
    }
    const LstmState next = lstm_cell(n.arg(add(n.arg(product), matmul(n.arg(state[0]), w.state))), state[1]);
    return Tensors{next.h, next.c};
  });
}

// With `linear_before_reset` the reset gate scales the product of the state, as in PyTorch; without, it scales the state.
Tensors gru(NodeCall& n) {
  require_activations(n, {"Sigmoid", "Tanh"});
  const Layer layer = layer_of(n, 3);
  const std::int64_t hidden = layer.hidden;
  const auto biased = [&](const Tensor& t, const Tensor& bias) { return bias.defined() ? add(n.arg(t), bias) : t; };
  if (n.flag("linear_before_reset"))
    return run_layer(n, layer, {{1, 0, 2}, 1, false}, [&](const Weights& w, const Tensor& product, const Tensors& state) {
      return Tensors{gru_cell(n.arg(product), biased(matmul(n.arg(state[0]), w.state), w.state_bias), state[0])};
    });
  return run_layer(n, layer, {{1, 0, 2}, 1}, [&](const Weights& w, const Tensor& product, const Tensors& state) {
    const auto part = [&](const Tensor& t, std::int64_t first, std::int64_t count) {
      return slice_along(n.arg(t), 1, first * hidden, (first + count) * hidden);
    };
    const Tensor gates = sigmoid(add(n.arg(part(product, 0, 2)), matmul(n.arg(state[0]), part(w.state, 0, 2))));
    const Tensor reset = part(gates, 0, 1), update = part(gates, 1, 1);
    const Tensor fresh = tanh(add(n.arg(part(product, 2, 1)), matmul(mul(n.arg(reset), state[0]), part(w.state, 2, 1))));
    return Tensors{add(n.arg(mul(sub(1, update), fresh)), mul(n.arg(update), state[0]))};
  });
}

Tensors rnn(NodeCall& n) {
  const std::vector<std::string> given = n.texts("activations", {"Tanh"});
  n.require(!given.empty() && (given[0] == "Tanh" || given[0] == "Relu"), "only the activations Tanh and Relu are supported");
  require_activations(n, {given[0]});
  const RnnActivation activation = given[0] == "Relu" ? RnnActivation::relu : RnnActivation::tanh;
  return run_layer(n, layer_of(n, 1), {{0}, 1}, [&](const Weights& w, const Tensor& product, const Tensors& state) {
    return Tensors{rnn_cell(n.arg(product), matmul(n.arg(state[0]), w.state), activation)};
  });
}

}  // namespace

std::vector<OnnxOp> recurrent_ops() {
  constexpr const char* kCommon = "activation_alpha activation_beta activations clip direction hidden_size layout";
  static const std::string lstm_attributes = std::string(kCommon) + " input_forget";
  static const std::string gru_attributes = std::string(kCommon) + " linear_before_reset";
  return {
      {"LSTM", 7, lstm_attributes.c_str(), lstm},
      {"GRU", 7, gru_attributes.c_str(), gru},
      {"RNN", 7, kCommon, rnn},
  };
}

}  // namespace tapedeck::onnx
