// Copies between views, and the ops that are nothing else: copy, concat, unstack, slice_assign, diagonal_assign, flip.
//
//   concat [a b] and [c]   ->   copy [a b] into elements 0 ... 1 of the result, copy [c] into element 2
//
// A copy first loses the dimensions that it does not need: dimensions of one element go, and neighbours without a gap on both
// sides become one. Then it goes one of three ways: as a run of bytes, through tiles (one side is transposed), or element by
// element, where 16 bytes of neighbours count as one element if all sizes and addresses allow it.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/movement.h>
#include <tapedeck/kernels/attrs/rearrange.h>
#include <tapedeck/kernels/cuda/movement/movement.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

// ---- runs of bytes ----

struct Bytes {
  const char* from;  // null: zeros
  char* to;
  std::int64_t vectors;  // of 16 bytes; the addresses are aligned if there are any
  std::int64_t bytes;
};

TAPEDECK_KERNEL void bytes_kernel(const Bytes b) {
  const auto* from = reinterpret_cast<const Vec16*>(b.from);
  auto* to = reinterpret_cast<Vec16*>(b.to);
  for (std::int64_t i = thread_index(); i < b.vectors; i += thread_count()) to[i] = b.from ? from[i] : Vec16{0, 0};
  for (std::int64_t i = b.vectors * 16 + thread_index(); i < b.bytes; i += thread_count()) b.to[i] = b.from ? b.from[i] : '\0';
}

void run_bytes(const KernelCall& call, const void* from, void* to, std::int64_t bytes) {
  const bool aligned = (movement::address_of(from) | movement::address_of(to)) % 16 == 0;
  const Bytes b{static_cast<const char*>(from), static_cast<char*>(to), aligned ? bytes / 16 : 0, bytes};
  launch(call, &bytes_kernel, for_items(aligned ? b.vectors + 1 : bytes), b);
}

// ---- boxes: views with strides ----

// The last dimension is the fastest. Strides count elements.
struct Box {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t n = 1;
  int rank = 0;
  std::int64_t sizes[kMaxRank] = {}, from_strides[kMaxRank] = {}, to_strides[kMaxRank] = {};
};

template <class T>
TAPEDECK_KERNEL void box_kernel(const Box b) {
  for (std::int64_t i = thread_index(); i < b.n; i += thread_count()) {
    std::int64_t rest = i, from = 0, to = 0;
    for (int d = b.rank - 1; d > 0; --d) {
      const std::int64_t next = rest / b.sizes[d], at = rest - next * b.sizes[d];
      from += at * b.from_strides[d];
      to += at * b.to_strides[d];
      rest = next;
    }
    if (b.rank > 0) {
      from += rest * b.from_strides[0];
      to += rest * b.to_strides[0];
    }
    static_cast<T*>(b.to)[to] = static_cast<const T*>(b.from)[from];
  }
}

void add_dimension(Box& b, std::int64_t size, std::int64_t from_stride, std::int64_t to_stride) {
  b.sizes[b.rank] = size;
  b.from_strides[b.rank] = from_stride;
  b.to_strides[b.rank] = to_stride;
  ++b.rank;
}

