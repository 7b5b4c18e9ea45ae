// Ops that read at places which a tensor of indices names: gather, index_select, embedding, gather_nd; and one_hot and
// searchsorted, which make such places. All views are dense.
//
//   gather  x = [a b c d], index = [3 0 0]   ->   [d a a]
//
// An index out of range is reported, and its elements become zero.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/index.h>
#include <tapedeck/kernels/cuda/movement/movement.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

using movement::Indices;

// ---- whole slices: x [outer, n, inner], index [m], out [outer, m, inner] ----

struct Slices {
  const void* x;
  void* out;
  Indices index;
  KernelFault* fault;
  std::int64_t outer, n, inner, m;
};

template <class T>
TAPEDECK_KERNEL void slices_kernel(const Slices s) {
  const std::int64_t total = s.outer * s.m * s.inner;
  for (std::int64_t i = thread_index(); i < total; i += thread_count()) {
    const std::int64_t row = i / s.inner, column = i - row * s.inner, outer = row / s.m;
    const std::int64_t raw = s.index.at(row - outer * s.m), at = movement::place_of(raw, s.n);
    if (at < 0 && column == 0) report_fault(s.fault, Fault::index_out_of_range, raw);
    static_cast<T*>(s.out)[i] = at < 0 ? T{} : static_cast<const T*>(s.x)[(outer * s.n + at) * s.inner + column];
  }
}

void select_slices(const KernelCall& call, int axis) {
  const View &x = call.inputs[0], &index = call.inputs[1], &out = call.outputs[0];
  Slices s{x.data, out.data, movement::indices_of(index), call.fault, 1, x.sizes[axis], 1, index.numel()};
  s.outer = movement::product(x, 0, axis);
  s.inner = movement::product(x, axis + 1, x.rank) * movement::width_of(x);
  const std::size_t width =
      movement::common_width(movement::address_of(s.x) | movement::address_of(s.out) | static_cast<std::uint64_t>(s.inner));
  s.inner /= static_cast<std::int64_t>(width);
  const Launch size = for_items(s.outer * s.m * s.inner);
  for_width(width, [&](auto t) { launch(call, &slices_kernel<decltype(t)>, size, s); });
}

// ---- single elements along an axis ----

struct Gather {
  const void* x;
  void* out;
  Indices index;
  KernelFault* fault;
  std::int64_t total, n;  // n places along the axis
  int rank, axis;
  std::int64_t sizes[kMaxRank], strides[kMaxRank];  // the sizes of the index, the strides of x
};

template <class T>
TAPEDECK_KERNEL void gather_kernel(const Gather g) {
  for (std::int64_t i = thread_index(); i < g.total; i += thread_count()) {
    const std::int64_t raw = g.index.at(i), at = movement::place_of(raw, g.n);
    std::int64_t rest = i, offset = 0;
    for (int d = g.rank - 1; d >= 0; --d) {
      const std::int64_t next = rest / g.sizes[d];
      offset += (d == g.axis ? at : rest - next * g.sizes[d]) * g.strides[d];
      rest = next;
    }
    if (at < 0) report_fault(g.fault, Fault::index_out_of_range, raw);
    static_cast<T*>(g.out)[i] = at < 0 ? T{} : static_cast<const T*>(g.x)[offset];
  }
}

// ---- tuples of indices: x [batch, indexed dimensions..., slice], indices [batch, tuples, k] ----

struct Tuples {
  const void* x;
  void* out;
  Indices index;
  KernelFault* fault;
  std::int64_t tuples, per_batch, k, slice, batch_stride;
  std::int64_t sizes[kMaxRank], strides[kMaxRank];  // of the indexed dimensions of x
};

template <class T>
TAPEDECK_KERNEL void tuples_kernel(const Tuples t) {
  for (std::int64_t i = thread_index(); i < t.tuples * t.slice; i += thread_count()) {
    const std::int64_t tuple = i / t.slice, column = i - tuple * t.slice;
    std::int64_t from = tuple / t.per_batch * t.batch_stride;
    bool inside = true;
    for (std::int64_t d = 0; inside && d < t.k; ++d) {
      const std::int64_t raw = t.index.at(tuple * t.k + d), at = movement::place_of(raw, t.sizes[d]);
      inside = at >= 0;
      from += at * t.strides[d];
      if (!inside && column == 0) report_fault(t.fault, Fault::index_out_of_range, raw);
    }
    static_cast<T*>(t.out)[i] = inside ? static_cast<const T*>(t.x)[from + column] : T{};
  }
}

