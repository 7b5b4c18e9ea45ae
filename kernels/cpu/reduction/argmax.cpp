// argmax and argmin along one axis of a view of any strides. Of equal extremes the first counts; the first NaN counts as the
// extreme.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/parallel.h>

namespace tapedeck::kernels::cpu {
namespace {

template <bool kLargest, class T>
std::int64_t first_extreme(const T* x, std::int64_t n, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const T a = x[i * stride], b = x[best * stride];
    if ((kLargest ? a > b : a < b) || (a != a && b == b)) best = i;
  }
  return best;
}

template <bool kLargest, class T>
void index_of_extreme(const KernelCall& call) {
  const View& x = call.inputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  const std::int64_t n = x.sizes[axis], stride = x.strides[axis];
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  const std::int64_t results = call.outputs[0].numel();
  if (results > 0 && n == 0) {
    call.fault->report("argmax or argmin of no elements", 0);
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
      out[r] = first_extreme<kLargest>(x.as<T>() + offset, n, stride);
    }
  });
}

template <bool kLargest>
void extreme_of_any(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype,
              [&](auto t) { index_of_extreme<kLargest, decltype(t)>(call); });
}

}  // namespace

void argmin(const KernelCall& call);

void argmax(const KernelCall& call) { extreme_of_any<true>(call); }
void argmin(const KernelCall& call) { extreme_of_any<false>(call); }

}  // namespace tapedeck::kernels::cpu