// The dimensions in descending order of the strides of `to`, without those of one element, and joined where there is no gap.
Box make_box(const View& from, const View& to) {
  int order[kMaxRank], rank = 0;
  for (int d = 0; d < to.rank; ++d) {
    if (to.sizes[d] == 1) continue;
    int at = rank++;
    for (; at > 0 && to.strides[order[at - 1]] < to.strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  Box b;
  b.from = from.data;
  b.to = to.data;
  b.n = to.numel();
  for (int k = 0; k < rank; ++k) {
    const int d = order[k], last = b.rank - 1;
    const std::int64_t size = to.sizes[d];
    if (last >= 0 && b.from_strides[last] == from.strides[d] * size && b.to_strides[last] == to.strides[d] * size) {
      b.sizes[last] *= size;
      b.from_strides[last] = from.strides[d];
      b.to_strides[last] = to.strides[d];
    } else {
      add_dimension(b, size, from.strides[d], to.strides[d]);
    }
  }
  return b;
}

bool contiguous(const Box& b) { return b.rank == 0 || (b.from_strides[b.rank - 1] == 1 && b.to_strides[b.rank - 1] == 1); }

// The widest element in which a box with contiguous rows can be copied.
std::size_t box_width(const Box& b, std::int64_t width) {
  std::uint64_t all = movement::address_of(b.from) | movement::address_of(b.to);
  for (int d = 0; d < b.rank; ++d) {
    const bool row = d + 1 == b.rank;
    all |= static_cast<std::uint64_t>((row ? b.sizes[d] : b.from_strides[d]) * width);
    all |= static_cast<std::uint64_t>((row ? b.sizes[d] : b.to_strides[d]) * width);
  }
  return movement::common_width(all);
}

void widen(Box& b, std::int64_t factor) {
  const int last = b.rank - 1;
  b.n /= factor;
  b.sizes[last] /= factor;
  for (int d = 0; d < last; ++d) {
    b.from_strides[d] /= factor;
    b.to_strides[d] /= factor;
  }
}

// ---- tiles: the rows of `to` are the columns of `from` ----

constexpr int kTile = 32;

// Matrices of rows x columns: `from` is contiguous along the rows' dimension, `to` along the columns'.
struct Tiles {
  const void* from;
  void* to;
  std::int64_t rows, columns, from_pitch, to_pitch;
  std::int64_t down, across, tiles;  // tiles along the rows, along the columns, and of all matrices
  int rank = 0;                      // of the dimensions that number the matrices
  std::int64_t sizes[kMaxRank] = {}, from_strides[kMaxRank] = {}, to_strides[kMaxRank] = {};
};

template <class T>
TAPEDECK_KERNEL void tiles_kernel(const Tiles t) {
  TAPEDECK_SHARED T tile[kTile][kTile + 1];
  const std::int64_t lane = threadIdx.x % kTile, first = threadIdx.x / kTile, step = blockDim.x / kTile;
  for (std::int64_t job = blockIdx.x; job < t.tiles; job += gridDim.x) {
    const std::int64_t row = job / t.across % t.down * kTile, column = job % t.across * kTile;
    std::int64_t rest = job / t.across / t.down, from = 0, to = 0;
    for (int d = t.rank - 1; d >= 0; --d) {
      from += rest % t.sizes[d] * t.from_strides[d];
      to += rest % t.sizes[d] * t.to_strides[d];
      rest /= t.sizes[d];
    }
    for (std::int64_t c = first; c < kTile; c += step)
      if (row + lane < t.rows && column + c < t.columns)
        tile[c][lane] = static_cast<const T*>(t.from)[from + (column + c) * t.from_pitch + row + lane];
    sync_block();
    for (std::int64_t r = first; r < kTile; r += step)
      if (row + r < t.rows && column + lane < t.columns)
        static_cast<T*>(t.to)[to + (row + r) * t.to_pitch + column + lane] = tile[lane][r];
    sync_block();
  }
}

// The dimension along which `from` is contiguous, if the box is a transposed matrix of at least 16 x 16; else -1.
int transposed_dimension(const Box& b) {
  constexpr std::int64_t kLeast = 16;
  const int last = b.rank - 1;
  if (last < 1 || b.to_strides[last] != 1 || b.from_strides[last] == 1 || b.sizes[last] < kLeast) return -1;
  for (int d = 0; d < last; ++d)
    if (b.from_strides[d] == 1 && b.sizes[d] >= kLeast) return d;
  return -1;
}

void copy_transposed_box(const KernelCall& call, const Box& b, int dimension, std::size_t width) {
  const int last = b.rank - 1;
  Tiles t{b.from, b.to, b.sizes[dimension], b.sizes[last], b.from_strides[last], b.to_strides[dimension], 0, 0, 1};
  t.down = (t.rows + kTile - 1) / kTile;
  t.across = (t.columns + kTile - 1) / kTile;
  t.tiles = t.down * t.across;
  for (int d = 0; d < last; ++d) {
    if (d == dimension) continue;
    t.sizes[t.rank] = b.sizes[d];
    t.from_strides[t.rank] = b.from_strides[d];
    t.to_strides[t.rank++] = b.to_strides[d];
    t.tiles *= b.sizes[d];
  }
  const std::int64_t most = 16 * kMaxBlocks;
  const Launch size{.blocks = t.tiles < most ? t.tiles : most};
  for_width(width, [&](auto e) { launch(call, &tiles_kernel<decltype(e)>, size, t); });
}

// ---- strips: several matrices in one launch ----

// Rows of `length` elements that lie a pitch apart.
struct Strip {
  const void* from;
  void* to;
  std::int64_t rows, length, from_pitch, to_pitch;
};

constexpr int kStrips = 64;

struct Strips {
  Strip strips[kStrips];
};

template <class T>
TAPEDECK_KERNEL void strips_kernel(const Strips all) {
  const Strip& s = all.strips[blockIdx.y];
  const auto* from = static_cast<const T*>(s.from);
  auto* to = static_cast<T*>(s.to);
  for (std::int64_t i = thread_index(); i < s.rows * s.length; i += thread_count()) {
    const std::int64_t row = i / s.length, column = i - row * s.length;
    to[row * s.to_pitch + column] = from[row * s.from_pitch + column];
  }
}

// Collects strips of bytes, and copies them when there are kStrips of them or no more.
class StripList {
 public:
  explicit StripList(const KernelCall& call) : call_(call) {}

  void add(const Strip& strip) {
    if (strip.rows == 0 || strip.length == 0) return;
    all_ |= movement::address_of(strip.from) | movement::address_of(strip.to) | static_cast<std::uint64_t>(strip.length) |
            static_cast<std::uint64_t>(strip.from_pitch) | static_cast<std::uint64_t>(strip.to_pitch);
    strips_.strips[count_++] = strip;
    if (count_ == kStrips) copy();
  }
  void copy() {
    if (count_ == 0) return;
    const std::size_t width = movement::common_width(all_);
    const auto factor = static_cast<std::int64_t>(width);
    std::int64_t most = 0;
    for (int k = 0; k < count_; ++k) {
      Strip& s = strips_.strips[k];
      s.length /= factor;
      s.from_pitch /= factor;
      s.to_pitch /= factor;
      if (s.rows * s.length > most) most = s.rows * s.length;
    }
    Launch size = for_items(most);
    size.blocks_y = static_cast<unsigned>(count_);
    for_width(width, [&](auto e) { launch(call_, &strips_kernel<decltype(e)>, size, strips_); });
    count_ = 0;
    all_ = 0;
  }

 private:
  const KernelCall& call_;
  Strips strips_ = {};
  int count_ = 0;
  std::uint64_t all_ = 0;
};

}  // namespace

namespace movement {

void copy_view(const KernelCall& call, const View& from, const View& to) {
  if (to.numel() == 0) return;
  Box b = make_box(from, to);
  std::int64_t width = width_of(to);
  if (contiguous(b) && b.rank <= 1) return run_bytes(call, b.from, b.to, b.n * width);
  const int dimension = transposed_dimension(b);
  if (dimension >= 0) return copy_transposed_box(call, b, dimension, static_cast<std::size_t>(width));
  if (contiguous(b)) {
    const auto wide = static_cast<std::int64_t>(box_width(b, width));
    widen(b, wide / width);
    width = wide;
  }
  for_width(static_cast<std::size_t>(width), [&](auto e) { launch(call, &box_kernel<decltype(e)>, for_items(b.n), b); });
}

void clear_bytes(const KernelCall& call, void* to, std::int64_t bytes) { run_bytes(call, nullptr, to, bytes); }

}  // namespace movement

void copy(const KernelCall& call) {
  const View &from = call.inputs[0], &to = call.outputs[0];
  if (!movement::lies_there(from, to)) movement::copy_view(call, from, to);
}

// Dense parts go in one launch; the others one after the other.
void concat(const KernelCall& call) {
  const View& out = call.outputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  const std::int64_t width = movement::width_of(out);
  const std::int64_t rows = movement::product(out, 0, axis), inner = movement::product(out, axis + 1, out.rank) * width;
  const std::int64_t pitch = out.sizes[axis] * inner;
  const bool dense = out.dense();
  StripList strips(call);
  std::int64_t at = 0;
  for (int k = 0; k < call.n_inputs; ++k) {
    const View& part = call.inputs[k];
    const View place = movement::window(out, axis, at, part.sizes[axis]);
    const std::int64_t length = part.sizes[axis] * inner;
    at += part.sizes[axis];
    if (part.numel() == 0 || movement::lies_there(part, place)) continue;
    if (dense && part.dense())
      strips.add({part.data, place.data, rows, length, rows > 1 ? length : 0, rows > 1 ? pitch : 0});
    else
      movement::copy_view(call, part, place);
  }
  strips.copy();
}

void unstack(const KernelCall& call) {
  const std::int64_t bytes = call.outputs[0].numel() * movement::width_of(call.outputs[0]);
  StripList strips(call);
  for (int k = 0; k < call.n_outputs; ++k)
    strips.add({call.inputs[0].as<char>() + (bytes == 0 ? 0 : k * bytes), call.outputs[k].data, 1, bytes, 0, 0});
  strips.copy();
}

void slice_assign(const KernelCall& call) {
  const auto& attrs = call.attributes<SliceAttrs>();
  const View &base = call.inputs[0], &piece = call.inputs[1], &out = call.outputs[0];
  if (base.data != out.data) movement::copy_view(call, base, out);
  if (piece.numel() == 0) return;
  View inside = out;
  for (int d = 0; d < inside.rank; ++d) {
    inside = movement::window(inside, d, attrs.starts[d], piece.sizes[d]);
    if (attrs.steps.size && piece.sizes[d] > 1) inside.strides[d] *= attrs.steps[d];
  }
  movement::copy_view(call, piece, inside);
}

void diagonal_assign(const KernelCall& call) {
  const auto& attrs = call.attributes<DiagonalAttrs>();
  const View &base = call.inputs[0], &piece = call.inputs[1], &out = call.outputs[0];
  if (base.data != out.data) movement::copy_view(call, base, out);
  if (piece.numel() == 0) return;
  const DiagonalRange range = diagonal_range(out.sizes[attrs.axis1], out.sizes[attrs.axis2], attrs.offset);
  const std::int64_t start = range.row * out.strides[attrs.axis1] + range.column * out.strides[attrs.axis2];
  View inside = piece;
  inside.data = out.as<char>() + start * movement::width_of(out);
  for (int d = 0, o = 0; d < out.rank; ++d)
    if (d != attrs.axis1 && d != attrs.axis2) inside.strides[o++] = out.strides[d];
  inside.strides[piece.rank - 1] = out.strides[attrs.axis1] + out.strides[attrs.axis2];
  movement::copy_view(call, piece, inside);
}

// The same elements in reverse order along one axis: the last element comes first, and the stride is negative.
void flip(const KernelCall& call) {
  View from = call.inputs[0];
  if (from.numel() == 0) return;
  for (const std::int64_t a : call.attributes<FlipAttrs>().axes) {
    const int axis = static_cast<int>(a);
    from = movement::window(from, axis, from.sizes[axis] - 1, from.sizes[axis]);
    from.strides[axis] = -from.strides[axis];
  }
  movement::copy_view(call, from, call.outputs[0]);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
