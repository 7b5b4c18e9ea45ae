// References of pooling by the definition: each result looks at every element of its plane and keeps the elements of its
// window.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/engine/ops/pool.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::testing {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t number(const Ints& list, int i) { return list.size == 1 ? list[0] : list[i]; }

struct Member {
  std::size_t at;    // flat index in x
  std::int64_t tap;  // place in the window, row-major
};

// The elements of x that one result reads, in the order of the window.
template <class Attrs>
std::vector<Member> members(const Shape& x, const Index& result, const Attrs& a, const Ints& dilation) {
  const Ints stride = a.stride.size ? a.stride : a.window;
  Shape window;
  window.rank = x.rank - 2;
  for (int d = 0; d < window.rank; ++d) window[d] = number(a.window, d);
  std::vector<Member> all;
  for (std::int64_t tap = 0; tap < window.numel(); ++tap) {
    const Index k = coordinates(tap, window);
    Index from = result;
    bool inside = true;
    for (int d = 0; d < window.rank; ++d) {
      const auto u = static_cast<std::size_t>(d);
      from[u + 2] = result[u + 2] * number(stride, d) + k[u] * number(dilation, d) - number(a.padding, d);
      inside = inside && from[u + 2] >= 0 && from[u + 2] < x[d + 2];
    }
    if (inside) all.push_back({static_cast<std::size_t>(index_of(from, x)), tap});
  }
  return all;
}

Member first_maximum(const std::vector<Member>& of, const std::vector<double>& v) {
  Member best = of.at(0);
  for (const Member& m : of) {
    if (std::isnan(v[best.at])) break;
    if (v[m.at] > v[best.at] || std::isnan(v[m.at])) best = m;
  }
  return best;
}

// The divisor of a mean.
template <class Attrs>
double divisor(const Shape& x, const Index& result, const Attrs& a, std::size_t n) {
  if (!a.count_include_pad) return static_cast<double>(n);
  const Ints stride = a.stride.size ? a.stride : a.window;
  double count = 1;
  for (int d = 0; d < x.rank - 2; ++d) {
    const std::int64_t begin = result[static_cast<std::size_t>(d) + 2] * number(stride, d) - number(a.padding, d);
    count *= static_cast<double>(std::min(number(a.window, d), x[d + 2] + number(a.padding, d) - begin));
  }
  return count;
}

// Calls f(flat index, coordinates) for every element of y.
template <class F>
void for_each(const Shape& y, F&& f) {
  for (std::int64_t i = 0; i < y.numel(); ++i) f(static_cast<std::size_t>(i), coordinates(i, y));
}

using Arrays = std::vector<Array>;

Arrays maxima(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const auto& a = attributes_of<PoolAttrs>(e);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    y.v[i] = x[0].v[first_maximum(members(x[0].type.shape, c, a, a.dilation), x[0].v).at];
  });
  return {y};
}

Arrays index_of_maxima(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const auto& a = attributes_of<PoolAttrs>(e);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    y.v[i] = static_cast<double>(first_maximum(members(x[0].type.shape, c, a, a.dilation), x[0].v).tap);
  });
  return {y};
}

Arrays grad_of_maxima(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  const auto& a = attributes_of<PoolAttrs>(e);
  for_each(x[1].type.shape, [&](std::size_t i, const Index& c) {
    dx.v[first_maximum(members(dx.type.shape, c, a, a.dilation), x[0].v).at] += x[1].v[i];
  });
  return {dx};
}

Arrays grad_from_index(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  const auto& a = attributes_of<PoolIndexGradAttrs>(e);
  for_each(x[1].type.shape, [&](std::size_t i, const Index& c) {
    for (const Member& m : members(dx.type.shape, c, a, a.dilation))
      if (static_cast<double>(m.tap) == x[0].v[i]) dx.v[m.at] += x[1].v[i];
  });
  return {dx};
}

Arrays at_index(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const auto& a = attributes_of<PoolAttrs>(e);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    for (const Member& m : members(x[0].type.shape, c, a, a.dilation))
      if (static_cast<double>(m.tap) == x[1].v[i]) y.v[i] = x[0].v[m.at];
  });
  return {y};
}

Arrays means(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const auto& a = attributes_of<AvgPoolAttrs>(e);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    const std::vector<Member> all = members(x[0].type.shape, c, a, {1});
    for (const Member& m : all) y.v[i] += x[0].v[m.at];
    y.v[i] /= divisor(x[0].type.shape, c, a, all.size());
  });
  return {y};
}

