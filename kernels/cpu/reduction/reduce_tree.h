// Folds the elements of a view over any set of axes, in an order that depends on the shape alone. Every reduction uses it.
//
// The elements that belong to one result form a sequence: row-major over the reduced axes. The fold works on three levels:
//   - the sequence is cut into at most kMaxPieces pieces, and threads share the pieces,
//   - a piece is cut into blocks of kBlock elements, and the results of the blocks are folded in pairs, pairs of pairs, ...
//   - a block is dealt to kLanes interleaved lanes; each lane is folded in order, then the lanes are folded pairwise.
// This is as fast as a plain loop and as accurate as pairwise summation. The memory is walked along the reduced axes if these
// are innermost, otherwise along a strip of neighbouring results; both walks give the same bits.
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {

inline constexpr int kLanes = 16;
inline constexpr std::int64_t kBlock = 1024;
inline constexpr std::int64_t kMinPiece = 32 * kBlock;
inline constexpr std::int64_t kMaxPieces = 32;
inline constexpr int kStrip = 32;   // the number of neighbouring results that are folded together
inline constexpr int kLevels = 56;  // the levels of the pairwise tree: enough for a sequence of any length

// The operations of folds. identity() is the value that changes no other value when it is folded in.
struct Plus {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class T>
  T operator()(T a, T b) const {
    return Add{}(a, b);
  }
};
struct Times {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class T>
  T operator()(T a, T b) const {
    return Mul{}(a, b);
  }
};
struct Larger {
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  template <class T>
  T operator()(T a, T b) const {
    return Maximum{}(a, b);
  }
};
struct Smaller {
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  T operator()(T a, T b) const {
    return Minimum{}(a, b);
  }
};

// The map of a plain fold: an element of result j enters the fold unchanged.
struct AsIs {
  template <class T>
  T operator()(T x, int) const {
    return x;
  }
};

// The dimensions of a view, split into kept and reduced ones. Dimensions of size 1 are dropped, and neighbouring dimensions are
// merged where the strides allow it.
struct Split {
  int kept = 0, reduced = 0;
  std::int64_t kept_sizes[kMaxRank], kept_strides[kMaxRank];
  std::int64_t reduced_sizes[kMaxRank], reduced_strides[kMaxRank];
  std::int64_t results = 1, length = 1;

  static void append(int& rank, std::int64_t* sizes, std::int64_t* strides, std::int64_t size, std::int64_t stride) {
    if (size == 1) return;
    if (rank > 0 && strides[rank - 1] == stride * size) {
      sizes[rank - 1] *= size;
      strides[rank - 1] = stride;
      return;
    }
    sizes[rank] = size;
    strides[rank++] = stride;
  }

  Split(const View& x, const Ints& axes) {
    for (int d = 0; d < x.rank; ++d) {
      if (std::find(axes.begin(), axes.end(), d) != axes.end()) {
        append(reduced, reduced_sizes, reduced_strides, x.sizes[d], x.strides[d]);
        length *= x.sizes[d];
      } else {
        append(kept, kept_sizes, kept_strides, x.sizes[d], x.strides[d]);
        results *= x.sizes[d];
      }
    }
  }

  std::int64_t piece() const {
    const std::int64_t even = (length + kMaxPieces - 1) / kMaxPieces;
    return std::max(kMinPiece, (even + kBlock - 1) / kBlock * kBlock);
  }
  std::int64_t pieces() const { return length == 0 ? 1 : (length - 1) / piece() + 1; }
};

inline std::int64_t offset_of(std::int64_t index, int rank, const std::int64_t* sizes, const std::int64_t* strides) {
  std::int64_t offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    offset += index % sizes[d] * strides[d];
    index /= sizes[d];
  }
  return offset;
}

// Calls f(offset, n, stride) for the runs of elements with a constant stride that make up [begin, end) of the reduced sequence.
template <class F>
void for_stretches(const Split& s, std::int64_t begin, std::int64_t end, F&& f) {
  if (s.reduced == 0) {
    if (begin < end) f(std::int64_t{0}, end - begin, std::int64_t{0});
    return;
  }
  const int inner = s.reduced - 1;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t n = std::min(s.reduced_sizes[inner] - at % s.reduced_sizes[inner], end - at);
    f(offset_of(at, s.reduced, s.reduced_sizes, s.reduced_strides), n, s.reduced_strides[inner]);
    at += n;
  }
}

