// flip, roll, tril, triu, and paddings that repeat elements of the input. Each is a set of copies between windows of views: a
// window may run backwards (a negative stride) or repeat one element (stride 0). The file also holds the gradient of such a
// padding, which adds the edges back to the elements that they show.
//
//   reflect, before 2, after 1:   [a b c d]   ->   [c b | a b c d | c]
#include <tapedeck/kernels/attrs/rearrange.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/movement/movement.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::kernels::cpu {
namespace {

// The same elements in reverse order along one axis.
View backwards(View view, int axis) {
  view = window(view, axis, view.sizes[axis] - 1, view.sizes[axis]);
  view.strides[axis] = -view.strides[axis];
  return view;
}

// The element `index` of an axis, repeated `size` times.
View repeated(View view, int axis, std::int64_t index, std::int64_t size) {
  view = window(view, axis, index, size);
  view.strides[axis] = 0;
  return view;
}

void roll_axes(const RollAttrs& attrs, int k, const View& from, const View& to) {
  if (k == attrs.axes.size) return copy_view(from, to);
  const int axis = static_cast<int>(attrs.axes[k]);
  const std::int64_t shift = attrs.shifts[k], rest = from.sizes[axis] - shift;
  roll_axes(attrs, k + 1, window(from, axis, 0, rest), window(to, axis, shift, rest));
  if (shift > 0) roll_axes(attrs, k + 1, window(from, axis, rest, shift), window(to, axis, 0, shift));
}

// Keeps the columns [first, last) = keep(row) of every row and clears the others. `row` is the row's number in its matrix.
template <class Keep>
void triangle(const KernelCall& call, Keep&& keep) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t rows = y.sizes[y.rank - 2], columns = y.sizes[y.rank - 1];
  const auto width = static_cast<std::int64_t>(dtype_size(y.dtype));
  const std::int64_t total = y.numel();
  if (total == 0) return;
  parallel_for(total / columns, grain_for(0.1 * static_cast<double>(columns * width) + 5),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const auto [first, last] = keep(row % rows, columns);
                   const char* from = x.as<char>() + row * columns * width;
                   char* to = y.as<char>() + row * columns * width;
                   std::memset(to, 0, static_cast<std::size_t>(first * width));
                   if (from != to)
                     std::memcpy(to + first * width, from + first * width, static_cast<std::size_t>((last - first) * width));
                   std::memset(to + last * width, 0, static_cast<std::size_t>((columns - last) * width));
                 }
               });
}

// Limits the diagonal to the size of the matrix, so that callers cannot overflow. All diagonals beyond the matrix mean the
// same.
std::int64_t clamped_diagonal(const KernelCall& call) {
  const View& y = call.outputs[0];
  return std::clamp(call.attributes<TriangleAttrs>().diagonal, -y.sizes[y.rank - 2], y.sizes[y.rank - 1]);
}

enum class Mode { reflect, replicate, circular };

Mode mode_of(const PadModeAttrs& attrs) {
  return attrs.mode.view() == "reflect" ? Mode::reflect : attrs.mode.view() == "replicate" ? Mode::replicate : Mode::circular;
}

// `whole` is already filled along `axis` in [before, before + n). Fills the edges on both sides from these elements.
void fill_edges(const View& whole, int axis, Mode mode, std::int64_t before, std::int64_t n, std::int64_t after) {
  const View low = window(whole, axis, 0, before), high = window(whole, axis, before + n, after);
  View low_source, high_source;
  switch (mode) {
    case Mode::reflect:
      low_source = backwards(window(whole, axis, before + 1, before), axis);
      high_source = backwards(window(whole, axis, before + n - 1 - after, after), axis);
      break;
    case Mode::replicate:
      low_source = repeated(whole, axis, before, before);
      high_source = repeated(whole, axis, before + n - 1, after);
      break;
    case Mode::circular:
      low_source = window(whole, axis, n, before);
      high_source = window(whole, axis, before, after);
      break;
  }
  if (before > 0) copy_view(low_source, low);
  if (after > 0) copy_view(high_source, high);
}

// Calls use(o) for every index o of the padded axis that shows element s of the n elements, first for the element itself.
template <class Use>
void for_shown(Mode mode, std::int64_t s, std::int64_t before, std::int64_t n, std::int64_t after, Use&& use) {
  use(before + s);
  switch (mode) {
    case Mode::reflect:
      if (s >= 1 && s <= before) use(before - s);
      if (s <= n - 2 && s >= n - 1 - after) use(before + 2 * (n - 1) - s);
      return;
    case Mode::replicate:
      if (s == 0)
        for (std::int64_t o = 0; o < before; ++o) use(o);
      if (s == n - 1)
        for (std::int64_t o = before + n; o < before + n + after; ++o) use(o);
      return;
    case Mode::circular:
      if (s >= n - before) use(s - (n - before));
      if (s < after) use(before + n + s);
      return;
  }
}

