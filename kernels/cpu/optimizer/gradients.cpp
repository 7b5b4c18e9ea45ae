// Kernels over all gradients at once: whether all are finite, and the norm of all together; and the update of the loss scale.
#include <tapedeck/kernels/attrs/optimizer.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kMaxPieces = 64;

// True if no element is infinite or NaN: such an element has an exponent of all ones.
template <class Bits>
bool all_below(const View& v, Bits exponent) {
  const Bits* bits = v.as<Bits>();
  std::atomic<bool> finite{true};
  parallel_for(v.numel(), grain_for(0.1), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t found = 0;
    for (std::int64_t i = begin; i < end; ++i) found += (bits[i] & exponent) == exponent;
    if (found) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

bool finite(const View& v) {
  switch (v.dtype) {
    case DType::f64:
      return all_below<std::uint64_t>(v, 0x7FF0000000000000u);
    case DType::f16:
      return all_below<std::uint16_t>(v, 0x7C00u);
    case DType::bf16:
      return all_below<std::uint16_t>(v, 0x7F80u);
    default:
      return all_below<std::uint32_t>(v, 0x7F800000u);
  }
}

// The sum of squares in f64, so that it neither overflows nor loses precision for many elements. The size alone cuts the
// pieces, and the sums of the pieces are added in order.
template <class T>
double sum_of_squares(const View& v) {
  const T* x = v.as<T>();
  const std::int64_t n = v.numel(), piece = std::max<std::int64_t>(16 * 1024, (n + kMaxPieces - 1) / kMaxPieces);
  double parts[kMaxPieces] = {};
  parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
    parts[begin / piece] = row_sum<double>(end - begin, [&](std::int64_t i) {
      const double d = static_cast<double>(x[begin + i]);
      return d * d;
    });
  });
  for (std::int64_t half = kMaxPieces / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

template <class T>
void loss_scale_of(const KernelCall& call) {
  const auto& attrs = call.attributes<LossScaleAttrs>();
  const T scale = *call.inputs[0].as<T>();
  const std::int64_t streak = Add{}(*call.inputs[1].as<std::int64_t>(), std::int64_t{1});
  const bool finite = *call.inputs[2].as<unsigned char>() != 0, grows = finite && streak >= attrs.interval;
  const T grown = scale * static_cast<T>(attrs.growth);
  *call.outputs[0].as<T>() = !finite ? scale * static_cast<T>(attrs.backoff) : grows && !std::isinf(grown) ? grown : scale;
  *call.outputs[1].as<std::int64_t>() = finite && !grows ? streak : 0;
}

}  // namespace

void all_finite(const KernelCall& call) {
  bool all = true;
  for (int i = 0; i < call.n_inputs && all; ++i) all = finite(call.inputs[i]);
  *call.outputs[0].as<unsigned char>() = all;
}

void global_norm(const KernelCall& call) {
  double total = 0;
  for (int i = 0; i < call.n_inputs; ++i)
    for_floats(call, call.inputs[i].dtype, [&](auto t) { total += sum_of_squares<decltype(t)>(call.inputs[i]); });
  for_floats(call, call.outputs[0].dtype,
             [&](auto t) { *call.outputs[0].as<decltype(t)>() = static_cast<decltype(t)>(std::sqrt(total)); });
}

void loss_scale_next(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { loss_scale_of<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