// Folds the lanes of kWidth neighbouring results, pairwise; lanes[l][j] is lane l of result j. Lane 0 receives the result.
template <class Op, class A, int kWidth>
void fold_lanes(A (&lanes)[kLanes][kWidth]) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l)
      for (int j = 0; j < kWidth; ++j) lanes[l][j] = Op{}(lanes[l][j], lanes[l + half][j]);
}

// The pairwise tree over blocks, kept like a binary counter: level k holds the fold of 2^k blocks.
template <class Op, class A, int kWidth>
struct Tree {
  A level[kLevels][kWidth];
  std::uint64_t blocks = 0;

  void push(const A* block) {
    A carry[kWidth];
    std::copy(block, block + kWidth, carry);
    int k = 0;
    for (; blocks >> k & 1; ++k)
      for (int j = 0; j < kWidth; ++j) carry[j] = Op{}(level[k][j], carry[j]);
    std::copy(carry, carry + kWidth, level[k]);
    ++blocks;
  }

  void result(A* out) const {
    std::fill(out, out + kWidth, Op::template identity<A>());
    bool first = true;
    for (int k = 0; k < kLevels; ++k) {
      if (!(blocks >> k & 1)) continue;
      for (int j = 0; j < kWidth; ++j) out[j] = first ? level[k][j] : Op{}(level[k][j], out[j]);
      first = false;
    }
  }
};

// Folds kLanes neighbouring elements into kLanes lanes, one element per lane.
template <class Op, class A, class X, class Map>
void feed_lanes(A* acc, const X* x, const Map& map) {
  if constexpr (std::is_same_v<Map, AsIs>) {
    for (int l = 0; l < kLanes; ++l) acc[l] = Op{}(acc[l], x[l]);
  } else {
    A mapped[kLanes];
    TAPEDECK_SHORT_LOOP
    for (int l = 0; l < kLanes; ++l) mapped[l] = map(x[l], 0);
    for (int l = 0; l < kLanes; ++l) acc[l] = Op{}(acc[l], mapped[l]);
  }
}

// Folds n elements at `stride` into the lanes of one result. `at` is the number of the first element in its block.
template <class Op, class A, class X, class Map>
void feed_along(A (&lanes)[kLanes][1], const X* x, std::int64_t n, std::int64_t stride, std::int64_t at, const Map& map) {
  std::int64_t i = 0;
  for (; i < n && (at + i) % kLanes != 0; ++i) {
    A& lane = lanes[(at + i) % kLanes][0];
    lane = Op{}(lane, map(x[i * stride], 0));
  }
  if (stride == 1 && n - i >= kLanes) {
    A acc[kLanes];
    for (int l = 0; l < kLanes; ++l) acc[l] = lanes[l][0];
    for (; i + kLanes <= n; i += kLanes) feed_lanes<Op>(acc, x + i, map);
    for (int l = 0; l < kLanes; ++l) lanes[l][0] = acc[l];
  }
  for (; i < n; ++i) {
    A& lane = lanes[(at + i) % kLanes][0];
    lane = Op{}(lane, map(x[i * stride], 0));
  }
}

// As feed_along, for kWidth results that are neighbours in memory.
template <class Op, class A, int kWidth, class X, class Map>
void feed_across(A (&lanes)[kLanes][kWidth], const X* x, std::int64_t n, std::int64_t stride, std::int64_t at, const Map& map) {
  for (std::int64_t i = 0; i < n; ++i) {
    A* lane = lanes[(at + i) % kLanes];
    const X* row = x + i * stride;
    for (int j = 0; j < kWidth; ++j) lane[j] = Op{}(lane[j], map(row[j], j));
  }
}

