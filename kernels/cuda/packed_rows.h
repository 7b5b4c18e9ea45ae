// Dense rows that a team of threads reads by packs of 16 bytes, and keeps in shared memory for the next pass over the row. A
// row may begin anywhere: the elements before the first aligned address (the head) and behind the last whole pack (the tail)
// are visited one at a time.
#pragma once

#include <tapedeck/kernels/cuda/quick_exp.h>
#include <tapedeck/kernels/cuda/reduce.h>

// A kernel that blocks of up to 1024 threads run, so that it has at most 64 registers.
#ifdef __CUDACC__
#define TAPEDECK_WIDE_KERNEL __global__ __launch_bounds__(1024)
#else
#define TAPEDECK_WIDE_KERNEL inline
#endif

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// A team that is a whole block of any number of warps.
struct WholeBlock {
  static constexpr unsigned kMostThreads = 1024;
  TAPEDECK_DEVICE static unsigned size() { return blockDim.x; }
  TAPEDECK_DEVICE static unsigned teams() { return 1; }
  TAPEDECK_DEVICE static unsigned index() { return 0; }
  TAPEDECK_DEVICE static unsigned rank() { return threadIdx.x; }
  TAPEDECK_DEVICE static void sync() { sync_block(); }
  // The warps are folded in the order in which the lanes of a warp are folded.
  template <class A, class Op>
  TAPEDECK_DEVICE static A fold(A value, const A& identity, const Op& op) {
    TAPEDECK_SHARED A of_warp[kWarp];
    value = warp_fold(value, op);
    sync_block();  // the previous fold may still be read
    if (lane_of_warp() == 0) of_warp[warp_of_block()] = value;
    sync_block();
    const A mine = lane_of_warp() < blockDim.x / kWarp ? of_warp[lane_of_warp()] : identity;
    return from_lane_zero(warp_fold(mine, op));
  }
};

// A team that is one warp of a block.
struct OneWarp {
  TAPEDECK_DEVICE static unsigned size() { return kWarp; }
  TAPEDECK_DEVICE static unsigned teams() { return blockDim.x / kWarp; }
  TAPEDECK_DEVICE static unsigned index() { return warp_of_block(); }
  TAPEDECK_DEVICE static unsigned rank() { return lane_of_warp(); }
  TAPEDECK_DEVICE static void sync() { sync_warp(); }
  template <class A, class Op>
  TAPEDECK_DEVICE static A fold(A value, const A&, const Op& op) {
    return from_lane_zero(warp_fold(value, op));
  }
};

template <class S>
inline constexpr int kPackWidth = static_cast<int>(16 / sizeof(S));

// The packs of a row: `head` elements come before the first pack.
struct RowPacks {
  std::int64_t n, head, packs;

  template <class S>
  TAPEDECK_DEVICE static RowPacks of(const S* row, std::int64_t n) {
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(S));
    std::int64_t head = past == 0 ? 0 : kPackWidth<S> - past;
    if (head > n) head = n;
    return {n, head, (n - head) / kPackWidth<S>};
  }
  // Calls single(i) for the elements outside packs that are this thread's.
  template <class Team, int kWidth, class F>
  TAPEDECK_DEVICE void singles(const F& single) const {
    const std::int64_t tail = head + packs * kWidth;
    TAPEDECK_ROLLED
    for (std::int64_t i = Team::rank(); i < head; i += Team::size()) single(i);
    TAPEDECK_ROLLED
    for (std::int64_t i = tail + Team::rank(); i < n; i += Team::size()) single(i);
  }
};

// The teams that rows are given to, and the shared memory that keeps rows.
struct RowLaunch {
  Launch size;
  bool warps = false, keeps = false;
  std::int64_t stride = 0;  // the bytes that one kept row takes
};

// `operands` is how many rows a team keeps.
inline RowLaunch row_launch(std::int64_t rows, std::int64_t n, std::size_t element, int operands) {
  constexpr std::int64_t kMostBytes = 220 * 1024;
  RowLaunch l;
  l.warps = n <= kLongRow;
  l.stride = (n * static_cast<std::int64_t>(element) + 15) / 16 * 16 + 16;
  const std::int64_t teams = l.warps ? kThreads / kWarp : 1, bytes = l.stride * operands * teams;
  l.size = blocks_for(rows, teams);
  if (!l.warps) l.size.threads = n > 16384 ? WholeBlock::kMostThreads : n > 8192 ? 512 : kThreads;
  l.keeps = bytes <= kMostBytes;
  if (l.keeps) l.size.shared_bytes = static_cast<std::size_t>(bytes);
  l.size.large_shared = l.size.shared_bytes > 40 * 1024;
  return l;
}

// A row, and the place in shared memory where a team keeps it. The elements lie at the same distance from an aligned address
// in both.
template <class S>
struct KeptRow {
  static constexpr int kWidth = kPackWidth<S>;
  using Items = Pack<S, kWidth>;
  const S* row;
  S* kept;  // null: the row is read again