Arrays grad_of_means(const Example& e, const Arrays& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  const auto& a = attributes_of<AvgPoolGradAttrs>(e);
  for_each(x[0].type.shape, [&](std::size_t i, const Index& c) {
    const std::vector<Member> all = members(dx.type.shape, c, a, {1});
    for (const Member& m : all) dx.v[m.at] += x[0].v[i] / divisor(dx.type.shape, c, a, all.size());
  });
  return {dx};
}

// The elements of an adaptive window: all elements that its share of the plane touches.
std::vector<Member> adaptive_members(const Shape& x, const Shape& y, const Index& c) {
  std::vector<Member> all;
  for (std::int64_t h = 0; h < x[2]; ++h)
    for (std::int64_t w = 0; w < x[3]; ++w) {
      const auto touches = [](std::int64_t at, std::int64_t in, std::int64_t o,
                              std::int64_t n) {  // do [at, at + 1) and [o, o + 1) * in / n overlap
        return at * n < (o + 1) * in && (at + 1) * n > o * in;
      };
      if (touches(h, x[2], c[2], y[2]) && touches(w, x[3], c[3], y[3]))
        all.push_back({static_cast<std::size_t>(index_of({c[0], c[1], h, w}, x)), h * x[3] + w});
    }
  return all;
}

Arrays adaptive_means(const Example&, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    const std::vector<Member> all = adaptive_members(x[0].type.shape, y.type.shape, c);
    for (const Member& m : all) y.v[i] += x[0].v[m.at] / static_cast<double>(all.size());
  });
  return {y};
}

Arrays grad_of_adaptive_means(const Example&, const Arrays& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  for_each(x[0].type.shape, [&](std::size_t i, const Index& c) {
    const std::vector<Member> all = adaptive_members(dx.type.shape, x[0].type.shape, c);
    for (const Member& m : all) dx.v[m.at] += x[0].v[i] / static_cast<double>(all.size());
  });
  return {dx};
}

Arrays adaptive_maxima(const Example&, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) {
    const Member m = first_maximum(adaptive_members(x[0].type.shape, y.type.shape, c), x[0].v);
    y.v[i] = out[0].dtype == DType::i32 ? static_cast<double>(m.tap) : x[0].v[m.at];
  });
  return {y};
}

std::size_t in_plane(const Shape& x, const Index& c, double at) {
  const auto flat = static_cast<std::int64_t>(at);
  return static_cast<std::size_t>(index_of({c[0], c[1], flat / x[3], flat % x[3]}, x));
}

Arrays adaptive_grad_from_index(const Example&, const Arrays& x, const std::vector<Type>& out) {
  Array dx = blank(out[0]);
  for_each(x[1].type.shape, [&](std::size_t i, const Index& c) { dx.v[in_plane(dx.type.shape, c, x[0].v[i])] += x[1].v[i]; });
  return {dx};
}

Arrays adaptive_at_index(const Example&, const Arrays& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_each(y.type.shape, [&](std::size_t i, const Index& c) { y.v[i] = x[0].v[in_plane(x[0].type.shape, c, x[1].v[i])]; });
  return {y};
}

const AddReference pools[] = {
    {"max_pool2d", maxima},
    {"max_pool2d_grad", grad_of_maxima},
    {"max_pool2d_index", index_of_maxima},
    {"max_pool2d_grad_from_index", grad_from_index},
    {"max_pool2d_at_index", at_index},
    {"max_pool3d", maxima},
    {"max_pool3d_index", index_of_maxima},
    {"max_pool3d_grad_from_index", grad_from_index},
    {"max_pool3d_at_index", at_index},
    {"avg_pool2d", means},
    {"avg_pool2d_grad", grad_of_means},
    {"avg_pool3d", means},
    {"avg_pool3d_grad", grad_of_means},
    {"adaptive_avg_pool2d", adaptive_means},
    {"adaptive_avg_pool2d_grad", grad_of_adaptive_means},
    {"adaptive_max_pool2d", adaptive_maxima},
    {"adaptive_max_pool2d_index", adaptive_maxima},
    {"adaptive_max_pool2d_grad_from_index", adaptive_grad_from_index},
    {"adaptive_max_pool2d_at_index", adaptive_at_index},
};

}  // namespace
}  // namespace tapedeck::testing
