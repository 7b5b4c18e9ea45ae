// Maximum pooling and its index: the place in the window of the first maximum in row-major order, where the first NaN counts as the
// maximum. The gradient goes there. Padding never wins.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/pool.h>
#include <tapedeck/kernels/parallel.h>

#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

double row_ns(const Pool& p) { return 0.3 * static_cast<double>(p.out[2] * p.taps()) + 5; }
double plane_ns(const Pool& p) { return 2.0 * static_cast<double>(p.out_plane() + p.in_plane()) + 5; }

// Selects, since maxima in real data defeat branch prediction.
template <class T>
bool beats(T x, T top) {
  return (x > top) | ((x != x) & (top == top));
}

// The maxima of a part of a row, and the taps that hold them (-1: no element of the window lies inside).
template <class T>
struct Maxima {
  T top[kPoolPart];
  std::int32_t at[kPoolPart];
};

template <bool kIndex, class T>
void find_maxima(const Pool& p, const PoolRow& part, const T* plane, Maxima<T>& m) {
  std::fill(m.top, m.top + part.size(), -std::numeric_limits<T>::infinity());
  if (kIndex) std::fill(m.at, m.at + part.size(), -1);
  for_taps(p, part, [&](std::int64_t tap, std::int64_t offset, std::int64_t first, std::int64_t last) {
    const T* from = plane + offset;
    with_stride(p.stride[2], [&](auto stride) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t i = first; i < last; ++i) {
        const T x = from[(i - first) * stride];
        const bool better = beats(x, m.top[i]) | (kIndex && m.at[i] < 0);
        if (kIndex) m.at[i] = better ? static_cast<std::int32_t>(tap) : m.at[i];
        m.top[i] = better ? x : m.top[i];
      }
    });
  });
}

// Two by two: both rows of two elements, without a detour.
template <class T, class Y>
void usual_maxima(const Pool& p, std::int64_t begin, std::int64_t end, const T* x, Y* y) {
  const std::int64_t n = p.out[2];
  for (std::int64_t job = begin; job < end; ++job) {
    const T* upper = x + job / p.out[1] * p.in_plane() + job % p.out[1] * 2 * p.in[2];
    const T* lower = upper + p.in[2];
    Y* to = y + job * n;
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      T top = upper[2 * i];
      std::int32_t at = 0;
      const T others[] = {upper[2 * i + 1], lower[2 * i], lower[2 * i + 1]};
      for (std::int32_t k = 0; k < 3; ++k) {
        const bool better = beats(others[k], top);
        at = better ? k + 1 : at;
        top = better ? others[k] : top;
      }
      if constexpr (std::is_same_v<T, Y>)
        to[i] = top;
      else
        to[i] = static_cast<Y>(at);
    }
  }
}

// Y is T for the maxima, an integer for their index.
template <class T, class Y>
void pool(const Pool& p, const T* x, Y* y) {
  constexpr bool kIndex = !std::is_same_v<T, Y>;
  parallel_for(p.planes * p.out_rows(), grain_for(row_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    if (p.usual()) return usual_maxima(p, begin, end, x, y);
    Maxima<T> m;
    for_parts(p, begin, end, [&](std::int64_t plane, const PoolRow& part, std::int64_t to) {
      find_maxima<kIndex>(p, part, x + plane * p.in_plane(), m);
      for (std::int64_t i = 0; i < part.size(); ++i) {
        if constexpr (kIndex)
          y[to + i] = static_cast<Y>(std::max(m.at[i], 0));
        else
          y[to + i] = m.top[i];
      }
    });
  });
}

// f(Index{}) for the type of an index.
template <class F>
void for_index(const KernelCall& call, DType dtype, F&& f) {
  if (dtype == DType::u8) return f(std::uint8_t{});
  if (dtype == DType::i32) return f(std::int32_t{});
  unsupported(call, dtype);
}

// Calls f(input offset, result offset) for every result of a plane whose index names an element inside.
template <class I, class F>
void for_chosen(const KernelCall& call, const Pool& p, const I* index, F&& f) {
  const auto width = static_cast<std::uint32_t>(p.window[2]), height = static_cast<std::uint32_t>(p.window[1]);
  std::int64_t result = 0;
  for (std::int64_t od = 0; od < p.out[0]; ++od)
    for (std::int64_t oh = 0; oh < p.out[1]; ++oh)
      for (std::int64_t ow = 0; ow < p.out[2]; ++ow, ++result) {
        const auto tap = static_cast<std::uint32_t>(index[result]);
        if (tap >= p.taps()) {
          call.fault->report("index outside the window", static_cast<std::int64_t>(index[result]));
          continue;
        }
        const std::uint32_t rest = tap / width;
        const std::int64_t w = p.position(2, ow, tap - rest * width), h = p.position(1, oh, rest % height);
        const std::int64_t d = p.position(0, od, rest / height);
        if (p.inside(0, d) && p.inside(1, h) && p.inside(2, w)) f((d * p.in[1] + h) * p.in[2] + w, result);
      }
}

