// Ops whose results hold each element of the operand at a place that follows from the place alone: pads of all kinds, roll,
// tril, triu. One kernel serves the pads and roll: it asks for every dimension of the result which element of the operand
// shows.
//
//   reflect, before 2, after 1:   [a b c d]   ->   [c b | a b c d | c]
//
// The gradient of a pad that repeats elements adds up the places that show an element, in the order of the CPU kernel.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/rearrange.h>
#include <tapedeck/kernels/cuda/movement/movement.h>
#include <tapedeck/kernels/scalar.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

enum class Edges { constant, reflect, replicate, circular };

// y shows x, from place `before` on.
struct Padding {
  const void* x;
  void* y;
  std::int64_t n = 0;  // elements of y
  int rank = 0;
  Edges edges = Edges::constant;
  bool x_lies_there = false;
  std::uint64_t value = 0;  // the bits of the constant
  std::int64_t sizes[kMaxRank] = {}, x_sizes[kMaxRank] = {}, before[kMaxRank] = {};
  std::int64_t x_strides[kMaxRank] = {}, y_strides[kMaxRank] = {};
};

// The element of a dimension of n elements that shows at `at`, which lies less than n before or behind it, or -1.
TAPEDECK_DEVICE std::int64_t shown(Edges edges, std::int64_t at, std::int64_t n) {
  if (at >= 0 && at < n) return at;
  const bool low = at < 0;
  switch (edges) {
    case Edges::reflect:
      return low ? -at : 2 * (n - 1) - at;
    case Edges::replicate:
      return low ? 0 : n - 1;
    case Edges::circular:
      return low ? at + n : at - n;
    default:
      return -1;
  }
}

template <class T>
TAPEDECK_DEVICE T constant_of(std::uint64_t bits) {
  if constexpr (sizeof(T) == 16)
    return T{bits, bits};
  else
    return static_cast<T>(bits);
}

template <class T>
TAPEDECK_KERNEL void padding_kernel(const Padding p) {
  for (std::int64_t i = thread_index(); i < p.n; i += thread_count()) {
    std::int64_t rest = i, x = 0, y = 0;
    bool inside = true;
    for (int d = p.rank - 1; d >= 0; --d) {
      const std::int64_t next = rest / p.sizes[d], at = rest - next * p.sizes[d];
      const std::int64_t from = shown(p.edges, at - p.before[d], p.x_sizes[d]);
      inside = inside && from >= 0;
      x += from * p.x_strides[d];
      y += at * p.y_strides[d];
      rest = next;
    }
    if (!inside)
      static_cast<T*>(p.y)[y] = constant_of<T>(p.value);
    else if (!p.x_lies_there)
      static_cast<T*>(p.y)[y] = static_cast<const T*>(p.x)[x];
  }
}

Padding padding_of(const View& x, const View& y, Edges edges) {
  Padding p{x.data, y.data, y.numel(), y.rank, edges};
  for (int d = 0; d < y.rank; ++d) {
    p.sizes[d] = y.sizes[d];
    p.x_sizes[d] = x.sizes[d];
    p.x_strides[d] = x.strides[d];
    p.y_strides[d] = y.strides[d];
  }
  return p;
}

// The widest element in which the rows of a padding with zeros can be written.
std::size_t padding_width(const Padding& p, std::int64_t width) {
  const int last = p.rank - 1;
  const auto narrow = static_cast<std::size_t>(width);
  if (last < 0 || p.value != 0 || p.x_strides[last] != 1 || p.y_strides[last] != 1) return narrow;
  std::uint64_t all = movement::address_of(p.x) | movement::address_of(p.y);
  const auto join = [&](std::int64_t elements) { all |= static_cast<std::uint64_t>(elements * width); };
  join(p.sizes[last]);
  join(p.x_sizes[last]);
  join(p.before[last]);
  for (int d = 0; d < last; ++d) {
    join(p.x_strides[d]);
    join(p.y_strides[d]);
  }
  return movement::common_width(all);
}

void widen(Padding& p, std::int64_t factor) {
  const int last = p.rank - 1;
  if (factor == 1) return;
  p.n /= factor;
  p.sizes[last] /= factor;
  p.x_sizes[last] /= factor;
  p.before[last] /= factor;
  for (int d = 0; d < last; ++d) {
    p.x_strides[d] /= factor;
    p.y_strides[d] /= factor;
  }
}

