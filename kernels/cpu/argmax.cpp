// argmax along one axis, of a view of any strides: the first of the largest; the first NaN counts as largest.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {
namespace {

template <class T>
std::int64_t first_largest(const T* x, std::int64_t n, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const T a = x[i * stride], b = x[best * stride];
    if (a > b || (a != a && b == b)) best = i;
  }
  return best;
}

template <class T>
void argmax_of(const KernelCall& call) {
  const View& x = call.inputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  const std::int64_t n = x.sizes[axis], stride = x.strides[axis];
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  const std::int64_t results = call.outputs[0].numel();
  if (results > 0 && n == 0) {
    call.fault->report("argmax of no elements", 0);
    for (std::int64_t r = 0; r < results; ++r) out[r] = 0;
    return;
  }
  parallel_for(results, grain_for(static_cast<double>(n) + 5), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t offset = 0, rest = r;
      for (int d = x.rank - 1; d >= 0; --d) {
        if (d == axis) continue;
        offset += rest % x.sizes[d] * x.strides[d];
        rest /= x.sizes[d];
      }
      out[r] = first_largest(x.as<T>() + offset, n, stride);
    }
  });
}

}  // namespace

void argmax(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, [&](auto t) { argmax_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
