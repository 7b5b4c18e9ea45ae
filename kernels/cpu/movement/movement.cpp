// Kernels that move elements and do not compute with them: copy, concat, pad, slice_assign, diagonal_assign, full, one_hot.
// Most of them copy between windows of views:
//
//   concat [a b] and [c]   ->   copy [a b] into elements 0 ... 1 of the result, copy [c] into element 2
//
// An operand that already lies at its place in the result is not copied.
#include <tapedeck/kernels/cpu/movement/movement.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/movement.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/cpu/transpose.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kCopyGrainBytes = 512 * 1024;
constexpr std::int64_t kTile = 16;

struct Identity {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};

void copy_dense(const View& from, const View& to) {
  const std::int64_t bytes = to.numel() * static_cast<std::int64_t>(dtype_size(to.dtype));
  parallel_for(bytes, kCopyGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memmove(to.as<char>() + begin, from.as<char>() + begin, static_cast<std::size_t>(end - begin));
  });
}

// True if the last two dimensions of the walk are a transposed matrix: the input is contiguous along the last dimension but
// one. copy_transposed copies such a walk in square tiles, so that both sides stay in the cache.
template <class T>
bool is_transposed(const Walk& w) {
  const std::int64_t width = sizeof(T);
  return w.rank >= 2 && w.strides[0][w.rank - 1] == width && w.strides[1][w.rank - 2] == width &&
         w.strides[1][w.rank - 1] > width && w.sizes[w.rank - 1] >= kTile && w.sizes[w.rank - 2] >= kTile;
}

// Each piece of the parallel loop is a band of kTile rows of one matrix.
template <class T>
void copy_transposed(const Walk& w) {
  constexpr std::int64_t width = sizeof(T);
  const int last = w.rank - 1;
  const std::int64_t rows = w.sizes[last - 1], cols = w.sizes[last];
  const std::int64_t bands = (rows + kTile - 1) / kTile;
  std::int64_t matrices = 1;
  for (int d = 0; d + 2 <= last; ++d) matrices *= w.sizes[d];
  const std::int64_t grain = std::max<std::int64_t>(1, kCopyGrainBytes / (kTile * cols * width));
  parallel_for(matrices * bands, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      char* to = w.base[0];
      const char* from = w.base[1];
      std::int64_t rest = piece / bands;
      for (int d = last - 2; d >= 0; --d) {
        to += rest % w.sizes[d] * w.strides[0][d];
        from += rest % w.sizes[d] * w.strides[1][d];
        rest /= w.sizes[d];
      }
      const std::int64_t row = piece % bands * kTile;
      transpose(reinterpret_cast<const T*>(from) + row, w.strides[1][last] / width,
                reinterpret_cast<T*>(to + row * w.strides[0][last - 1]), w.strides[0][last - 1] / width,
                std::min(kTile, rows - row), cols);
    }
  });
}

template <class T>
void fill(const View& out, T value) {
  T* to = out.as<T>();
  parallel_for(out.numel(), kCopyGrainBytes / static_cast<std::int64_t>(sizeof(T)),
               [&](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, value); });
}

}  // namespace

void copy_view(const View& from, const View& to) {
  if (to.numel() == 0) return;
  if (from.dense() && to.dense()) return copy_dense(from, to);
  const View* views[] = {&to, &from};
  const Walk walk = make_walk(views, 2);
  for_widths(to.dtype, [&](auto t) {
    using T = decltype(t);
    if (is_transposed<T>(walk)) return copy_transposed<T>(walk);
    const Identity f;
    parallel_for(to.numel(), grain_for(1.0),
                 [&](std::int64_t begin, std::int64_t end) { walk_range(walk, begin, end, detail::row<Identity, T, T>, &f); });
  });
}

View window(View view, int axis, std::int64_t start, std::int64_t size) {
  if (view.data) view.data = view.as<char>() + start * view.strides[axis] * static_cast<std::int64_t>(dtype_size(view.dtype));
  view.sizes[axis] = size;
  return view;
}

void copy(const KernelCall& call) { copy_view(call.inputs[0], call.outputs[0]); }
void to_device(const KernelCall& call) { copy(call); }  // a copy between logical CPU devices, which share one memory

namespace {

// True if an operand already lies at its place in the result, because the kernel that made it wrote it there.
bool lies_there(const View& part, const View& place) {
  if (part.data != place.data) return false;
  for (int d = 0; d < part.rank; ++d)
    if (part.sizes[d] > 1 && part.strides[d] != place.strides[d]) return false;
  return true;
}

void put(const View& part, const View& place) {
  if (!lies_there(part, place)) copy_view(part, place);
}

void clear(const View& view) {
  static const char zeros[8] = {};
  View zero = view;
  zero.data = const_cast<char*>(zeros);
  std::fill_n(zero.strides, zero.rank, 0);
  copy_view(zero, view);
}

}  // namespace

