// Reductions by a team of threads: a thread, a warp or a block works on one row, and every member gets the total. The tree of a
// total is fixed: within a warp by shuffles, lane l with lane l + 16, l + 8, ..., and then the warps of a block in pairs.
#pragma once

#include <tapedeck/kernels/cuda/elements.h>
#include <tapedeck/kernels/cuda/simt.h>
#include <tapedeck/kernels/cuda/unroll.h>
#include <tapedeck/kernels/half.h>

#include <cstdint>
#include <limits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// ---- accumulators ----

// Two numbers that are folded together.
template <class T>
struct Two {
  T a, b;
};

template <class T>
TAPEDECK_DEVICE T from_lane_below(T value, unsigned delta) {
  return shuffle_down(value, delta);
}
template <class T>
TAPEDECK_DEVICE Two<T> from_lane_below(Two<T> value, unsigned delta) {
  return {shuffle_down(value.a, delta), shuffle_down(value.b, delta)};
}

template <class T>
TAPEDECK_DEVICE T from_lane_zero(T value) {
  return shuffle(value, 0);
}
template <class T>
TAPEDECK_DEVICE Two<T> from_lane_zero(Two<T> value) {
  return {shuffle(value.a, 0), shuffle(value.b, 0)};
}

struct Adds {
  template <class T>
  TAPEDECK_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
  template <class T>
  TAPEDECK_DEVICE Two<T> operator()(const Two<T>& a, const Two<T>& b) const {
    return {a.a + b.a, a.b + b.b};
  }
};
struct TakesLarger {
  template <class T>
  TAPEDECK_DEVICE T operator()(T a, T b) const {
    return Maximum{}(a, b);
  }
};

// The fold of the lanes of a warp; only lane 0 has it. All lanes call this.
template <class A, class Op>
TAPEDECK_DEVICE A warp_fold(A value, const Op& op) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) value = op(value, from_lane_below(value, step));
  return value;
}

// A divisor whose quotients are a product and a shift, for dividends of at most kMost.
struct QuickDivisor {
  std::int64_t divisor = 1;
  std::uint32_t magic = 0, shift = 0;  // magic = 2^32 (2^shift - divisor) / divisor + 1

  QuickDivisor() = default;
  explicit QuickDivisor(std::int64_t d) : divisor(d) {
    if (d > kMost) shift = 31;  // every quick quotient is 0
    if (d < 1 || d > kMost) return;
    while ((std::int64_t{1} << shift) < d) ++shift;
    magic =
        static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - static_cast<std::uint64_t>(d))) /
                                       static_cast<std::uint64_t>(d) +
                                   1);
  }
  static constexpr std::int64_t kMost = 0x7fffffff;
  TAPEDECK_HD std::int64_t of(std::int64_t n) const { return n <= kMost ? quick(n) : n / divisor; }
  TAPEDECK_HD std::int64_t quick(std::int64_t n) const {
    const auto low = static_cast<std::uint32_t>(n);
    return ((static_cast<std::uint32_t>(static_cast<std::uint64_t>(low) * magic >> 32)) + low) >> shift;
  }
};

// ---- teams ----

// A team has kSize threads. kTeams teams fit into a block of kThreads threads; index() is the team of this thread, and rank()
// its place in the team. sum() and max() give the total to every member, and all members call them together.
struct ThreadTeam {
  static constexpr unsigned kSize = 1, kTeams = kThreads;
  TAPEDECK_DEVICE static unsigned index() { return threadIdx.x; }
  TAPEDECK_DEVICE static unsigned rank() { return 0; }
  template <class A>
  TAPEDECK_DEVICE static A sum(A value) {
    return value;
  }
  template <class A>
  TAPEDECK_DEVICE static A max(A value) {
    return value;
  }
};

struct WarpTeam {
  static constexpr unsigned kSize = kWarp, kTeams = kThreads / kWarp;
  TAPEDECK_DEVICE static unsigned index() { return warp_of_block(); }
  TAPEDECK_DEVICE static unsigned rank() { return lane_of_warp(); }
  template <class A>
  TAPEDECK_DEVICE static A sum(A value) {
    return from_lane_zero(warp_fold(value, Adds{}));
  }
  template <class A>
  TAPEDECK_DEVICE static A max(A value) {
    return from_lane_zero(warp_fold(value, TakesLarger{}));
  }
};

struct BlockTeam {
  static constexpr unsigned kSize = kThreads, kTeams = 1;
  static_assert(kThreads / kWarp == 8, "fold() folds eight warps");
  TAPEDECK_DEVICE static unsigned index() { return 0; }
  TAPEDECK_DEVICE static unsigned rank() { return threadIdx.x; }
  template <class A, class Op>
  TAPEDECK_DEVICE static A fold(A value, const Op& op) {
    TAPEDECK_SHARED A of_warp[kThreads / kWarp];
    value = warp_fold(value, op);
    sync_block();  // the previous fold may still be read
    if (lane_of_warp() == 0) of_warp[warp_of_block()] = value;
    sync_block();
    return op(op(op(of_warp[0], of_warp[1]), op(of_warp[2], of_warp[3])),
              op(op(of_warp[4], of_warp[5]), op(of_warp[6], of_warp[7])));
  }
  template <class A>
  TAPEDECK_DEVICE static A sum(A value) {
    return fold(value, Adds{});
  }
  template <class A>
  TAPEDECK_DEVICE static A max(A value) {
    return fold(value, TakesLarger{});
  }
};

template <class Team>
TAPEDECK_DEVICE std::int64_t first_row() {
  return static_cast<std::int64_t>(blockIdx.x) * Team::kTeams + Team::index();
}
template <class Team>
TAPEDECK_DEVICE std::int64_t row_step() {
  return static_cast<std::int64_t>(gridDim.x) * Team::kTeams;
}

inline Launch blocks_for(std::int64_t items, std::int64_t items_of_block) {
  const std::int64_t wanted = items / items_of_block + (items % items_of_block != 0);
  return {.blocks = wanted < kMaxBlocks ? wanted : kMaxBlocks};
}
template <class Team>
Launch for_rows(std::int64_t rows) {
  return blocks_for(rows, Team::kTeams);
}

// Rows along one axis of a dense tensor [outer, n, inner]: element i of a row lies i * inner elements from its first.
struct Rows {
  std::int64_t rows = 1, n = 1, inner = 1;

  Rows() = default;
  Rows(const View& x, int axis) : n(x.sizes[axis]) {
    for (int d = axis + 1; d < x.rank; ++d) inner *= x.sizes[d];
    rows = inner;
    for (int d = 0; d < axis; ++d) rows *= x.sizes[d];
  }
  TAPEDECK_HD std::int64_t offset(std::int64_t row) const {
    return inner == 1 ? row * n : row / inner * n * inner + row % inner;
  }
};

// Rows of at most this many elements are a warp's work.
inline constexpr std::int64_t kLongRow = 1024;

// Calls f with the team that suits the rows. A thread walks a row alone only where many rows lie side by side.
template <class F>
void with_team(const Rows& r, const F& f) {
  if (r.n > kLongRow) return f(BlockTeam{});
  if (r.inner >= 32 && r.rows >= 4096) return f(ThreadTeam{});
  return f(WarpTeam{});
}

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
