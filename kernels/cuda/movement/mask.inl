// Ops that select the elements where a mask is true: nonzero, masked_select, and masked_scatter, which puts selected elements
// back. All views are dense.
//
//   masked_select  x = [a b c d], mask = [0 1 0 1]   ->   [b d]
//
// Every tile counts its selected elements, then one block adds the counts up, then all tiles write. The type of the result
// promises a count. A different count is reported, and no element beyond the promise is read or written.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cuda/movement/block_scan.h>
#include <tapedeck/kernels/cuda/movement/movement.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

constexpr std::int64_t kOwn = 8, kMaskTile = kOwn * kThreads;  // every thread takes eight elements side by side

struct Selection {
  const void* mask;  // a mask, or the numbers whose nonzeros are selected
  DType dtype;
  std::int64_t n, tiles, promised;
  std::int64_t* before;  // for every tile the number of elements selected before it; then the number of all
  KernelFault* fault;

  template <class T>
  TAPEDECK_DEVICE bool differs_from_zero(std::int64_t i) const {
    return static_cast<const T*>(mask)[i] != T(0);
  }
  TAPEDECK_DEVICE bool holds(std::int64_t i) const {
    switch (dtype) {
      case DType::f32:
        return differs_from_zero<float>(i);
      case DType::f64:
        return differs_from_zero<double>(i);
      case DType::i32:
        return differs_from_zero<std::int32_t>(i);
      case DType::i64:
        return differs_from_zero<std::int64_t>(i);
      default:
        return differs_from_zero<std::uint8_t>(i);
    }
  }
  TAPEDECK_DEVICE std::int64_t taken() const { return before[tiles] < promised ? before[tiles] : promised; }

  // Counts the selected ones of the elements [begin, begin + kOwn).
  TAPEDECK_DEVICE unsigned count_from(std::int64_t begin) const {
    unsigned held = 0;
    for (std::int64_t i = begin; i < begin + kOwn && i < n; ++i) held += holds(i) ? 1 : 0;
    return held;
  }
};

TAPEDECK_KERNEL void count_held_kernel(const Selection s) {
  TAPEDECK_SHARED movement::WarpSums sums;
  for (std::int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    unsigned total = 0;
    movement::scan_block(s.count_from(tile * kMaskTile + threadIdx.x * kOwn), sums, total);
    if (threadIdx.x == 0) s.before[tile] = total;
  }
}

TAPEDECK_KERNEL void add_up_held_kernel(const Selection s) {
  TAPEDECK_SHARED movement::WarpSums sums;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < s.tiles; first += blockDim.x) {
    const std::int64_t tile = first + threadIdx.x;
    unsigned total = 0;
    const unsigned earlier = movement::scan_block(tile < s.tiles ? static_cast<unsigned>(s.before[tile]) : 0u, sums, total);
    if (tile < s.tiles) s.before[tile] = before + earlier;
    before += total;
  }
  if (threadIdx.x != 0) return;
  s.before[s.tiles] = before;
  if (before != s.promised) report_fault(s.fault, Fault::another_count, before);
}

// Calls write(i, number) for every selected element i, which has this number among all selected ones, up to the promise.
template <class Write>
TAPEDECK_DEVICE void for_held(const Selection& s, movement::WarpSums& sums, const Write& write) {
  for (std::int64_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    const std::int64_t begin = tile * kMaskTile + threadIdx.x * kOwn;
    unsigned total = 0;
    std::int64_t number = s.before[tile] + movement::scan_block(s.count_from(begin), sums, total);
    for (std::int64_t i = begin; i < begin + kOwn && i < s.n && number < s.promised; ++i)
      if (s.holds(i)) write(i, number++);
  }
}

struct Coordinates {
  Selection held;
  std::int64_t* out;
  int rank;
  std::int64_t sizes[kMaxRank];
};

