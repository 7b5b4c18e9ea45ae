// The elementwise kernel: out[i] = f(a[i], b[i], ...) over views of equal sizes and any strides (0 = broadcast).
//
//   map<Real, Real, Real>(call, Add{});      // the types of the output and of each input, then the functor of scalar.h
//
// A thread computes kCount neighbouring elements of a row by one access per operand (16 bytes of f32), where every operand is
// contiguous or constant along the row, and aligned. Everything else takes one element at a time. Both ways call f on the same
// values, so they give the same bits.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
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

// The offset of an element of the walk in every operand. A walk of several dimensions has few enough elements for divisions of
// 32 bits, which are much faster (for_parts).
template <int kOperands>
TAPEDECK_DEVICE void locate(const Walk<kOperands>& walk, std::int64_t element, std::int64_t (&at)[kOperands]) {
  if (walk.rank <= 1) {  // dense, or a row of any stride; a walk of rank 0 has one element
    for (int k = 0; k < kOperands; ++k) at[k] = walk.rank == 0 ? 0 : element * walk.strides[k][0];
    return;
  }
  for (int k = 0; k < kOperands; ++k) at[k] = 0;
  std::uint32_t rest = static_cast<std::uint32_t>(element);
  for (int d = walk.rank - 1; d >= 0; --d) {
    const std::uint32_t size = static_cast<std::uint32_t>(walk.sizes[d]), quotient = d == 0 ? 0 : rest / size;
    const std::int64_t index = rest - quotient * size;
    for (int k = 0; k < kOperands; ++k) at[k] += index * walk.strides[k][d];
    rest = quotient;
  }
}

// Moves the walk to index `index` of dimension d.
template <int kOperands>
void advance(Walk<kOperands>& walk, int d, std::int64_t index) {
  for (int k = 0; k < kOperands; ++k)
    walk.data[k] =
        static_cast<char*>(walk.data[k]) + index * walk.strides[k][d] * static_cast<std::int64_t>(dtype_size(walk.dtypes[k]));
}

// The walk without its first `count` dimensions.
template <int kOperands>
Walk<kOperands> without_first(Walk<kOperands> walk, int count) {
  walk.rank -= count;
  for (int d = 0; d < walk.rank; ++d) {
    walk.sizes[d] = walk.sizes[d + count];
    for (int k = 0; k < kOperands; ++k) walk.strides[k][d] = walk.strides[k][d + count];
  }
  return walk;
}

// Calls f with parts of the walk that have at most `most` elements each. A walk of one dimension is not cut. The parts are
// pieces of one dimension and everything inside it.
template <int kOperands, class F>
void for_parts(const Walk<kOperands>& walk, const F& f, std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
  if (walk.n == 0) return;
  if (walk.rank <= 1 || walk.n <= most) return f(walk);
  int d = walk.rank - 1;
  std::int64_t inner = 1;
  while (walk.sizes[d] <= most / inner) inner *= walk.sizes[d--];
  const std::int64_t rows = most / inner, outer = walk.n / inner / walk.sizes[d];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t first = 0; first < walk.sizes[d]; first += rows) {
      Walk<kOperands> part = walk;
      for (std::int64_t rest = o, i = d - 1; i >= 0; rest /= walk.sizes[i--])
        advance(part, static_cast<int>(i), rest % walk.sizes[i]);
      advance(part, d, first);
      part = without_first(part, d);
      part.sizes[0] = walk.sizes[d] - first < rows ? walk.sizes[d] - first : rows;
      part.n = part.sizes[0] * inner;
      f(part);
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
  const std::int64_t packs = map.walk.packs, singles = map.walk.n - packs * kCount;
  std::int64_t at[1 + sizeof...(In)];
  for (std::int64_t i = thread_index(); i < packs + singles; i += thread_count()) {
    locate(map.walk, i < packs ? i * kCount : i + packs * (kCount - 1), at);
    if constexpr (kCount > 1) {
      if (i < packs) {
        map_pack<kCount>(map, at, operands);
        continue;
      }
    }
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

// The threads of a walk: one for each group of `count` elements, and one for each element that is left.
template <int kOperands>
Launch for_walk(const Walk<kOperands>& walk, std::int64_t count) {
  return for_items(walk.n - walk.packs * (count - 1));
}

// The bytes of a functor, which follow the walk in the argument of a map.
inline constexpr std::size_t kMostFunctorBytes = 64;
struct FunctorBytes {
  const void* data;
  std::size_t size;
};

// Launches a map whose threads take `count` elements at a time. This code is compiled once for all functors.
template <int kOperands>
void launch_map(const KernelCall& call, const AnyKernel& kernel, std::int64_t count, const FunctorBytes& f) {
  for_parts(make_walk<kOperands>(call), [&](Walk<kOperands> walk) {
    if (count > 1) walk.packs = count_packs(walk, count);
    alignas(Walk<kOperands>) unsigned char argument[sizeof walk + kMostFunctorBytes];
    std::memcpy(argument, &walk, sizeof walk);
    std::memcpy(argument + sizeof walk, f.data, f.size);
    launch_any(call, kernel, for_walk(walk, count), argument);
  });
}

template <int kCount, class Out, class... In, class F>
void map_by(const KernelCall& call, const F& f) {
  using M = Map<F, Out, In...>;
  using W = decltype(M::walk);
  static_assert(std::is_trivially_copyable_v<M> && offsetof(M, f) == sizeof(W) && sizeof(M) <= sizeof(W) + kMostFunctorBytes);
  launch_map<1 + sizeof...(In)>(call, any_kernel(&map_kernel<kCount, F, Out, In...>), kCount, {&f, sizeof f});
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
