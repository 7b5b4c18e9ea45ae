// The elementwise kernel: out[i] = f(a[i], b[i], ...) over views of equal sizes and any strides (0 = broadcast).
//
//   map<Real, Real, Real>(call, Add{});      // the types of the output and of each input, then the functor of scalar.h
//
// A thread computes kCount neighbouring elements of a row by one access per operand (16 bytes of f32), where every operand is
// contiguous or constant along the row, and aligned. Everything else takes one element at a time. Both ways call f on the same
// values, so they give the same bits.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// Several views of equal sizes, walked together; operand 0 is the output. Strides count elements. The device receives the
// struct by value.
template <int kOperands>
struct Walk {
  std::int64_t n = 0;
  std::int64_t packs = 0;  // the first `packs` groups of kCount elements are computed a group at a time
  // Dimensions of size 1 are dropped, and neighbouring dimensions are merged where every operand allows it.
  std::int32_t rank = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kOperands][kMaxRank];
  void* data[kOperands];
  DType dtypes[kOperands];
};

template <int kOperands>
Walk<kOperands> make_walk(const View* const* views) {
  Walk<kOperands> walk;
  walk.n = views[0]->numel();
  for (int k = 0; k < kOperands; ++k) walk.data[k] = views[k]->data, walk.dtypes[k] = views[k]->dtype;
  for (int d = 0; d < views[0]->rank; ++d) {
    const std::int64_t size = views[0]->sizes[d];
    if (size == 1) continue;
    bool merges = walk.rank > 0;
    for (int k = 0; merges && k < kOperands; ++k) merges = walk.strides[k][walk.rank - 1] == views[k]->strides[d] * size;
    if (merges)
      walk.sizes[walk.rank - 1] *= size;
    else
      walk.sizes[walk.rank++] = size;
    for (int k = 0; k < kOperands; ++k) walk.strides[k][walk.rank - 1] = views[k]->strides[d];
  }
  return walk;
}

template <int kOperands>
Walk<kOperands> make_walk(const KernelCall& call) {
  const View* views[kOperands] = {&call.outputs[0]};
  for (int k = 1; k < kOperands; ++k) views[k] = &call.inputs[k - 1];
  return make_walk<kOperands>(views);
}

// Whether operand k can be read or written `count` elements of a row at a time.
template <int kOperands>
bool packs_fit(const Walk<kOperands>& walk, int k, std::int64_t count) {
  const int inner = walk.rank - 1;
  if (walk.strides[k][inner] == 0) return k > 0;  // one element, for the whole row
  if (walk.strides[k][inner] != 1) return false;
  for (int d = 0; d < inner; ++d)
    if (walk.strides[k][d] % count != 0) return false;
  return is_aligned(walk.data[k], static_cast<std::size_t>(count) * dtype_size(walk.dtypes[k]));
}

// The number of groups of `count` elements that can be computed a group at a time: all of the walk, up to a last part of fewer
// than `count` elements, or none.
template <int kOperands>
std::int64_t count_packs(const Walk<kOperands>& walk, std::int64_t count) {
  if (walk.rank == 0 || (walk.rank > 1 && walk.sizes[walk.rank - 1] % count != 0)) return 0;
  for (int k = 0; k < kOperands; ++k)
    if (!packs_fit(walk, k, count)) return 0;
  return walk.n / count;
}

// Computes the offset of an element of the walk in every operand. Division is the expensive part, so Index has 32 bits where
// the walk is short enough.
template <class Index, int kOperands>
TAPEDECK_DEVICE void locate_by(const Walk<kOperands>& walk, std::int64_t element, std::int64_t (&at)[kOperands]) {
  for (int k = 0; k < kOperands; ++k) at[k] = 0;
  Index rest = static_cast<Index>(element);
  for (int d = walk.rank - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(walk.sizes[d]);
    const Index quotient = d == 0 ? Index(0) : rest / size;
    const std::int64_t index = static_cast<std::int64_t>(rest - quotient * size);
    for (int k = 0; k < kOperands; ++k) at[k] += index * walk.strides[k][d];
    rest = quotient;
  }
}
template <int kOperands>
TAPEDECK_DEVICE void locate(const Walk<kOperands>& walk, std::int64_t element, std::int64_t (&at)[kOperands]) {
  if (walk.rank <= 1) {  // dense, or a row of any stride; a walk of rank 0 has one element
    for (int k = 0; k < kOperands; ++k) at[k] = walk.rank == 0 ? 0 : element * walk.strides[k][0];
  } else if (walk.n <= std::numeric_limits<std::int32_t>::max()) {
    locate_by<std::uint32_t>(walk, element, at);
  } else {
    locate_by<std::uint64_t>(walk, element, at);
  }
}

