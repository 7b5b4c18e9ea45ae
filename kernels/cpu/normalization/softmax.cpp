// softmax and log_softmax along one axis, and their gradients, which read the result. Views are dense: [outer, axis, inner].
//
// Every sum along the axis is added in interleaved lanes and then pairwise (row_sums.h), for every inner size.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {
namespace {

// Calls body(offset of the row's first element) for every row along the axis, and sets the row's length n and its stride.
template <class Body>
void for_rows(const KernelCall& call, double ns_per_element, std::int64_t* n, std::int64_t* stride, Body&& body) {
  const View& x = call.outputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.sizes[d];
  for (int d = axis + 1; d < x.rank; ++d) inner *= x.sizes[d];
  *n = x.sizes[axis];
  *stride = inner;
  if (*n == 0) return;
  const std::int64_t length = *n;
  parallel_for(outer * inner, grain_for(ns_per_element * static_cast<double>(length) + 10),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) body(row / inner * length * inner + row % inner);
               });
}

template <class T>
void softmax_of(const KernelCall& call) {
  std::int64_t n, stride;
  for_rows(call, sizeof(T) == 4 ? 1.0 : 6.0, &n, &stride, [&](std::int64_t offset) {
    const T* x = call.inputs[0].as<T>() + offset;
    T* y = call.outputs[0].as<T>() + offset;
    const T top = row_max(x, n, stride);
    const T total = row_exp_sum(x, n, stride, top, [&](std::int64_t i, int count, const T* e) {
      for (int l = 0; l < count; ++l) y[(i + l) * stride] = e[l];
    });
    const T scale = T(1) / total;
    if (stride == 1)
      for (std::int64_t i = 0; i < n; ++i) y[i] *= scale;
    else
      for (std::int64_t i = 0; i < n; ++i) y[i * stride] *= scale;
  });
}

template <class T>
void log_softmax_of(const KernelCall& call) {
  std::int64_t n, stride;
  for_rows(call, sizeof(T) == 4 ? 1.0 : 6.0, &n, &stride, [&](std::int64_t offset) {
    const T* x = call.inputs[0].as<T>() + offset;
    T* y = call.outputs[0].as<T>() + offset;
    const LogSumExp<T> total = log_sum_exp(x, n, stride);
    for (std::int64_t i = 0; i < n; ++i) y[i * stride] = total.log_probability(x[i * stride]);
  });
}

}  // namespace

void softmax(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { softmax_of<decltype(t)>(call); });
}

void log_softmax(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { log_softmax_of<decltype(t)>(call); });
}

// dx = y (dy - sum(y dy))
void softmax_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    std::int64_t n, stride;
    for_rows(call, 0.5, &n, &stride, [&](std::int64_t offset) {
      const T* y = call.inputs[0].as<T>() + offset;
      const T* dy = call.inputs[1].as<T>() + offset;
      T* dx = call.outputs[0].as<T>() + offset;
      const T total = row_sum<T>(n, [&](std::int64_t i) { return y[i * stride] * dy[i * stride]; });
      for (std::int64_t i = 0; i < n; ++i) dx[i * stride] = y[i * stride] * (dy[i * stride] - total);
    });
  });
}

// dx = dy - exp(y) sum(dy)
void log_softmax_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    std::int64_t n, stride;
    for_rows(call, 1.0, &n, &stride, [&](std::int64_t offset) {
      const T* y = call.inputs[0].as<T>() + offset;
      const T* dy = call.inputs[1].as<T>() + offset;
      T* dx = call.outputs[0].as<T>() + offset;
      const T total = row_sum<T>(n, [&](std::int64_t i) { return dy[i * stride]; });
      for (std::int64_t i = 0; i < n; ++i) dx[i * stride] = dy[i * stride] - exp_of(y[i * stride]) * total;
    });
  });
}

}  // namespace tapedeck::kernels::cpu