void run_padding(const KernelCall& call, Padding p) {
  if (p.n == 0) return;
  const std::int64_t width = movement::width_of(call.outputs[0]);
  const std::size_t wide = p.edges == Edges::constant ? padding_width(p, width) : static_cast<std::size_t>(width);
  widen(p, static_cast<std::int64_t>(wide) / width);
  for_width(wide, [&](auto t) { launch(call, &padding_kernel<decltype(t)>, for_items(p.n), p); });
}

Edges edges_of(const PadModeAttrs& attrs) {
  return attrs.mode.view() == "reflect"     ? Edges::reflect
         : attrs.mode.view() == "replicate" ? Edges::replicate
                                            : Edges::circular;
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

// The bits of an element with this value.
std::uint64_t element_bits(const KernelCall& call, DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return bits_of(Cast<float>{}(value));
    case DType::f64:
      return bits_of(value);
    case DType::i32:
      return bits_of(Cast<std::int32_t>{}(value));
    case DType::i64:
      return bits_of(Cast<std::int64_t>{}(value));
    case DType::u8:
      return bits_of(Cast<std::uint8_t>{}(value));
    case DType::boolean:
      return value != 0;
    default:
      unsupported(call, dtype);
      return 0;
  }
}

// ---- triangles ----

struct Triangle {
  const void* x;
  void* y;
  std::int64_t n, rows, columns, diagonal;
  bool lower;
};

template <class T>
TAPEDECK_KERNEL void triangle_kernel(const Triangle t) {
  for (std::int64_t i = thread_index(); i < t.n; i += thread_count()) {
    const std::int64_t above = i / t.columns, column = i - above * t.columns, row = above % t.rows;
    const bool kept = t.lower ? column - row <= t.diagonal : column - row >= t.diagonal;
    static_cast<T*>(t.y)[i] = kept ? static_cast<const T*>(t.x)[i] : T(0);
  }
}

// The diagonal is limited to the size of the matrix, so that nothing overflows. All diagonals beyond it mean the same.
void run_triangle(const KernelCall& call, bool lower) {
  const View& y = call.outputs[0];
  Triangle t{call.inputs[0].data, y.data, y.numel(), y.sizes[y.rank - 2], y.sizes[y.rank - 1], 0, lower};
  t.diagonal = call.attributes<TriangleAttrs>().diagonal;
  if (t.diagonal < -t.rows) t.diagonal = -t.rows;
  if (t.diagonal > t.columns) t.diagonal = t.columns;
  switch (movement::width_of(y)) {
    case 1:
      return launch(call, &triangle_kernel<std::uint8_t>, for_items(t.n), t);
    case 2:
      return launch(call, &triangle_kernel<std::uint16_t>, for_items(t.n), t);
    case 4:
      return launch(call, &triangle_kernel<std::uint32_t>, for_items(t.n), t);
    default:
      return launch(call, &triangle_kernel<std::uint64_t>, for_items(t.n), t);
  }
}

// ---- the gradient of a pad that repeats elements ----

struct PaddingGrad {
  const void* dy;
  void* dx;
  std::int64_t n = 0;  // elements of dx
  int rank = 0;
  Edges edges = Edges::reflect;
  std::int64_t sizes[kMaxRank] = {}, before[kMaxRank] = {}, after[kMaxRank] = {}, dy_strides[kMaxRank] = {};
};

// A dimension of n elements with a padding: which places of the padded dimension show element s? The element itself is the
// first; the places before it follow, then those behind it, each in ascending order.
struct Showing {
  std::int64_t itself, low, low_count, high, high_count;

