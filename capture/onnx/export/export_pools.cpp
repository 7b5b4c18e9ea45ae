// Pools.
#include <tapedeck/capture/onnx/export/export_ops.h>
#include <tapedeck/capture/onnx/export/window_lists.h>

#include <tapedeck/kernels/attrs/pool.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// ---- pools ----

struct Pool {
  int dims;
  Integers window, stride, pads, dilation;
  bool ceil;
  std::int64_t extent(std::size_t i) const { return (window[i] - 1) * dilation[i] + 1; }
  Attributes attributes() const {
    return {{"kernel_shape", window}, {"strides", stride}, {"pads", pads}, {"ceil_mode", ceil ? 1 : 0}};
  }
};

template <class A>
Pool pool_of(const A& a, int rank) {
  Pool p{rank - 2,
         for_each_dim(a.window, rank - 2),
         for_each_dim(a.stride.size == 0 ? a.window : a.stride, rank - 2),
         pads_of(a.padding, rank - 2),
         Integers(static_cast<std::size_t>(rank - 2), 1),
         a.ceil_mode};
  if constexpr (requires { a.dilation; }) p.dilation = for_each_dim(a.dilation, rank - 2);
  return p;
}

// The distance that the last window of an axis reaches behind the padded operand; negative if it ends before.
std::int64_t overhang(const Pool& p, const Shape& x, const Shape& y, int i) {
  const auto u = static_cast<std::size_t>(i);
  const std::int64_t reached = (y[i + 2] - 1) * p.stride[u] + p.extent(u);
  return reached - (x[i + 2] + p.pads[u] + p.pads[u + static_cast<std::size_t>(p.dims)]);
}

// With ceil_mode, ONNX of this version also has a last window that begins in the padding behind. Where Tapedeck has none, the
// axis ends with its last window: then nothing is left that such a window could begin in.
Term without_last_windows(N& n, Pool& p, const Shape& y) {
  const Shape& x = n.in(0).shape;
  Term cut = n[0];
  bool ceil = false;
  for (int i = 0; i < p.dims; ++i) ceil = ceil || overhang(p, x, y, i) > 0;
  for (int i = 0; ceil && i < p.dims; ++i) {
    const auto u = static_cast<std::size_t>(i);
    if (overhang(p, x, y, i) >= 0) continue;
    const std::int64_t reached = (y[i + 2] - 1) * p.stride[u] + p.extent(u), kept = std::min(x[i + 2], reached - p.pads[u]);
    if (kept < x[i + 2]) cut = part_of(cut, i + 2, 0, kept);
    p.pads[u + static_cast<std::size_t>(p.dims)] = reached - p.pads[u] - kept;
  }
  p.ceil = ceil;
  return cut;
}

Terms max_pool(N& n, const Shape& y, bool with_places) {
  Pool p = pool_of(n.attributes<PoolAttrs>(), n.in(0).shape.rank);
  const Term x = without_last_windows(n, p, y);
  if (with_places && x.name() != n[0].name()) n.refuse("ONNX counts other windows at the end");
  Attributes attributes = p.attributes();
  attributes.emplace_back("dilations", p.dilation);
  if (!with_places) return {n.add("MaxPool", {x}, n.in(0).dtype, attributes)};
  return n.add_several("MaxPool", {x}, {n.in(0).dtype, DType::i64}, attributes);
}

// A row of numbers along spatial dimension `i` of [n, c, ...].
Term along(N& n, int dims, int i, const Integers& values) {
  Integers line(static_cast<std::size_t>(dims) + 2, 1);
  line[static_cast<std::size_t>(i) + 2] = static_cast<std::int64_t>(values.size());
  return n.integers(shape_of(line), values);
}
// The places at which the windows of an axis begin.
Term starts(N& n, const Pool& p, int i, std::int64_t count) {
  const auto u = static_cast<std::size_t>(i);
  Integers values;
  for (std::int64_t k = 0; k < count; ++k) values.push_back(k * p.stride[u] - p.pads[u]);
  return along(n, p.dims, i, values);
}

// ONNX counts the places of maxima through the whole tensor, Tapedeck through the window.
Terms max_pool_index(N& n) {
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  const Pool p = pool_of(n.attributes<PoolAttrs>(), x.rank);
  std::int64_t plane = 1;
  for (const std::int64_t size : spatial(x)) plane *= size;
  Term rest = binary("Mod", max_pool(n, y, true)[1], static_cast<double>(plane));
  Term place;
  for (int i = 0; i < p.dims; ++i) {
    plane /= x[i + 2];
    const Term at = rest / static_cast<double>(plane);
    const auto u = static_cast<std::size_t>(i);
    const Term tap = (at - starts(n, p, i, y[i + 2])) / static_cast<double>(p.dilation[u]);
    place = i == 0 ? tap : place * static_cast<double>(p.window[u]) + tap;
    rest = binary("Mod", rest, static_cast<double>(plane));
  }
  return {place.as(n.out().dtype)};
}

// The places in [n c, plane] that places in windows name, and which of them are no padding.
struct Places {
  Term flat, inside;
};

