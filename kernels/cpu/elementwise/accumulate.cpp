// add_n: the sum of many operands of one type. addcmul: a running sum plus a product.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kBlock = 512;

// Calls f(k, element) for n elements of v, beginning with number `first` in row-major order. f may write the element.
template <class T, class F>
void for_elements(const View& v, std::int64_t first, std::int64_t n, F&& f) {
  if (v.dense()) {
    T* x = v.as<T>() + first;
    TAPEDECK_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) f(k, x[k]);
    return;
  }
  std::int64_t at[kMaxRank] = {}, offset = 0, rest = first;
  for (int d = v.rank - 1; d >= 0; --d) {
    at[d] = rest % v.sizes[d];
    rest /= v.sizes[d];
    offset += at[d] * v.strides[d];
  }
  for (std::int64_t k = 0; k < n; ++k) {
    f(k, v.as<T>()[offset]);
    for (int d = v.rank - 1; d >= 0; --d) {
      offset += v.strides[d];
      if (++at[d] < v.sizes[d]) break;
      offset -= v.strides[d] * v.sizes[d];
      at[d] = 0;
    }
  }
}

// Adds the operands left to right, block by block. A block of the result is written after all operands of this block are read,
// because the result may lie on an operand.
template <class T>
void add_n_of(const KernelCall& call) {
  parallel_for(call.outputs[0].numel(), grain_for(0.2 * call.n_inputs), [&](std::int64_t begin, std::int64_t end) {
    T sum[kBlock];
    for (std::int64_t first = begin; first < end; first += kBlock) {
      const std::int64_t n = std::min(kBlock, end - first);
      for_elements<T>(call.inputs[0], first, n, [&](std::int64_t k, T x) { sum[k] = x; });
      for (std::int32_t i = 1; i < call.n_inputs; ++i)
        for_elements<T>(call.inputs[i], first, n, [&](std::int64_t k, T x) { sum[k] = Add{}(sum[k], x); });
      for_elements<T>(call.outputs[0], first, n, [&](std::int64_t k, T& to) { to = sum[k]; });
    }
  });
}

struct AddProduct {
  template <class T>
  T operator()(T sum, T a, T b) const {
    return Add{}(sum, Mul{}(a, b));
  }
};

}  // namespace

void add_n(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) { add_n_of<decltype(t)>(call); });
}

void addcmul(const KernelCall& call) {
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    map<T, T, T, T>(call, AddProduct{});
  });
}

}  // namespace tapedeck::kernels::cpu