template <class T, class I>
void scatter(const KernelCall& call, const Pool& p, const I* index, const T* dy, T* dx) {
  parallel_for(p.planes, grain_for(plane_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    std::fill(dx + begin * p.in_plane(), dx + end * p.in_plane(), T(0));
    for (std::int64_t plane = begin; plane < end; ++plane) {
      T* to = dx + plane * p.in_plane();
      const T* from = dy + plane * p.out_plane();
      for_chosen(call, p, index + plane * p.out_plane(), [&](std::int64_t in, std::int64_t out) { to[in] += from[out]; });
    }
  });
}

template <class T, class I>
void gather(const KernelCall& call, const Pool& p, const T* x, const I* index, T* y) {
  parallel_for(p.planes, grain_for(plane_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    std::fill(y + begin * p.out_plane(), y + end * p.out_plane(), T(0));
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* from = x + plane * p.in_plane();
      T* to = y + plane * p.out_plane();
      for_chosen(call, p, index + plane * p.out_plane(), [&](std::int64_t in, std::int64_t out) { to[out] = from[in]; });
    }
  });
}

void maxima(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) { pool(p, x.as<decltype(t)>(), y.as<decltype(t)>()); });
}

void index_of_maxima(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) {
    for_index(call, y.dtype, [&](auto i) { pool(p, x.as<decltype(t)>(), y.as<decltype(i)>()); });
  });
}

void grad_from_index(const KernelCall& call) {
  const View &index = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const Pool p = make_pool(dx, dy, call.attributes<PoolIndexGradAttrs>());
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    for_index(call, index.dtype, [&](auto i) { scatter(call, p, index.as<decltype(i)>(), dy.as<T>(), dx.as<T>()); });
  });
}

void at_index(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    for_index(call, index.dtype, [&](auto i) { gather(call, p, x.as<T>(), index.as<decltype(i)>(), y.as<T>()); });
  });
}

// The gradient that reads x: a row's index, used at once.
template <class T>
void grad_of_planes(const Pool& p, const T* x, const T* dy, T* dx) {
  parallel_for(p.planes, grain_for(plane_ns(p) + row_ns(p) * static_cast<double>(p.out_rows())), [&](std::int64_t begin, std::int64_t end) {
    std::fill(dx + begin * p.in_plane(), dx + end * p.in_plane(), T(0));
    Maxima<T> m;
    for_parts(p, begin * p.out_rows(), end * p.out_rows(), [&](std::int64_t plane, const PoolRow& part, std::int64_t from) {
      find_maxima<true>(p, part, x + plane * p.in_plane(), m);
      for (std::int64_t i = 0; i < part.size(); ++i) {
        if (m.at[i] < 0) continue;
        const std::int64_t tap = m.at[i], rest = tap / p.window[2];
        const std::int64_t d = p.position(0, part.depth, rest / p.window[1]), h = p.position(1, part.row, rest % p.window[1]);
        const std::int64_t w = p.position(2, part.begin + i, tap % p.window[2]);
        dx[plane * p.in_plane() + (d * p.in[1] + h) * p.in[2] + w] += dy[from + i];
      }
    });
  });
}

}  // namespace

void max_pool2d(const KernelCall& call) { maxima(call); }
void max_pool2d_index(const KernelCall& call) { index_of_maxima(call); }
void max_pool2d_grad_from_index(const KernelCall& call) { grad_from_index(call); }
void max_pool2d_at_index(const KernelCall& call) { at_index(call); }
void max_pool3d(const KernelCall& call) { maxima(call); }
void max_pool3d_index(const KernelCall& call) { index_of_maxima(call); }
void max_pool3d_grad_from_index(const KernelCall& call) { grad_from_index(call); }
void max_pool3d_at_index(const KernelCall& call) { at_index(call); }

void max_pool2d_grad(const KernelCall& call) {
  const View &x = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const Pool p = make_pool(x, dy, call.attributes<PoolAttrs>());
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    grad_of_planes(p, x.as<T>(), dy.as<T>(), dx.as<T>());
  });
}

}  // namespace tapedeck::kernels::cpu
