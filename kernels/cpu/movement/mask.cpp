// Kernels that select the elements where a mask is true: nonzero, masked_select, and masked_scatter, which puts selected
// elements back. All views are dense.
//
//   masked_select  x = [a b c d], mask = [0 1 0 1]   ->   [b d]
//
// The elements are counted in blocks, then each block learns how many selected elements precede it, then all blocks write in
// parallel. The type of the result promises a count. A different count is reported, and no element beyond the promise is read
// or written.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/movement/movement.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <utility>

namespace tapedeck::kernels::cpu {

void nonzero(const KernelCall& call);
void masked_select(const KernelCall& call);
void masked_scatter(const KernelCall& call);

namespace {

constexpr std::int64_t kMaskBlock = 16384;  // the workspace rule in engine/ops/index.cpp uses the same number

// Calls fill(begin, end, number, stop) for blocks [begin, end) of the n elements. The first selected element at or after
// `begin` has the number `number` among all selected elements, and elements numbered below `stop` are to be written. fill may
// write an unselected element to the current number: the next selected element overwrites it, and one follows as long as the
// number is below `stop`. So fill needs no branch on the mask. Returns how many elements were selected.
template <class Holds, class Fill>
std::int64_t for_held(const KernelCall& call, std::int64_t n, std::int64_t count, const Holds& holds, const Fill& fill) {
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
    for (std::int64_t b = begin; b < end; ++b)
      fill(b * kMaskBlock, std::min(n, (b + 1) * kMaskBlock), before[b],
           std::min(count, b + 1 < blocks ? before[b + 1] : total));
  });
  return std::min(count, total);
}

template <class T>
void coordinates_of_held(const KernelCall& call) {
  const View& x = call.inputs[0];
  const T* from = x.as<T>();
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  const auto holds = [=](std::int64_t i) { return from[i] != T(0); };
  const auto fill = [&](std::int64_t begin, std::int64_t end, std::int64_t number, std::int64_t stop) {
    if (x.rank == 0) return;  // a tensor of rank 0 has no coordinates
    const int last = x.rank - 1;
    std::int64_t at[kMaxRank], rest = begin;
    for (int d = last; d >= 0; --d) {
      at[d] = rest % x.sizes[d];
      rest /= x.sizes[d];
    }
    for (std::int64_t i = begin; i < end && number < stop;) {
      const std::int64_t first = number, row_end = std::min(end, i + x.sizes[last] - at[last]);
      for (; i < row_end && number < stop; ++i, ++at[last]) {
        out[number * x.rank + last] = at[last];
        number += holds(i);
      }
      for (std::int64_t k = first; k < number; ++k)
        for (int d = 0; d < last; ++d) out[k * x.rank + d] = at[d];
      at[last] = 0;
      for (int d = last - 1; d >= 0 && ++at[d] == x.sizes[d]; --d) at[d] = 0;
    }
  };
  const std::int64_t taken = for_held(call, x.numel(), call.outputs[0].sizes[0], holds, fill);
  std::fill(out + taken * x.rank, out + call.outputs[0].numel(), 0);
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
    const auto holds = [=](std::int64_t i) { return mask[i] != 0; };
    const auto fill = [=](std::int64_t begin, std::int64_t end, std::int64_t number, std::int64_t stop) {
      for (std::int64_t i = begin; i < end && number < stop; ++i) {
        out[number] = x[i];
        number += holds(i);
      }
    };
    const std::int64_t taken = for_held(call, call.inputs[1].numel(), count, holds, fill);
    std::fill(out + taken, out + count, decltype(t)(0));
  });
}

void masked_scatter(const KernelCall& call) {
  const auto* mask = call.inputs[1].as<std::uint8_t>();
  if (call.inputs[0].data != call.outputs[0].data) copy_view(call.inputs[0], call.outputs[0]);
  for_widths(call.outputs[0].dtype, [&](auto t) {
    const auto* src = call.inputs[2].as<decltype(t)>();
    auto* out = call.outputs[0].as<decltype(t)>();
    const auto holds = [=](std::int64_t i) { return mask[i] != 0; };
    const std::int64_t n = call.inputs[1].numel(), count = call.inputs[2].numel();
    for_held(call, n, count, holds, [=](std::int64_t begin, std::int64_t end, std::int64_t number, std::int64_t stop) {
      for (std::int64_t i = begin; i < end && number < stop; ++i) {
        const auto old = out[i], next = src[number];
        out[i] = holds(i) ? next : old;
        number += holds(i);
      }
    });
  });
}

}  // namespace tapedeck::kernels::cpu