// Adds a padded row dy to the row dx of n elements: every element of dy goes to the element of dx that it shows.
template <class T>
void fold_row(Mode mode, std::int64_t before, std::int64_t n, std::int64_t after, const T* dy, T* dx) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t s = 0; s < n; ++s) dx[s] += dy[before + s];
  const T *low = dy, *high = dy + before + n;
  for (std::int64_t k = 0; k < before; ++k)
    dx[mode == Mode::reflect ? before - k : mode == Mode::replicate ? 0 : n - before + k] += low[k];
  for (std::int64_t k = 0; k < after; ++k)
    dx[mode == Mode::reflect ? n - 2 - k : mode == Mode::replicate ? n - 1 : k] += high[k];
}

// Adds to the row of dx at `index` all rows of dy, from dimension d on, that show it.
template <class T>
void fold_rows(const KernelCall& call, const PadModeAttrs& a, Mode mode, const std::int64_t* index, int d, const T* dy, T* dx) {
  const View &in = call.inputs[0], &out = call.outputs[0];
  if (d + 1 >= out.rank) return fold_row(mode, a.before[d], out.sizes[d], a.after[d], dy, dx);
  for_shown(mode, index[d], a.before[d], out.sizes[d], a.after[d],
            [&](std::int64_t o) { fold_rows(call, a, mode, index, d + 1, dy + o * in.strides[d], dx); });
}

template <class T>
void pad_mode_grad_of(const KernelCall& call) {
  const auto& attrs = call.attributes<PadModeAttrs>();
  const View& out = call.outputs[0];
  const Mode mode = mode_of(attrs);
  const std::int64_t total = out.numel();
  if (total == 0) return;
  if (out.rank == 0) {
    *out.as<T>() = *call.inputs[0].as<T>();
    return;
  }
  const std::int64_t n = out.sizes[out.rank - 1];
  parallel_for(total / n, grain_for(static_cast<double>(n) + 20), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t index[kMaxRank] = {}, rest = row;
      for (int d = out.rank - 2; d >= 0; --d) {
        index[d] = rest % out.sizes[d];
        rest /= out.sizes[d];
      }
      T* dx = out.as<T>() + row * n;
      std::fill(dx, dx + n, T(0));
      fold_rows(call, attrs, mode, index, 0, call.inputs[0].as<T>(), dx);
    }
  });
}

}  // namespace

void flip(const KernelCall& call) {
  View from = call.inputs[0];
  if (from.numel() == 0) return;
  for (std::int64_t axis : call.attributes<FlipAttrs>().axes) from = backwards(from, static_cast<int>(axis));
  copy_view(from, call.outputs[0]);
}

void roll(const KernelCall& call) {
  if (call.outputs[0].numel() > 0) roll_axes(call.attributes<RollAttrs>(), 0, call.inputs[0], call.outputs[0]);
}

void tril(const KernelCall& call) {
  const std::int64_t diagonal = clamped_diagonal(call);
  triangle(call, [&](std::int64_t row, std::int64_t columns) {
    return std::pair<std::int64_t, std::int64_t>(0, std::clamp<std::int64_t>(row + diagonal + 1, 0, columns));
  });
}

void triu(const KernelCall& call) {
  const std::int64_t diagonal = clamped_diagonal(call);
  triangle(call, [&](std::int64_t row, std::int64_t columns) {
    return std::pair<std::int64_t, std::int64_t>(std::clamp<std::int64_t>(row + diagonal, 0, columns), columns);
  });
}

void pad_mode(const KernelCall& call) {
  const auto& attrs = call.attributes<PadModeAttrs>();
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  View done = y;
  for (int d = 0; d < y.rank; ++d) done = window(done, d, attrs.before[d], x.sizes[d]);
  copy_view(x, done);
  for (int d = 0; d < y.rank; ++d) {
    done = window(done, d, -attrs.before[d], y.sizes[d]);
    fill_edges(done, d, mode_of(attrs), attrs.before[d], x.sizes[d], attrs.after[d]);
  }
}

void pad_mode_grad(const KernelCall& call) {
  for_floats(call, call.outputs[0].dtype, [&](auto t) { pad_mode_grad_of<decltype(t)>(call); });
}

void pad_constant(const KernelCall& call) {
  const auto& attrs = call.attributes<PadConstantAttrs>();
  View inside = call.outputs[0];
  const auto clear = [&](auto value) {
    using T = decltype(value);
    T* to = inside.as<T>();
    parallel_for(inside.numel(), grain_for(0.1 * sizeof(T)),
                 [&](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, value); });
  };
  if (inside.dtype == DType::boolean)
    clear(static_cast<std::uint8_t>(attrs.value != 0));
  else
    for_numbers(call, inside.dtype, [&](auto t) { clear(Cast<decltype(t)>{}(attrs.value)); });
  if (call.inputs[0].numel() == 0) return;
  for (int d = 0; d < inside.rank; ++d) inside = window(inside, d, attrs.before[d], call.inputs[0].sizes[d]);
  copy_view(call.inputs[0], inside);
}

}  // namespace tapedeck::kernels::cpu