Places places_in_plane(N& n, const Term& taps, const Pool& p, const Shape& x, const Shape& y) {
  std::int64_t window = 1;
  for (const std::int64_t size : p.window) window *= size;
  Term rest = taps.as(DType::i64);
  Places places;
  for (int i = 0; i < p.dims; ++i) {
    const auto u = static_cast<std::size_t>(i);
    window /= p.window[u];
    const Term at = starts(n, p, i, y[i + 2]) + rest / static_cast<double>(window) * static_cast<double>(p.dilation[u]);
    const Term inside = both(at >= 0, at < static_cast<double>(x[i + 2]));
    places.inside = i == 0 ? inside : both(places.inside, inside);
    places.flat = i == 0 ? at : places.flat * static_cast<double>(x[i + 2]) + at;
    rest = binary("Mod", rest, static_cast<double>(window));
  }
  places.flat = choose(places.inside, places.flat, 0);
  return places;
}

Integers as_planes(const Shape& shape) {
  Integers planes = {shape[0] * shape[1], 1};
  for (const std::int64_t size : spatial(shape)) planes[1] *= size;
  return planes;
}

Terms max_pool_grad_from_index(N& n) {
  const Shape &x = n.out().shape, &y = n.in(0).shape;
  const Places places = places_in_plane(n, n[0], pool_of(n.attributes<PoolIndexGradAttrs>(), x.rank), x, y);
  const Term dy = reshaped(choose(places.inside, n[1], 0), as_planes(y)),
             zeros = n.filled(shape_of(as_planes(x)), 0, n.out().dtype);
  return {reshaped(scattered(zeros, reshaped(places.flat, as_planes(y)), dy, 1, true), x)};
}

Terms max_pool_at_index(N& n) {
  const Shape &x = n.in(0).shape, &y = n.in(1).shape;
  const Places places = places_in_plane(n, n[1], pool_of(n.attributes<PoolAttrs>(), x.rank), x, y);
  const Term planes = reshaped(n[0], as_planes(x)), flat = reshaped(places.flat, as_planes(y));
  const Term found = n.add("GatherElements", {planes, flat}, n.in(0).dtype, {{"axis", 1}});
  return {choose(places.inside, reshaped(found, y), 0)};
}

Terms max_pool_grad(N& n) {
  const Term places = max_pool(n, n.in(1).shape, true)[1], zeros = n.filled({n.in(0).numel()}, 0, n.in(0).dtype);
  const Term sums = scattered(zeros, reshaped(places, Integers{-1}), reshaped(n[1], Integers{-1}), 0, true);
  return {reshaped(sums, n.in(0).shape)};
}

Terms avg_pool(N& n) {
  const auto& a = n.attributes<AvgPoolAttrs>();
  Pool p = pool_of(a, n.in(0).shape.rank);
  const Term x = without_last_windows(n, p, n.out().shape);
  Attributes attributes = p.attributes();
  attributes.emplace_back("count_include_pad", a.count_include_pad ? 1 : 0);
  return {n.add("AveragePool", {x}, n.in(0).dtype, attributes)};
}

// The number of elements that each window of an axis counts.
std::vector<double> counted_by(const Pool& p, std::size_t i, std::int64_t size, std::int64_t windows, bool with_pad) {
  std::vector<double> counts;
  for (std::int64_t k = 0; k < windows; ++k) {
    const std::int64_t begin = k * p.stride[i] - p.pads[i],
                       end = std::min(begin + p.window[i], size + (with_pad ? p.pads[i] : 0));
    counts.push_back(static_cast<double>(end - (with_pad ? begin : std::max<std::int64_t>(begin, 0))));
  }
  return counts;
}

// Each window gives its share to all of its elements: a transposed convolution with ones. Its result begins with the padding,
// and may end before or behind the end of x.
Terms avg_pool_grad(N& n) {
  const auto& a = n.attributes<AvgPoolGradAttrs>();
  const Shape &x = n.out().shape, &y = n.in(0).shape;
  const Pool p = pool_of(a, x.rank);
  Term dy = n[0];
  for (int i = 0; i < p.dims; ++i) {
    Integers line(static_cast<std::size_t>(y.rank), 1);
    line[static_cast<std::size_t>(i) + 2] = y[i + 2];
    dy = dy / n.reals(shape_of(line), counted_by(p, static_cast<std::size_t>(i), x[i + 2], y[i + 2], a.count_include_pad),
                      dy.dtype());
  }
  const Term images = reshaped(dy, with_spatial(y[0] * y[1], 1, spatial(y))),
             ones = n.filled(with_spatial(1, 1, p.window), 1, dy.dtype());
  Term all = n.add("ConvTranspose", {images, ones}, dy.dtype(), {{"kernel_shape", p.window}, {"strides", p.stride}});
  Integers before(static_cast<std::size_t>(x.rank)), after = before;
  for (int i = 0; i < p.dims; ++i) {
    const auto u = static_cast<std::size_t>(i);
    const std::int64_t size = (y[i + 2] - 1) * p.stride[u] + p.window[u], end = p.pads[u] + x[i + 2];
    if (p.pads[u] > 0 || end < size) all = part_of(all, i + 2, p.pads[u], std::min(end, size));
    after[u + 2] = std::max<std::int64_t>(0, end - size);
  }
  return {reshaped(padded(all, before, after), x)};
}

