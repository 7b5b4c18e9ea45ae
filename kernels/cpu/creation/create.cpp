// Tensors made from a rule: arange, linspace, eye.
#include <tapedeck/kernels/attrs/create.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

// out[i] = f(i)
template <class T, class F>
void by_index(const View& out, F&& f) {
  T* to = out.as<T>();
  parallel_for(out.numel(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(f(i));
  });
}

}  // namespace

// Integers are exact. Floats are computed in f64 and rounded once.
void arange(const KernelCall& call) {
  const auto& a = call.attributes<ArangeAttrs>();
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_floating_point_v<T>) {
      by_index<T>(call.outputs[0], [&](std::int64_t i) { return a.start + static_cast<double>(i) * a.step; });
    } else {
      const auto start = static_cast<std::int64_t>(a.start), step = static_cast<std::int64_t>(a.step);
      by_index<T>(call.outputs[0], [&](std::int64_t i) { return start + i * step; });
    }
  });
}

// Each half is counted from its own end, so that both ends are exact.
void linspace(const KernelCall& call) {
  const auto& a = call.attributes<LinspaceAttrs>();
  const double step = a.count > 1 ? (a.stop - a.start) / static_cast<double>(a.count - 1) : 0;
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    by_index<decltype(t)>(call.outputs[0], [&](std::int64_t i) {
      return i < (a.count + 1) / 2 ? a.start + step * static_cast<double>(i)
                                   : a.stop - step * static_cast<double>(a.count - 1 - i);
    });
  });
}

void eye(const KernelCall& call) {
  const View& out = call.outputs[0];
  for_numbers(call, out.dtype == DType::boolean ? DType::u8 : out.dtype, [&](auto t) {
    using T = decltype(t);
    const std::int64_t columns = out.sizes[1];
    parallel_for(out.sizes[0], grain_for(0.2 * static_cast<double>(columns) + 1), [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<T>() + begin * columns, out.as<T>() + end * columns, T(0));
      for (std::int64_t row = begin; row < std::min(end, columns); ++row) out.as<T>()[row * columns + row] = T(1);
    });
  });
}

}  // namespace tapedeck::kernels::cpu