  TAPEDECK_DEVICE Showing(Edges edges, std::int64_t s, std::int64_t before, std::int64_t n, std::int64_t after)
      : itself(before + s), low(0), low_count(0), high(before + n), high_count(0) {
    if (edges == Edges::replicate) {
      low_count = s == 0 ? before : 0;
      high_count = s == n - 1 ? after : 0;
      return;
    }
    const bool reflect = edges == Edges::reflect;
    low = reflect ? before - s : s - (n - before);
    low_count = reflect ? s >= 1 && s <= before : s >= n - before;
    high = reflect ? before + 2 * (n - 1) - s : before + n + s;
    high_count = reflect ? s <= n - 2 && s >= n - 1 - after : s < after;
  }
  TAPEDECK_DEVICE std::int64_t count() const { return 1 + low_count + high_count; }
  TAPEDECK_DEVICE std::int64_t place(std::int64_t k) const {
    if (k == 0) return itself;
    return k <= low_count ? low + k - 1 : high + k - 1 - low_count;
  }
};

template <class T>
TAPEDECK_KERNEL void padding_grad_kernel(const PaddingGrad g) {
  for (std::int64_t i = thread_index(); i < g.n; i += thread_count()) {
    std::int64_t places = 1;
    for (std::int64_t rest = i, d = g.rank - 1; d >= 0; rest /= g.sizes[d], --d)
      places *= Showing(g.edges, rest % g.sizes[d], g.before[d], g.sizes[d], g.after[d]).count();
    T sum = T(0);
    for (std::int64_t place = 0; place < places; ++place) {
      std::int64_t offset = 0;
      for (std::int64_t rest = i, k = place, d = g.rank - 1; d >= 0; rest /= g.sizes[d], --d) {
        const Showing all(g.edges, rest % g.sizes[d], g.before[d], g.sizes[d], g.after[d]);
        offset += all.place(k % all.count()) * g.dy_strides[d];
        k /= all.count();
      }
      sum += static_cast<const T*>(g.dy)[offset];
    }
    static_cast<T*>(g.dx)[i] = g.rank == 0 ? *static_cast<const T*>(g.dy) : sum;
  }
}

}  // namespace

void pad(const KernelCall& call) {
  const auto& attrs = call.attributes<PadAttrs>();
  const View &x = call.inputs[0], &y = call.outputs[0];
  Padding p = padding_of(x, y, Edges::constant);
  View inside = y;
  for (int d = 0; d < y.rank; ++d) {
    p.before[d] = attrs.before[d];
    inside = movement::window(inside, d, attrs.before[d], x.sizes[d]);
  }
  p.x_lies_there = movement::lies_there(x, inside);
  run_padding(call, p);
}

void pad_constant(const KernelCall& call) {
  const auto& attrs = call.attributes<PadConstantAttrs>();
  Padding p = padding_of(call.inputs[0], call.outputs[0], Edges::constant);
  for (int d = 0; d < p.rank; ++d) p.before[d] = attrs.before[d];
  p.value = element_bits(call, call.outputs[0].dtype, attrs.value);
  run_padding(call, p);
}

void pad_mode(const KernelCall& call) {
  const auto& attrs = call.attributes<PadModeAttrs>();
  Padding p = padding_of(call.inputs[0], call.outputs[0], edges_of(attrs));
  for (int d = 0; d < p.rank; ++d) p.before[d] = attrs.before[d];
  run_padding(call, p);
}

// Elements that fall off the end come back at the start: the edge of a circular padding, as wide as the shift.
void roll(const KernelCall& call) {
  const auto& attrs = call.attributes<RollAttrs>();
  Padding p = padding_of(call.inputs[0], call.outputs[0], Edges::circular);
  for (int k = 0; k < attrs.axes.size; ++k) p.before[attrs.axes[k]] = attrs.shifts[k];
  run_padding(call, p);
}

void tril(const KernelCall& call) { run_triangle(call, true); }
void triu(const KernelCall& call) { run_triangle(call, false); }

void pad_mode_grad(const KernelCall& call) {
  const auto& attrs = call.attributes<PadModeAttrs>();
  const View &dy = call.inputs[0], &dx = call.outputs[0];
  PaddingGrad g{dy.data, dx.data, dx.numel(), dx.rank, edges_of(attrs)};
  for (int d = 0; d < dx.rank; ++d) {
    g.sizes[d] = dx.sizes[d];
    g.before[d] = attrs.before[d];
    g.after[d] = attrs.after[d];
    g.dy_strides[d] = dy.strides[d];
  }
  for_wide_floats(call, dx.dtype, [&](auto t) { launch(call, &padding_grad_kernel<decltype(t)>, for_items(g.n), g); });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