// ---- adaptive pools ----

std::int64_t first_of(std::int64_t i, std::int64_t in, std::int64_t out) { return i * in / out; }
std::int64_t end_of(std::int64_t i, std::int64_t in, std::int64_t out) { return ((i + 1) * in + out - 1) / out; }

// [out, in]: the share of each element in the mean of each window.
Term shares(N& n, std::int64_t in, std::int64_t out) {
  std::vector<double> values(static_cast<std::size_t>(in * out));
  for (std::int64_t i = 0; i < out; ++i)
    for (std::int64_t k = first_of(i, in, out); k < end_of(i, in, out); ++k)
      values[static_cast<std::size_t>(i * in + k)] = 1.0 / static_cast<double>(end_of(i, in, out) - first_of(i, in, out));
  return n.reals({out, in}, values, n.in(0).dtype);
}

Terms adaptive_avg_pool(N& n) {
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  return {product(shares(n, x[2], y[2]), product(n[0], transposed(shares(n, x[3], y[3]), {1, 0})))};
}

Terms adaptive_avg_pool_grad(N& n) {
  const Shape &x = n.out().shape, &y = n.in(0).shape;
  return {product(transposed(shares(n, x[2], y[2]), {1, 0}), product(n[0], shares(n, x[3], y[3])))};
}

// The largest element of each window of one axis after the other.
Terms adaptive_max_pool(N& n) {
  Term x = n[0];
  for (int axis = 2; axis < 4; ++axis) {
    const std::int64_t in = n.in(0).shape[axis], out = n.out().shape[axis];
    Terms parts;
    for (std::int64_t i = 0; i < out; ++i)
      parts.push_back(reduced("ReduceMax", part_of(x, axis, first_of(i, in, out), end_of(i, in, out)), {axis}, true));
    x = parts.size() == 1 ? parts[0] : joined(parts, axis);
  }
  return {x};
}

Terms adaptive_max_pool_index(N& n) {
  const Shape &x = n.in(0).shape, &y = n.out().shape;
  if (x[2] % y[2] != 0 || x[3] % y[3] != 0) n.refuse("windows of different sizes have no places in ONNX");
  const Integers window = {x[2] / y[2], x[3] / y[3]};
  const Terms found =
      n.add_several("MaxPool", {n[0]}, {n.in(0).dtype, DType::i64}, {{"kernel_shape", window}, {"strides", window}});
  return {binary("Mod", found[1], static_cast<double>(x[2] * x[3])).as(n.out().dtype)};
}

Terms adaptive_max_pool_grad_from_index(N& n) {
  const Shape &x = n.out().shape, &y = n.in(0).shape;
  const Term zeros = n.filled(shape_of(as_planes(x)), 0, n.out().dtype);
  const Term places = reshaped(n[0].as(DType::i64), as_planes(y)), dy = reshaped(n[1], as_planes(y));
  return {reshaped(scattered(zeros, places, dy, 1, true), x)};
}

Terms adaptive_max_pool_at_index(N& n) {
  const Shape &x = n.in(0).shape, &y = n.in(1).shape;
  const Term places = reshaped(n[1].as(DType::i64), as_planes(y));
  return {reshaped(n.add("GatherElements", {reshaped(n[0], as_planes(x)), places}, n.in(0).dtype, {{"axis", 1}}), y)};
}

}  // namespace

std::vector<ExportOp> pool_exports() {
  std::vector<ExportOp> all = {
      composed("max_pool2d_grad", max_pool_grad),
      composed("adaptive_avg_pool2d", adaptive_avg_pool),
      composed("adaptive_avg_pool2d_grad", adaptive_avg_pool_grad),
      composed("adaptive_max_pool2d", adaptive_max_pool),
      composed("adaptive_max_pool2d_index", adaptive_max_pool_index),
      composed("adaptive_max_pool2d_grad_from_index", adaptive_max_pool_grad_from_index),
      composed("adaptive_max_pool2d_at_index", adaptive_max_pool_at_index),
  };
  const auto plain = [](N& n) { return max_pool(n, n.out().shape, false); };
  for (const char* name : {"max_pool2d", "max_pool3d"}) all.push_back(composed(name, plain));
  for (const char* name : {"max_pool2d_index", "max_pool3d_index"}) all.push_back(composed(name, max_pool_index));
  for (const char* name : {"max_pool2d_grad_from_index", "max_pool3d_grad_from_index"})
    all.push_back(composed(name, max_pool_grad_from_index));
  for (const char* name : {"max_pool2d_at_index", "max_pool3d_at_index"}) all.push_back(composed(name, max_pool_at_index));
  for (const char* name : {"avg_pool2d", "avg_pool3d"}) all.push_back(composed(name, avg_pool));
  for (const char* name : {"avg_pool2d_grad", "avg_pool3d_grad"}) all.push_back(composed(name, avg_pool_grad));
  return all;
}

}  // namespace tapedeck::onnx
