// Inference and gradients of the recurrent cells. The gradient ops have gradients too: the derivatives of the formulas in
// kernels/cpu/elementwise/recurrent.cpp.
//
//       lstm:  gates [n,4h] = i f g o      c' = sigmoid(f) c + sigmoid(i) tanh(g)      h' = sigmoid(o) tanh(c')
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/recurrent.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

constexpr std::int64_t kMostResults = 1 << 16;

// Checks that operand `state` is [n,h] and operand `gates` is [n, count * h].
void require_gates(const Infer& f, std::size_t gates, std::size_t state, std::int64_t count) {
  const Type &g = f.inputs[gates], &s = f.inputs[state];
  infer_require_float(f, s);
  if (s.shape.rank != 2) f.fail(fmt::format("the state needs two dimensions, got {}", to_string(s)));
  if (s.shape[1] > kMaxTypeBytes / count) f.fail("too large");
  const Type wanted{s.dtype, {s.shape[0], count * s.shape[1]}};
  if (g != wanted) f.fail(fmt::format("the gates must be {}, not {}", to_string(wanted), to_string(g)));
}

void require_state(const Infer& f, std::size_t i, const Type& state) {
  if (f.inputs[i] != state) f.fail(fmt::format("operand {} must be {}, not {}", i, to_string(state), to_string(f.inputs[i])));
}

void infer_lstm_cell(Infer& f) {
  require_gates(f, 0, 1, 4);
  const Type state = f.inputs[1];
  f.outputs = {state, state};
}

void infer_lstm_cell_grad(Infer& f) {
  require_gates(f, 0, 1, 4);
  const Type gates = f.inputs[0], state = f.inputs[1];
  require_state(f, 2, state);
  require_state(f, 3, state);
  f.outputs = {gates, state};
}

void infer_gru_cell(Infer& f) {
  require_gates(f, 0, 2, 3);
  require_gates(f, 1, 2, 3);
  f.outputs.assign(1, Type(f.inputs[2]));
}

void infer_gru_cell_grad(Infer& f) {
  require_gates(f, 0, 2, 3);
  require_gates(f, 1, 2, 3);
  const Type gates = f.inputs[0], state = f.inputs[2];
  require_state(f, 3, state);
  f.outputs = {gates, gates, state};
}

void infer_unstack(Infer& f) {
  const Type x = f.inputs[0];
  if (x.shape.rank < 1 || x.shape[0] < 1)
    f.fail(fmt::format("needs at least one element along the first dimension, got {}", to_string(x)));
  if (x.shape[0] > kMostResults)
    f.fail(fmt::format("{} has more than {} elements along the first dimension", to_string(x), kMostResults));
  Type out{x.dtype, {}};
  for (int d = 1; d < x.shape.rank; ++d) out.shape.sizes[out.shape.rank++] = x.shape[d];
  f.outputs.assign(static_cast<std::size_t>(x.shape[0]), out);
}

void vjp_unstack(Vjp& b) {
  Shape one = b.x(0).shape();
  one[0] = 1;
  std::vector<Tensor> pieces;
  for (std::int64_t i = 0; i < b.x(0).size(0); ++i) pieces.push_back(reshape(b.dy(static_cast<int>(i)), one));
  b.dx(0, concat(pieces, 0, b.site()));
}

// Gate number `index`, as wide as `state`.
Tensor gate(const Tensor& gates, const Tensor& state, std::int64_t index) {
  return slice(gates, 1, index * state.size(1), (index + 1) * state.size(1));
}

Tensor one_minus(const Tensor& x) { return sub(1, x); }
// The derivatives of sigmoid and tanh, from their results s and t.
Tensor sigmoid_slope(const Tensor& s) { return mul(s, one_minus(s)); }
Tensor tanh_slope(const Tensor& t) { return one_minus(square(t)); }

void vjp_lstm_cell(Vjp& b) {
  const Tensor operands[4] = {b.x(0), b.x(1), b.dy(0), b.dy(1)};
  const std::vector<Tensor> grads = apply_all(ops::lstm_cell_grad, operands, nullptr, b.site());
  b.dx(0, grads[0]);
  b.dx(1, grads[1]);
}

