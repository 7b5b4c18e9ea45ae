// Maximum pooling, the index of the maximum, and the gradients. The index is the tap of the first maximum of the window, in
// row-major order; the first NaN counts as the maximum. The gradient of a result goes to the element at its index. Padding is
// never a maximum.
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/pooling/pool.h>
#include <tapedeck/kernels/parallel.h>

#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

double row_ns(const Pool& p) { return 0.3 * static_cast<double>(p.out[2] * p.taps()) + 5; }
double plane_ns(const Pool& p) { return 2.0 * static_cast<double>(p.out_plane() + p.in_plane()) + 5; }

// larger(): the larger of two numbers, or the first NaN. beside_larger(): of the two numbers that belong to `top` and `x`, the
// one that belongs to the larger. The selects vectorise; a branch would often be mispredicted on real data.
template <class T>
T larger(T top, T x) {
  T m = x > top ? x : top;
  m = x == x ? m : x;
  return top == top ? m : top;
}
template <class T, class I>
I beside_larger(T top, T x, I at, I x_at) {
  I m = x > top ? x_at : at;
  m = x == x ? m : x_at;
  return top == top ? m : at;
}

// The maxima of one piece of a row, and the taps that hold them. A tap is an integer as wide as T.
template <class T>
struct Maxima {
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  T top[kPoolPart];
  Index at[kPoolPart];
};

// The first tap of a result's window that lies inside the image, or -1 if none does.
std::int64_t first_tap(const Pool& p, const PoolRow& part, std::int64_t col) {
  std::int64_t first = -1;
  for_taps(p, {part.depth, part.row, col, col + 1}, [&](std::int64_t tap, std::int64_t, std::int64_t, std::int64_t) {
    if (first < 0) first = tap;
  });
  return first;
}

// Finds the maxima of one piece of a row. If no element is above -inf, the first element inside the image is the maximum; `at`
// is -1 if there is no such element.
template <bool kIndex, class T>
void find_maxima(const Pool& p, const PoolRow& part, const T* plane, Maxima<T>& m) {
  using Index = typename Maxima<T>::Index;
  std::fill(m.top, m.top + part.size(), -std::numeric_limits<T>::infinity());
  if (kIndex) std::fill(m.at, m.at + part.size(), Index(-1));
  for_taps(p, part, [&](std::int64_t tap, std::int64_t offset, std::int64_t first, std::int64_t last) {
    const T* from = plane + offset;
    T* const top = m.top + first;
    Index* const at = m.at + first;
    const std::int64_t n = last - first;
    with_stride(p.stride[2], [&](auto stride) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t i = 0; i < n; ++i) {
        const T x = from[i * stride], before = top[i];
        if constexpr (kIndex) at[i] = beside_larger(before, x, at[i], static_cast<Index>(tap));
        top[i] = larger(before, x);
      }
    });
  });
  if (kIndex)
    for (std::int64_t i = 0; i < part.size(); ++i)
      if (m.at[i] < 0) m.at[i] = static_cast<Index>(first_tap(p, part, part.begin + i));
}

// The usual pool, 2 x 2 at stride 2: compares the two rows of two elements directly.
template <class T, class Y>
void usual_maxima(const Pool& p, std::int64_t begin, std::int64_t end, const Images<T>& x, const Images<Y>& y) {
  using Index = typename Maxima<T>::Index;
  const std::int64_t n = p.out[2];
  for (std::int64_t job = begin; job < end; ++job) {
    const std::int64_t plane = job / p.out[1], row = job % p.out[1];
    const T* upper = x.plane(plane) + row * 2 * p.in[2];
    const T* lower = upper + p.in[2];
    Y* to = y.plane(plane) + row * n;
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      const T a = upper[2 * i], b = upper[2 * i + 1], c = lower[2 * i], d = lower[2 * i + 1];
      const T ab = larger(a, b), abc = larger(ab, c);
      if constexpr (std::is_same_v<T, Y>) {
        to[i] = larger(abc, d);
      } else {
        const Index of_ab = beside_larger(a, b, Index(0), Index(1)), of_abc = beside_larger(ab, c, of_ab, Index(2));
        to[i] = static_cast<Y>(beside_larger(abc, d, of_abc, Index(3)));
      }
    }
  }
}

// Y is T for the maxima, and an integer type for their indices.
template <class T, class Y>
void pool(const Pool& p, const Images<T>& x, const Images<Y>& y) {
  constexpr bool kIndex = !std::is_same_v<T, Y>;
  parallel_for(p.planes * p.out_rows(), grain_for(row_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    if (p.usual()) return usual_maxima(p, begin, end, x, y);
    Maxima<T> m;
    for_parts(p, begin, end, [&](std::int64_t plane, const PoolRow& part, std::int64_t to) {
      find_maxima<kIndex>(p, part, x.plane(plane), m);
      Y* const result = y.plane(plane) + to;
      for (std::int64_t i = 0; i < part.size(); ++i) {
        if constexpr (kIndex)
          result[i] = static_cast<Y>(m.at[i] < 0 ? 0 : m.at[i]);
        else
          result[i] = m.top[i];
      }
    });
  });
}

// Calls f(Index{}) for u8 and i32, the types of an index.
template <class F>
void for_index(const KernelCall& call, DType dtype, F&& f) {
  if (dtype == DType::u8) return f(std::uint8_t{});
  if (dtype == DType::i32) return f(std::int32_t{});
  unsupported(call, dtype);
}