TAPEDECK_KERNEL void coordinates_kernel(const Coordinates c) {
  TAPEDECK_SHARED movement::WarpSums sums;
  for_held(c.held, sums, [&](std::int64_t i, std::int64_t number) {
    for (int d = c.rank - 1; d >= 0; --d) {
      c.out[number * c.rank + d] = i % c.sizes[d];
      i /= c.sizes[d];
    }
  });
  const std::int64_t end = c.held.promised * c.rank;
  for (std::int64_t k = c.held.taken() * c.rank + thread_index(); k < end; k += thread_count()) c.out[k] = 0;
}

struct Moves {
  Selection held;
  const void* from;
  void* to;
};

template <class T>
TAPEDECK_KERNEL void select_kernel(const Moves m) {
  TAPEDECK_SHARED movement::WarpSums sums;
  auto* const to = static_cast<T*>(m.to);
  for_held(m.held, sums, [&](std::int64_t i, std::int64_t number) { to[number] = static_cast<const T*>(m.from)[i]; });
  for (std::int64_t k = m.held.taken() + thread_index(); k < m.held.promised; k += thread_count()) to[k] = T{};
}

template <class T>
TAPEDECK_KERNEL void put_back_kernel(const Moves m) {
  TAPEDECK_SHARED movement::WarpSums sums;
  for_held(m.held, sums,
           [&](std::int64_t i, std::int64_t number) { static_cast<T*>(m.to)[i] = static_cast<const T*>(m.from)[number]; });
}

std::int64_t tiles_of(const View& mask) { return (mask.numel() + kMaskTile - 1) / kMaskTile; }

std::int64_t selection_space(const View& mask) {
  return (tiles_of(mask) + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
}

// A block for each tile. A call without elements has one block, which clears the result.
Launch for_tiles(const Selection& s) {
  const std::int64_t most = 16 * kMaxBlocks;
  return {.blocks = s.tiles < 1 ? 1 : s.tiles < most ? s.tiles : most};
}

Selection count_held(const KernelCall& call, const View& mask, std::int64_t promised) {
  const Selection s{mask.data, mask.dtype, mask.numel(), tiles_of(mask), promised, static_cast<std::int64_t*>(call.workspace),
                    call.fault};
  launch(call, &count_held_kernel, for_tiles(s), s);
  launch(call, &add_up_held_kernel, Launch{}, s);
  return s;
}

}  // namespace

void nonzero(const KernelCall& call) {
  const View& x = call.inputs[0];
  Coordinates c{count_held(call, x, call.outputs[0].sizes[0]), call.outputs[0].as<std::int64_t>(), x.rank, {}};
  for (int d = 0; d < x.rank; ++d) c.sizes[d] = x.sizes[d];
  launch(call, &coordinates_kernel, for_tiles(c.held), c);
}
std::int64_t nonzero_workspace(const KernelCall& call) { return selection_space(call.inputs[0]); }

void masked_select(const KernelCall& call) {
  const View& out = call.outputs[0];
  const Moves m{count_held(call, call.inputs[1], out.numel()), call.inputs[0].data, out.data};
  for_width(static_cast<std::size_t>(movement::width_of(out)),
            [&](auto t) { launch(call, &select_kernel<decltype(t)>, for_tiles(m.held), m); });
}
std::int64_t masked_select_workspace(const KernelCall& call) { return selection_space(call.inputs[1]); }

void masked_scatter(const KernelCall& call) {
  const View &x = call.inputs[0], &src = call.inputs[2], &out = call.outputs[0];
  if (x.data != out.data) movement::copy_view(call, x, out);
  const Moves m{count_held(call, call.inputs[1], src.numel()), src.data, out.data};
  for_width(static_cast<std::size_t>(movement::width_of(out)),
            [&](auto t) { launch(call, &put_back_kernel<decltype(t)>, for_tiles(m.held), m); });
}
std::int64_t masked_scatter_workspace(const KernelCall& call) { return selection_space(call.inputs[1]); }

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