void vjp_lstm_cell_grad(Vjp& b) {
  const Tensor &gates = b.x(0), &c = b.x(1), &dh = b.x(2), &dnext = b.x(3);
  const Tensor i = sigmoid(gate(gates, c, 0)), f = sigmoid(gate(gates, c, 1)), g = tanh(gate(gates, c, 2)),
               o = sigmoid(gate(gates, c, 3));
  const Tensor ai = gate(b.dy(0), c, 0), af = gate(b.dy(0), c, 1), ag = gate(b.dy(0), c, 2), ao = gate(b.dy(0), c, 3),
               ac = b.dy(1);
  const Tensor i_slope = sigmoid_slope(i), f_slope = sigmoid_slope(f), g_slope = tanh_slope(g), o_slope = sigmoid_slope(o);
  const Tensor t = tanh(add(mul(f, c), mul(i, g))), t_slope = tanh_slope(t);
  const Tensor dcell = add(dnext, mul(dh, mul(o, t_slope)));
  // u is the gradient with respect to dcell. v is the gradient with respect to the next c, through t = tanh(next c).
  const Tensor u = add(add(mul(ai, mul(g, i_slope)), mul(af, mul(c, f_slope))), add(mul(ag, mul(i, g_slope)), mul(ac, f)));
  const Tensor v = mul(mul(dh, t_slope), sub(mul(ao, o_slope), mul(mul(o, t), mul(u, 2))));
  const Tensor by_i = add(mul(dcell, add(mul(mul(ai, g), sub(1, mul(i, 2))), mul(ag, g_slope))), mul(v, g));
  const Tensor by_f = add(mul(dcell, add(mul(mul(af, c), sub(1, mul(f, 2))), ac)), mul(v, c));
  const Tensor by_g = add(mul(dcell, sub(mul(ai, i_slope), mul(mul(ag, g), mul(i, 2)))), mul(v, i));
  const Tensor by_o = mul(dh, add(mul(u, t_slope), mul(mul(ao, t), sub(1, mul(o, 2)))));
  b.dx(0, concat({mul(by_i, i_slope), mul(by_f, f_slope), mul(by_g, g_slope), mul(by_o, o_slope)}, 1, b.site()));
  b.dx(1, add(mul(dcell, mul(af, f_slope)), mul(v, f)));
  b.dx(2, add(mul(u, mul(o, t_slope)), mul(ao, mul(t, o_slope))));
  b.dx(3, u);
}

void vjp_gru_cell(Vjp& b) {
  const Tensor operands[4] = {b.x(0), b.x(1), b.x(2), b.dy(0)};
  const std::vector<Tensor> grads = apply_all(ops::gru_cell_grad, operands, nullptr, b.site());
  for (int i = 0; i < 3; ++i) b.dx(i, grads[i]);
}

void vjp_gru_cell_grad(Vjp& b) {
  const Tensor &x = b.x(0), &s = b.x(1), &h = b.x(2), &head = b.x(3);
  const Tensor state = gate(s, h, 2);
  const Tensor r = sigmoid(add(gate(x, h, 0), gate(s, h, 0))), z = sigmoid(add(gate(x, h, 1), gate(s, h, 1)));
  const Tensor n = tanh(add(gate(x, h, 2), mul(r, state)));
  const Tensor r_slope = sigmoid_slope(r), z_slope = sigmoid_slope(z), n_slope = tanh_slope(n);
  const Tensor ar = add(gate(b.dy(0), h, 0), gate(b.dy(1), h, 0)), az = add(gate(b.dy(0), h, 1), gate(b.dy(1), h, 1));
  const Tensor as = gate(b.dy(1), h, 2), ah = b.dy(2), from_n = sub(h, n);
  const Tensor dn = mul(head, mul(one_minus(z), n_slope));
  // w is the gradient with respect to dn. through_z is the gradient with respect to the product head (h - n).
  const Tensor w = add(mul(ar, mul(state, r_slope)), add(gate(b.dy(0), h, 2), mul(as, r)));
  const Tensor through_z = mul(az, z_slope);
  const Tensor by_r = mul(dn, add(mul(mul(ar, state), sub(1, mul(r, 2))), as));
  const Tensor by_z = mul(head, sub(add(mul(mul(az, from_n), sub(1, mul(z, 2))), ah), mul(n_slope, w)));
  const Tensor by_n = neg(mul(head, add(mul(mul(n, 2), mul(one_minus(z), w)), through_z)));
  const Tensor to_n = mul(by_n, n_slope);
  const Tensor to_r = mul(add(by_r, mul(to_n, state)), r_slope), to_z = mul(by_z, z_slope);
  const Tensor to_state = add(mul(dn, mul(ar, r_slope)), mul(to_n, r));
  b.dx(0, concat({to_r, to_z, to_n}, 1, b.site()));
  b.dx(1, concat({to_r, to_z, to_state}, 1, b.site()));
  b.dx(2, mul(head, through_z));
  b.dx(3, add(mul(mul(one_minus(z), n_slope), w), add(mul(from_n, through_z), mul(ah, z))));
}

}  // namespace

std::vector<Tensor> unstack(const Arg& x) {
  const Tensor operands[1] = {x.tensor()};
  return apply_all(ops::unstack, operands, nullptr, x.site());
}

LstmState lstm_cell(const Arg& gates, const Tensor& c) {
  const Tensor operands[2] = {gates.tensor(), c};
  const std::vector<Tensor> r = apply_all(ops::lstm_cell, operands, nullptr, gates.site());
  return {r[0], r[1]};
}

Tensor rnn_cell(const Arg& x, const Tensor& s, RnnActivation activation) {
  const Tensor total = add(x, s);
  return activation == RnnActivation::tanh ? tanh(total) : relu(total);
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/recurrent.h>