// Folds the elements [begin, end) of the sequences of kWidth neighbouring results. The first sequence starts at x.
template <class Op, class A, int kWidth, class X, class Map>
void fold_piece(const Split& s, const X* x, std::int64_t begin, std::int64_t end, const Map& map, A* out) {
  Tree<Op, A, kWidth> tree;
  for (std::int64_t block = begin; block < end; block += kBlock) {
    A lanes[kLanes][kWidth];
    std::fill(&lanes[0][0], &lanes[0][0] + kLanes * kWidth, Op::template identity<A>());
    std::int64_t at = 0;
    for_stretches(s, block, std::min(end, block + kBlock), [&](std::int64_t offset, std::int64_t n, std::int64_t stride) {
      if constexpr (kWidth == 1)
        feed_along<Op>(lanes, x + offset, n, stride, at, map);
      else
        feed_across<Op, A, kWidth>(lanes, x + offset, n, stride, at, map);
      at += n;
    });
    fold_lanes<Op, A, kWidth>(lanes);
    tree.push(lanes[0]);
  }
  tree.result(out);
}

// The sequences of W neighbouring results. fold(op, map, out) folds map(x, j) and writes the fold of result j to out[j].
template <class X, int W>
struct ShortFold {
  static constexpr int kWidth = W;
  const Split& s;
  const X* from;
  template <class Op, class A, class Map>
  void operator()(Op, const Map& map, A* out) const {
    fold_piece<Op, A, W>(s, from, 0, s.length, map, out);
  }
};

// One long sequence, whose pieces are shared by threads.
template <class X>
struct LongFold {
  static constexpr int kWidth = 1;
  const Split& s;
  const X* from;
  template <class Op, class A, class Map>
  void operator()(Op, const Map& map, A* out) const {
    const std::int64_t pieces = s.pieces(), piece = s.piece();
    A parts[kMaxPieces];
    parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        fold_piece<Op, A, 1>(s, from, p * piece, std::min(s.length, (p + 1) * piece), map, parts + p);
    });
    Tree<Op, A, 1> tree;
    for (std::int64_t p = 0; p < pieces; ++p) tree.push(parts + p);
    tree.result(out);
  }
};

// Reduces views whose sequences are one piece each. Results that are neighbours in memory are folded in strips.
template <class X, class Y, class Recipe>
void reduce_short(const Split& s, const X* x, Y* out, const Recipe& recipe) {
  const bool across = s.kept > 0 && s.kept_strides[s.kept - 1] == 1 && s.kept_sizes[s.kept - 1] >= kStrip;
  const std::int64_t row = across ? s.kept_sizes[s.kept - 1] : 1;
  const std::int64_t strips = across ? (row + kStrip - 1) / kStrip : 1;
  const std::int64_t jobs = s.results / row * strips;
  const double ns = (across ? kStrip * 0.15 : 0.3) * static_cast<double>(s.length) + 10;
  parallel_for(jobs, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t first = job / strips * row + job % strips * kStrip;
      const std::int64_t width = across ? std::min<std::int64_t>(kStrip, row - job % strips * kStrip) : 1;
      // An empty sequence has no first element, so no address is computed for it.
      const X* from = s.length > 0 ? x + offset_of(first, s.kept, s.kept_sizes, s.kept_strides) : nullptr;
      Y result[kStrip];
      if (width == kStrip)
        recipe(ShortFold<X, kStrip>{s, from}, result);
      else
        for (std::int64_t j = 0; j < width; ++j) recipe(ShortFold<X, 1>{s, from ? from + j : nullptr}, result + j);
      for (std::int64_t j = 0; j < width; ++j) out[first + j] = result[j];
    }
  });
}

// Reduces x over `axes` into the dense results `out`. recipe(fold, y) folds the given sequences, once or several times, and
// writes fold.kWidth results to y.
template <class X, class Y, class Recipe>
void reduce_view(const View& x, const Ints& axes, Y* out, const Recipe& recipe) {
  const Split s(x, axes);
  if (s.pieces() == 1) return reduce_short(s, x.as<X>(), out, recipe);
  for (std::int64_t result = 0; result < s.results; ++result)
    recipe(LongFold<X>{s, x.as<X>() + offset_of(result, s.kept, s.kept_sizes, s.kept_strides)}, out + result);
}

template <class Fold>
inline constexpr int kWidthOf = std::decay_t<Fold>::kWidth;

}  // namespace tapedeck::kernels::cpu
