// One step of LSTM and GRU cells, and the gradient of one step. A step reads the results of the matrix products and the old
// state, and writes the new state; each kernel makes one pass over memory.
//
//   lstm_cell   gates [n,4h] (i f g o), c [n,h]               ->  h [n,h], next c [n,h]
//   gru_cell    xi [n,3h], hi [n,3h] (r z n), h [n,h]         ->  next h [n,h]
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <cstdint>
#include <cstring>

namespace tapedeck::kernels::cpu {
namespace {

// Calls f(row) for every row of `state` [n,h].
template <class F>
void for_states(const View& state, double ns_per_element, F&& f) {
  const double ns = ns_per_element * static_cast<double>(state.sizes[1]) + 5;
  parallel_for(state.sizes[0], grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) f(row);
  });
}

// (gates [i f g o], c) -> (h, next c), row by row.
template <class T>
void lstm_cell_of(const KernelCall& call) {
  const std::int64_t size = call.inputs[1].sizes[1];
  for_states(call.inputs[1], sizeof(T) == 4 ? 2 : 40, [&](std::int64_t row) {
    const T *gates = call.inputs[0].as<T>() + row * 4 * size, *c = call.inputs[1].as<T>() + row * size;
    T *h = call.outputs[0].as<T>() + row * size, *next = call.outputs[1].as<T>() + row * size;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < size; ++j) {
      const T cell = sigmoid_of(gates[size + j]) * c[j] + sigmoid_of(gates[j]) * tanh_of(gates[2 * size + j]);
      next[j] = cell;
      h[j] = sigmoid_of(gates[3 * size + j]) * tanh_of(cell);
    }
  });
}

// (gates, c, dh, dnext) -> (dgates, dc), where dnext is the gradient of the next c.
template <class T>
void lstm_cell_grad_of(const KernelCall& call) {
  const std::int64_t size = call.inputs[1].sizes[1];
  for_states(call.inputs[1], sizeof(T) == 4 ? 3 : 40, [&](std::int64_t row) {
    const T *gates = call.inputs[0].as<T>() + row * 4 * size, *c = call.inputs[1].as<T>() + row * size,
            *dh = call.inputs[2].as<T>() + row * size, *dnext = call.inputs[3].as<T>() + row * size;
    T *dgates = call.outputs[0].as<T>() + row * 4 * size, *dc = call.outputs[1].as<T>() + row * size;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < size; ++j) {
      const T i = sigmoid_of(gates[j]), f = sigmoid_of(gates[size + j]), g = tanh_of(gates[2 * size + j]),
              o = sigmoid_of(gates[3 * size + j]);
      const T before = c[j], t = tanh_of(f * before + i * g), head = dh[j];
      const T dcell = dnext[j] + head * (o * (T(1) - t * t));
      dgates[j] = dcell * (g * (i * (T(1) - i)));
      dgates[size + j] = dcell * (before * (f * (T(1) - f)));
      dgates[2 * size + j] = dcell * (i * (T(1) - g * g));
      dgates[3 * size + j] = head * (t * (o * (T(1) - o)));
      dc[j] = dcell * f;
    }
  });
}

// (xi, hi, h) -> next h, where xi and hi hold three gates each: r z n.
template <class T>
void gru_cell_of(const KernelCall& call) {
  const std::int64_t size = call.inputs[2].sizes[1];
  for_states(call.inputs[2], sizeof(T) == 4 ? 1.5 : 30, [&](std::int64_t row) {
    const T *x = call.inputs[0].as<T>() + row * 3 * size, *s = call.inputs[1].as<T>() + row * 3 * size,
            *h = call.inputs[2].as<T>() + row * size;
    T* next = call.outputs[0].as<T>() + row * size;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < size; ++j) {
      const T r = sigmoid_of(x[j] + s[j]), z = sigmoid_of(x[size + j] + s[size + j]);
      const T n = tanh_of(x[2 * size + j] + r * s[2 * size + j]);
      next[j] = n + z * (h[j] - n);
    }
  });
}

// (xi, hi, h, dnext) -> (dxi, dhi, dh), where dnext is the gradient of the next h.
template <class T>
void gru_cell_grad_of(const KernelCall& call) {
  const std::int64_t size = call.inputs[2].sizes[1];
  for_states(call.inputs[2], sizeof(T) == 4 ? 2 : 30, [&](std::int64_t row) {
    const T *x = call.inputs[0].as<T>() + row * 3 * size, *s = call.inputs[1].as<T>() + row * 3 * size,
            *h = call.inputs[2].as<T>() + row * size, *dnext = call.inputs[3].as<T>() + row * size;
    T *dx = call.outputs[0].as<T>() + row * 3 * size, *ds = call.outputs[1].as<T>() + row * 3 * size,
      *dh = call.outputs[2].as<T>() + row * size;
    TAPEDECK_INDEPENDENT
    for (std::int64_t j = 0; j < size; ++j) {
      const T r = sigmoid_of(x[j] + s[j]), z = sigmoid_of(x[size + j] + s[size + j]), state = s[2 * size + j];
      const T n = tanh_of(x[2 * size + j] + r * state), head = dnext[j];
      const T dn = head * ((T(1) - z) * (T(1) - n * n));
      const T dr = dn * (state * (r * (T(1) - r))), dz = head * ((h[j] - n) * (z * (T(1) - z)));
      dx[j] = ds[j] = dr;
      dx[size + j] = ds[size + j] = dz;
      dx[2 * size + j] = dn;
      ds[2 * size + j] = dn * r;
      dh[j] = head * z;
    }
  });
}

}  // namespace

void unstack(const KernelCall& call) {
  const std::size_t bytes = static_cast<std::size_t>(call.outputs[0].numel()) * dtype_size(call.outputs[0].dtype);
  if (bytes == 0) return;
  const auto* x = static_cast<const unsigned char*>(call.inputs[0].data);
  parallel_for(call.n_outputs, grain_for(0.1 * static_cast<double>(bytes) + 5), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(call.outputs[i].data, x + static_cast<std::size_t>(i) * bytes, bytes);
  });
}

void lstm_cell(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { lstm_cell_of<decltype(t)>(call); });
}
void lstm_cell_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { lstm_cell_grad_of<decltype(t)>(call); });
}
void gru_cell(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { gru_cell_of<decltype(t)>(call); });
}
void gru_cell_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { gru_cell_grad_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