// kCount elements of operand k, from offset `at` on: neighbours, or one element again and again.
template <class T, int kCount, int kOperands>
TAPEDECK_DEVICE void load_row(const Walk<kOperands>& walk, int k, std::int64_t at, Value<T> (&x)[kCount]) {
  if (walk.strides[k][walk.rank - 1] != 0) return load_pack<T>(walk.data[k], walk.dtypes[k], at, x);
  const Value<T> same = load<T>(walk.data[k], walk.dtypes[k], at);
  for (int i = 0; i < kCount; ++i) x[i] = same;
}

template <class F, class Out, class... In>
struct Map {
  Walk<1 + sizeof...(In)> walk;
  F f;
};

template <class F, class Out, class... In, std::size_t... I>
TAPEDECK_DEVICE void map_one(const Map<F, Out, In...>& map, const std::int64_t* at, std::index_sequence<I...>) {
  const auto& walk = map.walk;
  store<Out>(walk.data[0], walk.dtypes[0], at[0], map.f(load<In>(walk.data[I + 1], walk.dtypes[I + 1], at[I + 1])...));
}

template <class T, int kCount>
struct Row {
  Value<T> x[kCount];
};

template <int kCount, class F, class Out, class... In, std::size_t... I>
TAPEDECK_DEVICE void map_pack(const Map<F, Out, In...>& map, const std::int64_t* at, std::index_sequence<I...>) {
  const auto& walk = map.walk;
  const auto compute = [&](auto... rows) {
    (load_row<In>(walk, I + 1, at[I + 1], rows.x), ...);
    Value<Out> out[kCount];
    for (int i = 0; i < kCount; ++i) out[i] = map.f(rows.x[i]...);
    store_pack<Out>(walk.data[0], walk.dtypes[0], at[0], out);
  };
  compute(Row<In, kCount>{}...);
}

// kCount is 1 for a kernel that takes one element at a time.
template <int kCount, class F, class Out, class... In>
TAPEDECK_KERNEL void map_kernel(const Map<F, Out, In...> map) {
  constexpr auto operands = std::index_sequence_for<In...>{};
  std::int64_t at[1 + sizeof...(In)];
  if constexpr (kCount > 1) {
    for (std::int64_t i = thread_index(); i < map.walk.packs; i += thread_count()) {
      locate(map.walk, i * kCount, at);
      map_pack<kCount>(map, at, operands);
    }
  }
  for (std::int64_t i = map.walk.packs * kCount + thread_index(); i < map.walk.n; i += thread_count()) {
    locate(map.walk, i, at);
    map_one(map, at, operands);
  }
}

template <class T>
inline constexpr std::size_t kWidthOf = sizeof(Value<T>);

// The elements of a thread: as many as make 16 bytes of the widest operand, but at most four, which is enough to keep the
// memory busy.
template <class... T>
constexpr int pack_of() {
  std::size_t widest = 1;
  ((widest = kWidthOf<T> > widest ? kWidthOf<T> : widest), ...);
  return widest > 4 ? 2 : 4;
}

template <int kCount, class Out, class... In, class F>
void map_by(const KernelCall& call, const F& f) {
  Map<F, Out, In...> map{make_walk<1 + sizeof...(In)>(call), f};
  if (map.walk.n == 0) return;
  if (kCount > 1) map.walk.packs = count_packs(map.walk, kCount);
  launch<Map<F, Out, In...>>(call, &map_kernel<kCount, F, Out, In...>,
                             for_items(map.walk.packs > 0 ? map.walk.packs : map.walk.n), map);
}

// A whole elementwise kernel: out = f(in...).
template <class Out, class... In, class F>
void map(const KernelCall& call, const F& f) {
  map_by<pack_of<Out, In...>(), Out, In...>(call, f);
}

// The same for a functor with much code, which is compiled once: one element at a time.
template <class Out, class... In, class F>
void map_singly(const KernelCall& call, const F& f) {
  map_by<1, Out, In...>(call, f);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
