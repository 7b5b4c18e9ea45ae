// One step of LSTM and GRU cells after their matrix products, and the gradient of one step. A thread computes one element of
// the state, from the gates that lie `size` elements apart in a row:
//
//   lstm_cell   gates [n,4h] (i f g o), c [n,h]               ->  h [n,h], next c [n,h]
//   gru_cell    xi [n,3h], hi [n,3h] (r z n), h [n,h]         ->  next h [n,h]
//
// All operands are dense. A thread reads everything before it writes, so results may lie on operands.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

struct Cells {
  std::int64_t n;     // elements of the state
  std::int64_t size;  // of a row of the state
  const void* in[4];
  void* out[3];
  DType dtype;  // of all operands
};

template <class T>
TAPEDECK_DEVICE Value<T> get(const Cells& cells, int k, std::int64_t at) {
  return load<T>(cells.in[k], cells.dtype, at);
}
template <class T>
TAPEDECK_DEVICE void put(const Cells& cells, int k, std::int64_t at, Value<T> x) {
  store<T>(cells.out[k], cells.dtype, at, x);
}

// The place of element i of the state among the gates: gate g lies g * size elements further.
TAPEDECK_DEVICE std::int64_t first_gate(const Cells& cells, std::int64_t i, int gates) {
  return i / cells.size * (gates - 1) * cells.size + i;
}

struct LstmCell {
  template <class T>
  TAPEDECK_DEVICE static void step(const Cells& cells, std::int64_t i) {
    using V = Value<T>;
    const std::int64_t at = first_gate(cells, i, 4), size = cells.size;
    const V in = get<T>(cells, 0, at), forget = get<T>(cells, 0, at + size), fresh = get<T>(cells, 0, at + 2 * size),
            out = get<T>(cells, 0, at + 3 * size), c = get<T>(cells, 1, i);
    const V cell = sigmoid_of(forget) * c + sigmoid_of(in) * tanh_of(fresh);
    put<T>(cells, 1, i, cell);
    put<T>(cells, 0, i, sigmoid_of(out) * tanh_of(cell));
  }
};

struct LstmCellGrad {
  template <class T>
  TAPEDECK_DEVICE static void step(const Cells& cells, std::int64_t j) {
    using V = Value<T>;
    const std::int64_t at = first_gate(cells, j, 4), size = cells.size;
    const V i = sigmoid_of(get<T>(cells, 0, at)), f = sigmoid_of(get<T>(cells, 0, at + size)),
            g = tanh_of(get<T>(cells, 0, at + 2 * size)), o = sigmoid_of(get<T>(cells, 0, at + 3 * size));
    const V before = get<T>(cells, 1, j), head = get<T>(cells, 2, j), dnext = get<T>(cells, 3, j);
    const V t = tanh_of(f * before + i * g);
    const V dcell = dnext + head * (o * (V(1) - t * t));
    put<T>(cells, 0, at, dcell * (g * (i * (V(1) - i))));
    put<T>(cells, 0, at + size, dcell * (before * (f * (V(1) - f))));
    put<T>(cells, 0, at + 2 * size, dcell * (i * (V(1) - g * g)));
    put<T>(cells, 0, at + 3 * size, head * (t * (o * (V(1) - o))));
    put<T>(cells, 1, j, dcell * f);
  }
};

struct GruCell {
  template <class T>
  TAPEDECK_DEVICE static void step(const Cells& cells, std::int64_t i) {
    using V = Value<T>;
    const std::int64_t at = first_gate(cells, i, 3), size = cells.size;
    const V r = sigmoid_of(get<T>(cells, 0, at) + get<T>(cells, 1, at)),
            z = sigmoid_of(get<T>(cells, 0, at + size) + get<T>(cells, 1, at + size));
    const V n = tanh_of(get<T>(cells, 0, at + 2 * size) + r * get<T>(cells, 1, at + 2 * size));
    put<T>(cells, 0, i, n + z * (get<T>(cells, 2, i) - n));
  }
};

struct GruCellGrad {
  template <class T>
  TAPEDECK_DEVICE static void step(const Cells& cells, std::int64_t j) {
    using V = Value<T>;
    const std::int64_t at = first_gate(cells, j, 3), size = cells.size;
    const V r = sigmoid_of(get<T>(cells, 0, at) + get<T>(cells, 1, at)),
            z = sigmoid_of(get<T>(cells, 0, at + size) + get<T>(cells, 1, at + size)), state = get<T>(cells, 1, at + 2 * size);
    const V n = tanh_of(get<T>(cells, 0, at + 2 * size) + r * state), h = get<T>(cells, 2, j), head = get<T>(cells, 3, j);
    const V dn = head * ((V(1) - z) * (V(1) - n * n));
    const V dr = dn * (state * (r * (V(1) - r))), dz = head * ((h - n) * (z * (V(1) - z)));
    for (int k = 0; k < 2; ++k) {
      put<T>(cells, k, at, dr);
      put<T>(cells, k, at + size, dz);
      put<T>(cells, k, at + 2 * size, k == 0 ? dn : dn * r);
    }
    put<T>(cells, 2, j, head * z);
  }
};

template <class Step, class T>
TAPEDECK_KERNEL void cell_kernel(const Cells cells) {
  for (std::int64_t i = thread_index(); i < cells.n; i += thread_count()) Step::template step<T>(cells, i);
}

// `state` is a view [n,h].
template <class Step>
void run_cells(const KernelCall& call, const View& state) {
  Cells cells{state.numel(), state.sizes[1], {}, {}, state.dtype};
  if (cells.n == 0) return;
  for (int k = 0; k < call.n_inputs; ++k) cells.in[k] = call.inputs[k].data;
  for (int k = 0; k < call.n_outputs; ++k) cells.out[k] = call.outputs[k].data;
  for_reals(call, state.dtype,
            [&](auto t) { launch<Cells>(call, &cell_kernel<Step, decltype(t)>, for_items(cells.n), cells); });
}

void lstm_cell(const KernelCall& call) { run_cells<LstmCell>(call, call.inputs[1]); }
void lstm_cell_grad(const KernelCall& call) { run_cells<LstmCellGrad>(call, call.inputs[1]); }
void gru_cell(const KernelCall& call) { run_cells<GruCell>(call, call.inputs[2]); }
void gru_cell_grad(const KernelCall& call) { run_cells<GruCellGrad>(call, call.inputs[2]); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
