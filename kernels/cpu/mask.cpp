// Picking out the elements where a mask holds: nonzero, masked_select, and masked_scatter, which puts them back. Dense views.
//
// The elements are counted in blocks, each block learns how many come before it, and then all blocks write at once. Where the
// count is not the one that the types promise, that is reported and nothing is read or written beyond them.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/movement.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <utility>

namespace tapedeck::kernels::cpu {

void nonzero(const KernelCall& call);
void masked_select(const KernelCall& call);
void masked_scatter(const KernelCall& call);

namespace {

constexpr std::int64_t kMaskBlock = 16384;  // the workspace rule in engine/ops/index.cpp knows it too

// Calls pick(i, number) for every i below n with holds(i), numbered from 0 in order, as long as the number is below `count`.
template <class Holds, class Pick>
void for_held(const KernelCall& call, std::int64_t n, std::int64_t count, const Holds& holds, const Pick& pick) {
  const std::int64_t blocks = (n + kMaskBlock - 1) / kMaskBlock;
  auto* before = static_cast<std::int64_t*>(call.workspace);
  parallel_for(blocks, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      std::int64_t held = 0;
      for (std::int64_t i = b * kMaskBlock; i < std::min(n, (b + 1) * kMaskBlock); ++i) held += holds(i);
      before[b] = held;
    }
  });
  std::int64_t total = 0;
  for (std::int64_t b = 0; b < blocks; ++b) total += std::exchange(before[b], total);
  if (total != count) call.fault->report("another number of elements than promised", total);
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      std::int64_t number = before[b];
      for (std::int64_t i = b * kMaskBlock; i < std::min(n, (b + 1) * kMaskBlock) && number < count; ++i)
        if (holds(i)) pick(i, number++);
    }
  });
}

template <class T>
void coordinates_of_held(const KernelCall& call) {
  const View& x = call.inputs[0];
  const T* from = x.as<T>();
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  std::fill(out, out + call.outputs[0].numel(), 0);
  for_held(
      call, x.numel(), call.outputs[0].sizes[0], [=](std::int64_t i) { return from[i] != T(0); },
      [&](std::int64_t i, std::int64_t number) {
        std::int64_t* at = out + number * x.rank;
        for (int d = x.rank - 1; d > 0; --d) {
          at[d] = i % x.sizes[d];
          i /= x.sizes[d];
        }
        if (x.rank > 0) at[0] = i;
      });
}

}  // namespace

void nonzero(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, [&](auto t) { coordinates_of_held<decltype(t)>(call); });
}

void masked_select(const KernelCall& call) {
  const auto* mask = call.inputs[1].as<std::uint8_t>();
  const std::int64_t count = call.outputs[0].numel();
  for_widths(call.outputs[0].dtype, [&](auto t) {
    const auto* x = call.inputs[0].as<decltype(t)>();
    auto* out = call.outputs[0].as<decltype(t)>();
    std::fill(out, out + count, decltype(t)(0));
    for_held(
        call, call.inputs[1].numel(), count, [=](std::int64_t i) { return mask[i] != 0; },
        [=](std::int64_t i, std::int64_t number) { out[number] = x[i]; });
  });
}

void masked_scatter(const KernelCall& call) {
  const auto* mask = call.inputs[1].as<std::uint8_t>();
  if (call.inputs[0].data != call.outputs[0].data) copy_view(call.inputs[0], call.outputs[0]);
  for_widths(call.outputs[0].dtype, [&](auto t) {
    const auto* src = call.inputs[2].as<decltype(t)>();
    auto* out = call.outputs[0].as<decltype(t)>();
    for_held(
        call, call.inputs[1].numel(), call.inputs[2].numel(), [=](std::int64_t i) { return mask[i] != 0; },
        [=](std::int64_t i, std::int64_t number) { out[i] = src[number]; });
  });
}

}  // namespace tapedeck::kernels::cpu