// The position of a tap in its window, before dilation.
struct Place {
  std::int64_t d, h, w;
};
Place place_of(const Pool& p, std::int64_t tap) {
  const std::int64_t rest = tap / p.window[2];
  return {rest / p.window[1], rest % p.window[1], tap % p.window[2]};
}

// The positions of the first 256 taps, so that windows of up to 256 elements need no division per result.
struct Places {
  Place all[256];
  explicit Places(const Pool& p) {
    for (std::int64_t tap = 0; tap < std::min<std::int64_t>(p.taps(), 256); ++tap) all[tap] = place_of(p, tap);
  }
};

// Calls f(input offset, result offset) for every result of a plane whose index names an element inside the image.
template <class I, class F>
void for_chosen(const KernelCall& call, const Pool& p, const Places& places, const I* index, F&& f) {
  const std::int64_t taps = p.taps();
  std::int64_t result = 0;
  for (std::int64_t od = 0; od < p.out[0]; ++od)
    for (std::int64_t oh = 0; oh < p.out[1]; ++oh)
      for (std::int64_t ow = 0; ow < p.out[2]; ++ow, ++result) {
        const std::int64_t tap = index[result];
        if (tap < 0 || tap >= taps) {
          call.fault->report("index outside the window", tap);
          continue;
        }
        const Place k = sizeof(I) == 1 ? places.all[tap] : place_of(p, tap);
        const std::int64_t d = p.position(0, od, k.d), h = p.position(1, oh, k.h), w = p.position(2, ow, k.w);
        if (p.inside(0, d) && p.inside(1, h) && p.inside(2, w)) f((d * p.in[1] + h) * p.in[2] + w, result);
      }
}

template <class T, class I>
void scatter(const KernelCall& call, const Pool& p, const Images<I>& index, const Images<T>& dy, const Images<T>& dx) {
  const Places places(p);
  parallel_for(p.planes, grain_for(plane_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      T* to = dx.plane(plane);
      const T* from = dy.plane(plane);
      std::fill_n(to, p.in_plane(), T(0));
      for_chosen(call, p, places, index.plane(plane), [&](std::int64_t in, std::int64_t out) { to[in] += from[out]; });
    }
  });
}

template <class T, class I>
void gather(const KernelCall& call, const Pool& p, const Images<T>& x, const Images<I>& index, const Images<T>& y) {
  const Places places(p);
  parallel_for(p.planes, grain_for(plane_ns(p)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* from = x.plane(plane);
      T* to = y.plane(plane);
      std::fill_n(to, p.out_plane(), T(0));
      for_chosen(call, p, places, index.plane(plane), [&](std::int64_t in, std::int64_t out) { to[out] = from[in]; });
    }
  });
}

void maxima(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) { pool(p, Images<decltype(t)>(x), Images<decltype(t)>(y)); });
}

void index_of_maxima(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) {
    for_index(call, y.dtype, [&](auto i) { pool(p, Images<decltype(t)>(x), Images<decltype(i)>(y)); });
  });
}

void grad_from_index(const KernelCall& call) {
  const View &index = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  if (dx.numel() == 0) return;
  const Pool p = make_pool(dx, dy, call.attributes<PoolIndexGradAttrs>());
  for_floats(call, dx.dtype, [&](auto t) {
    using T = decltype(t);
    for_index(call, index.dtype, [&](auto i) { scatter(call, p, Images<decltype(i)>(index), Images<T>(dy), Images<T>(dx)); });
  });
}

void at_index(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1], &y = call.outputs[0];
  if (y.numel() == 0) return;
  const Pool p = make_pool(x, y, call.attributes<PoolAttrs>());
  for_floats(call, x.dtype, [&](auto t) {
    using T = decltype(t);
    for_index(call, index.dtype, [&](auto i) { gather(call, p, Images<T>(x), Images<decltype(i)>(index), Images<T>(y)); });
  });
}

// The gradient that reads x: it finds the indices of a piece of a row and uses them at once.
template <class T>
void grad_of_planes(const Pool& p, const Images<T>& x, const Images<T>& dy, const Images<T>& dx) {
  parallel_for(p.planes, grain_for(plane_ns(p) + row_ns(p) * static_cast<double>(p.out_rows())),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t plane = begin; plane < end; ++plane) std::fill_n(dx.plane(plane), p.in_plane(), T(0));
                 Maxima<T> m;
                 for_parts(p, begin * p.out_rows(), end * p.out_rows(),
                           [&](std::int64_t plane, const PoolRow& part, std::int64_t from) {
                             find_maxima<true>(p, part, x.plane(plane), m);
                             const T* const grad = dy.plane(plane) + from;
                             T* const to = dx.plane(plane);
                             for (std::int64_t i = 0; i < part.size(); ++i) {
                               if (m.at[i] < 0) continue;
                               const Place k = place_of(p, m.at[i]);
                               const std::int64_t d = p.position(0, part.depth, k.d), h = p.position(1, part.row, k.h),
                                                  w = p.position(2, part.begin + i, k.w);
                               to[(d * p.in[1] + h) * p.in[2] + w] += grad[i];
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
    grad_of_planes(p, Images<T>(x), Images<T>(dy), Images<T>(dx));
  });
}

}  // namespace tapedeck::kernels::cpu