void concat(const KernelCall& call) {
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  std::int64_t at = 0;
  for (int k = 0; k < call.n_inputs; ++k) {
    const std::int64_t size = call.inputs[k].sizes[axis];
    put(call.inputs[k], window(call.outputs[0], axis, at, size));
    at += size;
  }
}

// Writes zeros beside the operand, dimension by dimension, and never onto it: the operand may already lie at its place.
void pad(const KernelCall& call) {
  const auto& attrs = call.attributes<PadAttrs>();
  View inside = call.outputs[0];
  if (inside.numel() == 0) return;
  for (int d = 0; d < inside.rank; ++d) {
    const std::int64_t size = call.inputs[0].sizes[d], before = attrs.before[d];
    clear(window(inside, d, 0, before));
    clear(window(inside, d, before + size, inside.sizes[d] - before - size));
    inside = window(inside, d, before, size);
  }
  put(call.inputs[0], inside);
}

namespace {

// Copies the base to the result, unless both are the same memory.
void copy_base(const KernelCall& call) {
  if (call.inputs[0].data != call.outputs[0].data) copy_view(call.inputs[0], call.outputs[0]);
}

void advance(View& view, std::int64_t elements) {
  view.data = view.as<char>() + elements * static_cast<std::int64_t>(dtype_size(view.dtype));
}

}  // namespace

void slice_assign(const KernelCall& call) {
  const auto& attrs = call.attributes<SliceAttrs>();
  copy_base(call);
  const View& piece = call.inputs[1];
  if (piece.numel() == 0) return;
  View inside = call.outputs[0];
  for (int d = 0; d < inside.rank; ++d) {
    advance(inside, attrs.starts[d] * inside.strides[d]);
    inside.sizes[d] = piece.sizes[d];
    if (attrs.steps.size && piece.sizes[d] > 1) inside.strides[d] *= attrs.steps[d];
  }
  copy_view(piece, inside);
}

void diagonal_assign(const KernelCall& call) {
  const auto& attrs = call.attributes<DiagonalAttrs>();
  copy_base(call);
  const View& piece = call.inputs[1];
  if (piece.numel() == 0) return;
  const View& out = call.outputs[0];
  const DiagonalRange range = diagonal_range(out.sizes[attrs.axis1], out.sizes[attrs.axis2], attrs.offset);
  View inside = piece;
  inside.data = out.data;
  advance(inside, range.row * out.strides[attrs.axis1] + range.column * out.strides[attrs.axis2]);
  for (int d = 0, o = 0; d < out.rank; ++d)
    if (d != attrs.axis1 && d != attrs.axis2) inside.strides[o++] = out.strides[d];
  inside.strides[piece.rank - 1] = out.strides[attrs.axis1] + out.strides[attrs.axis2];
  copy_view(piece, inside);
}

void full(const KernelCall& call) {
  const double value = call.attributes<FullAttrs>().value;
  const View& out = call.outputs[0];
  if (out.dtype == DType::boolean) return fill<std::uint8_t>(out, ToBool{}(value));
  for_numbers(call, out.dtype, [&](auto t) { fill(out, Cast<decltype(t)>{}(value)); });
}

namespace {

template <class Label, class T>
void one_hot_rows(const KernelCall& call, T one) {
  const std::int64_t classes = call.attributes<OneHotAttrs>().classes;
  const Label* labels = call.inputs[0].as<Label>();
  T* out = call.outputs[0].as<T>();
  for (std::int64_t i = 0; i < call.inputs[0].numel(); ++i) {
    T* row = out + i * classes;
    std::fill(row, row + classes, T(0));
    if (labels[i] < 0 || labels[i] >= classes)
      call.fault->report("label out of range", labels[i]);
    else
      row[labels[i]] = one;
  }
}

}  // namespace

void one_hot(const KernelCall& call) {
  const DType out = call.outputs[0].dtype;
  for_numbers(call, out == DType::boolean ? DType::u8 : out, [&](auto t) {
    using T = decltype(t);
    if (call.inputs[0].dtype == DType::i32) return one_hot_rows<std::int32_t, T>(call, T(1));
    if (call.inputs[0].dtype == DType::i64) return one_hot_rows<std::int64_t, T>(call, T(1));
    unsupported(call, call.inputs[0].dtype);
  });
}

}  // namespace tapedeck::kernels::cpu
