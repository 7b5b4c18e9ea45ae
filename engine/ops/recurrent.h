// Recurrent cells: one step each, after its matrix products. The gates in a tensor lie side by side in its last dimension,
// and each gate is as wide as the state. lstm_cell takes the sum of both products in one tensor. gru_cell and rnn_cell take
// two tensors: x, the product with the input, and s, the product with the state. unstack cuts a sequence into its steps.
#if !defined(TAPEDECK_ENGINE_OPS_RECURRENT_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_RECURRENT_H

#include <tapedeck/engine/ops/op_block.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

OP(lstm_cell,
   {
       .doc = "c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'); gates [n,4h] in the order i f g o, c [n,h] -> "
              "h', c'",
       .traits = kCheap | kFullPrecision,
       .inplace = {{1, 1}},
       .min_inputs = 2,
       .max_inputs = 2,
       .min_outputs = 2,
       .max_outputs = 2,
       .infer = infer_lstm_cell,
       .vjp = vjp_lstm_cell,
       .examples = {"lstm_cell(f32[3,20], f32[3,5])", "lstm_cell(f32[1,68], f32[1,17])", "lstm_cell(f32[0,8], f32[0,2])"},
   })

OP(lstm_cell_grad, {
                       .doc = "gradient of lstm_cell: gates, c, dh', dc' -> dgates, dc",
                       .traits = kCheap | kFullPrecision,
                       .inplace = {{0, 0}, {1, 3}, {1, 2}, {1, 1}},
                       .min_inputs = 4,
                       .max_inputs = 4,
                       .min_outputs = 2,
                       .max_outputs = 2,
                       .infer = infer_lstm_cell_grad,
                       .vjp = vjp_lstm_cell_grad,
                       .examples = {"lstm_cell_grad(f32[3,20], f32[3,5], f32[3,5], f32[3,5])",
                                    "lstm_cell_grad(f32[1,68], f32[1,17], f32[1,17], f32[1,17])"},
                   })

OP(gru_cell, {
                 .doc = "h' = (1 - z) n + z h with r = sigmoid(xr + sr), z = sigmoid(xz + sz), n = tanh(xn + r sn); x and s "
                        "[n,3h] in the order r z n "
                        "(from the input and from the state), h [n,h] -> h'",
                 .traits = kCheap | kFullPrecision,
                 .inplace = {{0, 2}},
                 .min_inputs = 3,
                 .max_inputs = 3,
                 .infer = infer_gru_cell,
                 .vjp = vjp_gru_cell,
                 .examples = {"gru_cell(f32[3,15], f32[3,15], f32[3,5])", "gru_cell(f32[1,51], f32[1,51], f32[1,17])"},
             })

OP(gru_cell_grad, {
                      .doc = "gradient of gru_cell: x, s, h, dh' -> dx, ds, dh",
                      .traits = kCheap | kFullPrecision,
                      .inplace = {{0, 0}, {1, 1}, {2, 3}, {2, 2}},
                      .min_inputs = 4,
                      .max_inputs = 4,
                      .min_outputs = 3,
                      .max_outputs = 3,
                      .infer = infer_gru_cell_grad,
                      .vjp = vjp_gru_cell_grad,
                      .examples = {"gru_cell_grad(f32[3,15], f32[3,15], f32[3,5], f32[3,5])",
                                   "gru_cell_grad(f32[1,51], f32[1,51], f32[1,17], f32[1,17])"},
                  })

OP(unstack,
   {
       .doc = "x [t,...] cut along its first dimension into t results of the remaining shape, each in bytes of its own",
       .traits = kCheap | kNativeHalf,
       .min_inputs = 1,
       .max_inputs = 1,
       .max_outputs = -1,
       .infer = infer_unstack,
       .vjp = vjp_unstack,
       .examples = {"unstack(f32[3,2,4])", "unstack(f32[2])", "unstack(i64[3,2])", "unstack(bool[1,3])", "unstack(f32[2,0])"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

// Returns the t slices of x [t,...]. Its gradient is one concatenation. The gradient of t calls of slice() would be a sum of
// t padded tensors.
std::vector<Tensor> unstack(const Arg& x);

struct LstmState {
  Tensor h, c;
};
// gates = x W + b + h U + b', [n,4h] in the order i f g o; c [n,h].
LstmState lstm_cell(const Arg& gates, const Tensor& c);
// x = input W + b and s = h U + b', both [n,3h] in the order r z n. Returns the next h [n,h].
inline Tensor gru_cell(const Arg& x, const Tensor& s, const Tensor& h) {
  return apply(ops::gru_cell, {&x.tensor(), &s, &h}, nullptr, x.site());
}
enum class RnnActivation { tanh, relu };
// x = input W + b and s = h U + b', both [n,h]. Returns the next h [n,h].
Tensor rnn_cell(const Arg& x, const Tensor& s, RnnActivation activation = RnnActivation::tanh);
#endif

}  // namespace TAPEDECK_API
#endif