// ---- one_hot ----

struct OneHot {
  Indices labels;
  void* out;
  KernelFault* fault;
  std::int64_t total, classes;
  std::uint64_t one;  // the bits of 1
};

template <class T>
TAPEDECK_KERNEL void one_hot_kernel(const OneHot o) {
  for (std::int64_t i = thread_index(); i < o.total; i += thread_count()) {
    const std::int64_t row = i / o.classes, column = i - row * o.classes, label = o.labels.at(row);
    if (column == 0 && (label < 0 || label >= o.classes)) report_fault(o.fault, Fault::label_out_of_range, label);
    static_cast<T*>(o.out)[i] = column == label ? static_cast<T>(o.one) : T(0);
  }
}

std::uint64_t one_of(DType dtype) {
  const float single = 1;
  const double twice = 1;
  std::uint64_t bits = 1;
  if (dtype == DType::f32) __builtin_memcpy(&bits, &single, sizeof single);
  if (dtype == DType::f64) __builtin_memcpy(&bits, &twice, sizeof twice);
  return bits;
}

}  // namespace

void embedding(const KernelCall& call) { select_slices(call, 0); }
void index_select(const KernelCall& call) { select_slices(call, static_cast<int>(call.attributes<AxisAttrs>().axis)); }

void gather(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1];
  Gather g{x.data, call.outputs[0].data, movement::indices_of(index), call.fault, index.numel(), 0, x.rank, 0, {}, {}};
  g.axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  g.n = x.sizes[g.axis];
  for (int d = 0; d < x.rank; ++d) {
    g.sizes[d] = index.sizes[d];
    g.strides[d] = x.strides[d];
  }
  for_width(static_cast<std::size_t>(movement::width_of(x)),
            [&](auto t) { launch(call, &gather_kernel<decltype(t)>, for_items(g.total), g); });
}

void gather_nd(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1], &out = call.outputs[0];
  const int batch = static_cast<int>(call.attributes<GatherNdAttrs>().batch_dims), last = index.rank - 1;
  const int k = static_cast<int>(index.sizes[last]);
  Tuples t{x.data, out.data, movement::indices_of(index), call.fault, 0, 0, k, 0, 0, {}, {}};
  t.per_batch = movement::product(index, batch, last);
  t.tuples = movement::product(index, 0, last);
  std::uint64_t all = movement::address_of(x.data) | movement::address_of(out.data);
  const auto bytes = [&](int begin) {
    const std::int64_t n = movement::product(x, begin, x.rank) * movement::width_of(x);
    all |= static_cast<std::uint64_t>(n);
    return n;
  };
  t.slice = bytes(batch + k);
  t.batch_stride = bytes(batch);
  for (int d = 0; d < k; ++d) {
    t.sizes[d] = x.sizes[batch + d];
    t.strides[d] = bytes(batch + d + 1);
  }
  const std::size_t width = movement::common_width(all);
  const auto factor = static_cast<std::int64_t>(width);
  t.slice /= factor;
  t.batch_stride /= factor;
  for (int d = 0; d < k; ++d) t.strides[d] /= factor;
  for_width(width, [&](auto e) { launch(call, &tuples_kernel<decltype(e)>, for_items(t.tuples * t.slice), t); });
}

// A half-precision result is made in f32 first (kernels/half.h).
void one_hot(const KernelCall& call) {
  const View& out = call.outputs[0];
  const std::int64_t classes = call.attributes<OneHotAttrs>().classes;
  const OneHot o{movement::indices_of(call.inputs[0]), out.data, call.fault, out.numel(), classes, one_of(out.dtype)};
  switch (movement::width_of(out)) {
    case 1:
      return launch(call, &one_hot_kernel<std::uint8_t>, for_items(o.total), o);
    case 4:
      return launch(call, &one_hot_kernel<std::uint32_t>, for_items(o.total), o);
    case 8:
      return launch(call, &one_hot_kernel<std::uint64_t>, for_items(o.total), o);
    default:
      unsupported(call, out.dtype);
  }
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