  template <class Team>
  TAPEDECK_DEVICE static KeptRow of(const S* row, bool keeps, std::int64_t stride, int operand, int operands) {
    if (!keeps) return {row, nullptr};
    char* const start = dynamic_shared<char>() + (Team::index() * operands + operand) * stride;
    return {row, reinterpret_cast<S*>(start + reinterpret_cast<std::uintptr_t>(row) % 16)};
  }
  TAPEDECK_DEVICE const S* again() const { return kept ? kept : row; }
  TAPEDECK_DEVICE Items pack(std::int64_t at) const { return *reinterpret_cast<const Items*>(row + at); }
  TAPEDECK_DEVICE void keep(std::int64_t at, const Items& x) const {
    if (kept) *reinterpret_cast<Items*>(kept + at) = x;
  }
  TAPEDECK_DEVICE S single(std::int64_t at) const {
    const S x = row[at];
    if (kept) kept[at] = x;
    return x;
  }
};

// The first pass over a row: takes a number of packs, whose loads fly together, and the singles.
template <class Team, class S, class F, class G>
TAPEDECK_DEVICE void first_pass(const KeptRow<S>& x, const RowPacks& p, const F& packed, const G& single) {
  constexpr int kFlight = 4, kWidth = kPackWidth<S>;
  std::int64_t at = Team::rank();
  for (; at + (kFlight - 1) * static_cast<std::int64_t>(Team::size()) < p.packs; at += kFlight * Team::size()) {
    Pack<S, kWidth> items[kFlight];
    TAPEDECK_UNROLLED
    for (int k = 0; k < kFlight; ++k) items[k] = x.pack(p.head + (at + k * static_cast<std::int64_t>(Team::size())) * kWidth);
    TAPEDECK_UNROLLED
    for (int k = 0; k < kFlight; ++k) {
      x.keep(p.head + (at + k * static_cast<std::int64_t>(Team::size())) * kWidth, items[k]);
      packed(items[k]);
    }
  }
  TAPEDECK_ROLLED
  for (; at < p.packs; at += Team::size()) {
    const auto items = x.pack(p.head + at * kWidth);
    x.keep(p.head + at * kWidth, items);
    packed(items);
  }
  p.singles<Team, kWidth>([&](std::int64_t i) { single(x.single(i)); });
}

// ---- the largest element of a row and the sum of e^(x - largest), in one pass ----

// A sum of none or of e^-inf only is 0, and then the largest is -inf.
template <class S>
TAPEDECK_DEVICE float exp_distance(float x, float top) {
  return exp_for<S>(x - (top == -std::numeric_limits<float>::infinity() ? 0.0f : top));
}
struct MergesExpSums {
  TAPEDECK_DEVICE Two<float> operator()(const Two<float>& a, const Two<float>& b) const {
    const float top = Maximum{}(a.a, b.a);
    return {top, (a.a == top ? a.b : a.b * exp_distance<float>(a.a, top)) +
                     (b.a == top ? b.b : b.b * exp_distance<float>(b.a, top))};
  }
};

template <class Team, class S>
TAPEDECK_DEVICE Two<float> exp_sum_of(const KeptRow<S>& x, const RowPacks& p) {
  const Two<float> none{-std::numeric_limits<float>::infinity(), 0};
  Two<float> own = none;
  const auto raise = [&](float top) {
    const float larger = Maximum{}(own.a, top);
    if (!(larger == own.a)) own = {larger, own.b * exp_distance<S>(own.a, larger)};
  };
  first_pass<Team>(
      x, p,
      [&](const typename KeptRow<S>::Items& items) {
        float value[kPackWidth<S>], top = read(items.element[0]);
        TAPEDECK_UNROLLED
        for (int e = 0; e < kPackWidth<S>; ++e) value[e] = read(items.element[e]);
        TAPEDECK_UNROLLED
        for (int e = 1; e < kPackWidth<S>; ++e) top = Maximum{}(top, value[e]);
        raise(top);
        TAPEDECK_UNROLLED
        for (int e = 0; e < kPackWidth<S>; ++e) own.b += exp_distance<S>(value[e], own.a);
      },
      [&](const S& item) {
        raise(read(item));
        own.b += exp_distance<S>(read(item), own.a);
      });
  return Team::fold(own, none, MergesExpSums{});
}

// The last pass: out[i] = f(x[i], i), by packs. The row of results lies as the row of x does.
template <class Team, class S, class F>
TAPEDECK_DEVICE void write_row(const KeptRow<S>& x, const RowPacks& p, S* out, const F& f) {
  constexpr int kWidth = kPackWidth<S>;
  const S* const from = x.again();
  for (std::int64_t pack = Team::rank(); pack < p.packs; pack += Team::size()) {
    const std::int64_t at = p.head + pack * kWidth;
    auto items = *reinterpret_cast<const Pack<S, kWidth>*>(from + at);
    TAPEDECK_UNROLLED
    for (int e = 0; e < kWidth; ++e) items.element[e] = written<S>(f(read(items.element[e]), at + e));
    *reinterpret_cast<Pack<S, kWidth>*>(out + at) = items;
  }
  p.singles<Team, kWidth>([&](std::int64_t i) { out[i] = written<S>(f(read(from[i]), i)); });
}

// Whether rows can be read so: neighbours in memory, computed in f32, and all operands lie alike.
template <class S>
bool packed_rows(const Rows& r, const void* x, const void* out) {
  return std::is_same_v<Compute<S>, float> && r.inner == 1 && r.n >= 32 && is_aligned(x, 16) && is_aligned(out, 16);
}

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
