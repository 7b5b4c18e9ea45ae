// Tensors from a rule: full, arange, linspace, eye. A thread computes whole elements from their numbers. Results are dense.
#pragma once

#include <tapedeck/kernels/attrs/create.h>
#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// out[i] = rule(i), for the type of the arithmetic.
template <class Rule>
struct ByIndex {
  std::int64_t n;
  void* out;
  DType dtype;
  Rule rule;
};

template <class T, class Rule>
TAPEDECK_KERNEL void by_index_kernel(const ByIndex<Rule> by) {
  for (std::int64_t i = thread_index(); i < by.n; i += thread_count())
    store<T>(by.out, by.dtype, i, static_cast<Value<T>>(by.rule(i)));
}

template <class T, class Rule>
void by_index(const KernelCall& call, const Rule& rule) {
  const View& out = call.outputs[0];
  const std::int64_t n = out.numel();
  launch<ByIndex<Rule>>(call, &by_index_kernel<T, Rule>, for_items(n), {n, out.data, out.dtype, rule});
}

// Integers are exact. Floats are computed in f64 and rounded.
template <class T>
struct Steps {
  T start, step;
  TAPEDECK_HD T operator()(std::int64_t i) const { return start + static_cast<T>(i) * step; }
};

void arange(const KernelCall& call) {
  const auto& a = call.attributes<ArangeAttrs>();
  if (is_floating(call.outputs[0].dtype))
    return for_reals(call, call.outputs[0].dtype, [&](auto t) { by_index<decltype(t)>(call, Steps<double>{a.start, a.step}); });
  const Steps<std::int64_t> steps{static_cast<std::int64_t>(a.start), static_cast<std::int64_t>(a.step)};
  by_index<Integer>(call, steps);
}

// Each half is counted from its own end, so that both ends are exact.
struct Between {
  double start, stop, step;
  std::int64_t count;
  TAPEDECK_HD double operator()(std::int64_t i) const {
    return i < (count + 1) / 2 ? start + step * static_cast<double>(i) : stop - step * static_cast<double>(count - 1 - i);
  }
};

void linspace(const KernelCall& call) {
  const auto& a = call.attributes<LinspaceAttrs>();
  const double step = a.count > 1 ? (a.stop - a.start) / static_cast<double>(a.count - 1) : 0;
  for_reals(call, call.outputs[0].dtype, [&](auto t) { by_index<decltype(t)>(call, Between{a.start, a.stop, step, a.count}); });
}

// ---- one value again and again ----

// The bits of one element, as the lowest bytes of a word.
inline std::uint64_t bits_of(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return float_bits(static_cast<float>(value));
    case DType::f64:
      return double_bits(value);
    case DType::f16:
      return to_f16(static_cast<float>(value)).bits;
    case DType::bf16:
      return to_bf16(static_cast<float>(value)).bits;
    case DType::i32:
      return static_cast<std::uint32_t>(Cast<std::int32_t>{}(value));
    case DType::i64:
      return static_cast<std::uint64_t>(Cast<std::int64_t>{}(value));
    case DType::u8:
      return Cast<std::uint8_t>{}(value);
    default:
      return ToBool{}(value);
  }
}

// `word` repeats the element. The tensor is `head` bytes up to the first aligned word, then `words` words, then `rest` bytes.
// Heads are whole elements, so the pattern begins anew behind them.
struct Fill {
  std::uint64_t word;
  std::int64_t head, words, rest;
  std::uint8_t* out;
};

TAPEDECK_KERNEL void fill_kernel(const Fill fill) {
  auto* const words = reinterpret_cast<std::uint64_t*>(fill.out + fill.head);
  for (std::int64_t i = thread_index(); i < fill.words; i += thread_count()) words[i] = fill.word;
  const std::int64_t byte = thread_index();
  const auto value = static_cast<std::uint8_t>(fill.word >> (8 * (byte % 8)));
  if (byte < fill.head) fill.out[byte] = value;
  if (byte < fill.rest) fill.out[fill.head + fill.words * 8 + byte] = value;
}

void full(const KernelCall& call) {
  const View& out = call.outputs[0];
  const std::int64_t width = static_cast<std::int64_t>(dtype_size(out.dtype)), bytes = out.numel() * width;
  if (bytes == 0) return;
  std::uint64_t word = bits_of(out.dtype, call.attributes<FullAttrs>().value);
  for (std::int64_t have = width; have < 8; have *= 2) word |= word << (8 * have);
  const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out.data) % 8);
  const std::int64_t to_word = beyond == 0 ? 0 : 8 - beyond, head = to_word < bytes ? to_word : bytes;
  const Fill fill{word, head, (bytes - head) / 8, (bytes - head) % 8, out.as<std::uint8_t>()};
  launch<Fill>(call, &fill_kernel, for_items(fill.words > 0 ? fill.words : 1), fill);
}

template <class U>
struct Diagonal {
  U one;
  std::int64_t columns;
  TAPEDECK_HD U operator()(std::int64_t i) const { return i / columns == i % columns ? one : U(0); }
};

void eye(const KernelCall& call) {
  const View& out = call.outputs[0];
  for_element_widths(out.dtype, [&](auto t) {
    using U = decltype(t);
    by_index<U>(call, Diagonal<U>{static_cast<U>(bits_of(out.dtype, 1)), out.sizes[1]});
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
