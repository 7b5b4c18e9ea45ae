// Kernels that read or write elements at places which a tensor of indices names: gather, scatter, slices by index, gather_nd,
// scatter_nd. All views are dense.
//
//   gather  x = [a b c d], index = [3 0 0]   ->   [d a a]
//
// Several indices may name one place: then one thread does all writes to this place, in row-major order of the indices. An
// index out of range is reported and skipped.
#include <tapedeck/kernels/attrs/index.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/movement/movement.h>
#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/scalar.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::kernels::cpu {

void gather(const KernelCall& call);
void scatter(const KernelCall& call);
void scatter_add(const KernelCall& call);
void scatter_reduce(const KernelCall& call);
void index_select(const KernelCall& call);
void index_add(const KernelCall& call);
void embedding(const KernelCall& call);
void embedding_grad(const KernelCall& call);
void gather_nd(const KernelCall& call);
void scatter_nd(const KernelCall& call);
void bincount(const KernelCall& call);

namespace {

struct Replace {
  template <class T>
  T operator()(T, T src) const {
    return src;
  }
};

// The place that an index names among n places; a negative index counts from the end. Returns -1 for an index out of range, and
// reports it.
template <class I>
std::int64_t place_of(const KernelCall& call, I index, std::int64_t n) {
  const std::int64_t raw = index, at = raw < 0 ? raw + n : raw;
  if (at >= 0 && at < n) return at;
  call.fault->report("index out of range", raw);
  return -1;
}

// Calls f(Meet{}) for the functor that combines two elements by this name: "add", "mul", "max" or "min".
template <class F>
void for_reductions(const Name& reduction, F&& f) {
  if (reduction.view() == "add") return f(Add{});
  if (reduction.view() == "mul") return f(Mul{});
  if (reduction.view() == "max") return f(Maximum{});
  return f(Minimum{});
}

// Calls f(I{}) for i32 and i64, the types of indices.
template <class F>
void for_indices(const KernelCall& call, DType dtype, F&& f) {
  if (dtype == DType::i32) return f(std::int32_t{});
  if (dtype == DType::i64) return f(std::int64_t{});
  unsupported(call, dtype);
}

std::int64_t product(const View& v, int begin, int end) {
  std::int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= v.sizes[d];
  return n;
}

// The offset in x of the element whose coordinates in the dimensions [begin, end) of `index` have the row-major number
// `number`.
std::int64_t offset_in(const View& x, const View& index, int begin, int end, std::int64_t number) {
  std::int64_t offset = 0;
  for (int d = end - 1; d >= begin; --d) {
    offset += number % index.sizes[d] * x.strides[d];
    number /= index.sizes[d];
  }
  return offset;
}

// gather: computes the result row by row, where a row is the last dimension.
template <class T, class I>
void gather_rows(const KernelCall& call) {
  const View &x = call.inputs[0], &index = call.inputs[1];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis), last = index.rank - 1;
  const std::int64_t length = index.sizes[last], n = x.sizes[axis], step = axis == last ? 0 : 1;
  if (index.numel() == 0) return;
  const std::int64_t stride = x.strides[axis], inner = product(index, axis + 1, last), axis_size = index.sizes[axis];
  const double ns = 1.5 * static_cast<double>(length) + 12;
  parallel_for(index.numel() / length, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t outer = axis == last ? row : row / inner / axis_size;
      const T* from = x.as<T>() + offset_in(x, index, 0, axis, outer);
      if (axis != last) from += offset_in(x, index, axis + 1, last, row % inner);
      const I* places = index.as<I>() + row * length;
      T* to = call.outputs[0].as<T>() + row * length;
      for (std::int64_t j = 0; j < length; ++j) {
        const std::int64_t at = place_of(call, places[j], n);
        to[j] = at < 0 ? T(0) : from[at * stride + j * step];
      }
    }
  });
}

// Two lines of `index` along the axis never write to the same element of the result. So each job takes one line, or a strip of
// neighbouring lines.
template <class Meet, class T, class I>
void scatter_lines(const KernelCall& call, int axis) {
  constexpr std::int64_t kColumns = 256;
  const View &x = call.outputs[0], &index = call.inputs[1];
  const int last = index.rank - 1;
  if (index.numel() == 0) return;
  const bool along = axis == last;
  const std::int64_t steps = index.sizes[axis], n = x.sizes[axis], stride = x.strides[axis];
  const std::int64_t rows = along ? 1 : product(index, axis + 1, last), width = along ? 1 : index.sizes[last];
  const std::int64_t strips = (width + kColumns - 1) / kColumns;
  const double ns = 2.0 * static_cast<double>(steps * std::min(width, kColumns)) + 15;
  parallel_for(product(index, 0, axis) * rows * strips, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t column = job % strips * kColumns, row = job / strips % rows, outer = job / strips / rows;
      const std::int64_t columns = std::min(kColumns, width - column);
      T* to = x.as<T>() + offset_in(x, index, 0, axis, outer) + column;
      if (!along) to += offset_in(x, index, axis + 1, last, row);
      for (std::int64_t k = 0; k < steps; ++k) {
        const std::int64_t first = ((outer * steps + k) * rows + row) * width + column;
        const I* places = index.as<I>() + first;
        const T* src = call.inputs[2].as<T>() + first;
        for (std::int64_t j = 0; j < columns; ++j) {
          const std::int64_t at = place_of(call, places[j], n);
          if (at >= 0) to[at * stride + j] = Meet{}(to[at * stride + j], src[j]);
        }
      }
    }
  });
}

int axis_of(const KernelCall& call) { return static_cast<int>(call.attributes<AxisAttrs>().axis); }

void copy_unless_same(const View& from, const View& to) {
  if (from.data != to.data) copy_view(from, to);
}

// ---- whole slices by index: x [outer, n, inner], index [m] ----

struct Slices {
  std::int64_t outer = 1, n = 1, inner = 1, m = 0;
  Slices(const View& x, int axis, const View& index)
      : outer(product(x, 0, axis)), n(x.sizes[axis]), inner(product(x, axis + 1, x.rank)), m(index.numel()) {}
};

template <class T, class I>
void select_slices(const KernelCall& call, int axis) {
  const View& index = call.inputs[1];
  const Slices s(call.inputs[0], axis, index);
  const T* x = call.inputs[0].as<T>();
  T* out = call.outputs[0].as<T>();
  const double ns = 0.1 * static_cast<double>(s.inner * static_cast<std::int64_t>(sizeof(T))) + 2;
  parallel_for(s.inner == 0 ? 0 : s.outer * s.m, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t k = begin % s.m;
    const T* base = x + begin / s.m * s.n * s.inner;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = place_of(call, index.as<I>()[k], s.n);
      const auto bytes = static_cast<std::size_t>(s.inner) * sizeof(T);
      if (s.inner == 1)
        out[row] = at < 0 ? T(0) : base[at];
      else if (at < 0)
        std::memset(out + row * s.inner, 0, bytes);
      else
        std::memcpy(out + row * s.inner, base + at * s.inner, bytes);
      if (++k < s.m) continue;
      k = 0;
      base += s.n * s.inner;
    }
  });
}

void select_any(const KernelCall& call, int axis) {
  for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) { select_slices<T, decltype(i)>(call, axis); });
  });
}

// The numbers 0 ... m-1 of the indices, sorted by the place that each index names. The numbers for place p are
// order[ends[p-1]] ... order[ends[p] - 1], in ascending order.
struct Groups {
  std::int64_t* ends;
  std::int64_t* order;

  template <class I>
  Groups(const KernelCall& call, const I* index, std::int64_t m, std::int64_t n)
      : ends(static_cast<std::int64_t*>(call.workspace)), order(ends + n + 1) {
    std::fill(ends, ends + n + 1, 0);
    for (std::int64_t k = 0; k < m; ++k) {
      const std::int64_t at = place_of(call, index[k], n);
      if (at >= 0) ++ends[at + 1];
    }
    for (std::int64_t p = 0; p < n; ++p) ends[p + 1] += ends[p];
    for (std::int64_t k = 0; k < m; ++k) {
      const std::int64_t raw = index[k], at = raw < 0 ? raw + n : raw;
      if (at >= 0 && at < n) order[ends[at]++] = k;
    }
  }
  std::int64_t begin(std::int64_t place) const { return place == 0 ? 0 : ends[place - 1]; }
  std::int64_t end(std::int64_t place) const { return ends[place]; }
};

// For slices of few elements: each thread takes whole blocks out[o], and goes through all indices.
template <class T, class I>
void add_short_slices(const KernelCall& call, const Slices& s, const I* index, const T* src, const T* base, T* out) {
  const std::int64_t block = s.n * s.inner;
  const double ns = 2.0 * static_cast<double>((s.n + s.m) * s.inner) + 5;
  parallel_for(s.outer, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      T* to = out + o * block;
      if (!base)
        std::fill(to, to + block, T(0));
      else if (base != out)
        std::copy_n(base + o * block, block, to);
      const T* from = src + o * s.m * s.inner;
      for (std::int64_t k = 0; k < s.m; ++k) {
        const std::int64_t at = place_of(call, index[k], s.n);
        if (at < 0) continue;
        for (std::int64_t j = 0; j < s.inner; ++j) to[at * s.inner + j] = Add{}(to[at * s.inner + j], from[k * s.inner + j]);
      }
    }
  });
}

// out[o][p] = base[o][p] + the sum of src[o][k] over all k whose index is p, in ascending order of k. A null `base` means
// zeros.
template <class T, class I>
void add_slices(const KernelCall& call, const Slices& s, const I* index, const T* src, const T* base, T* out) {
  constexpr std::int64_t kColumns = 2048, kShort = 16;  // the workspace rule in engine/ops/index.cpp uses the same kShort
  if (s.inner < kShort) return add_short_slices(call, s, index, src, base, out);
  const Groups groups(call, index, s.m, s.n);
  const std::int64_t strips = (s.inner + kColumns - 1) / kColumns;
  const double share = static_cast<double>(s.m) / static_cast<double>(std::max<std::int64_t>(s.n, 1));
  const double ns = 0.4 * static_cast<double>(std::min(s.inner, kColumns)) * (1 + share) + 5;
  parallel_for(s.outer * s.n * strips, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t column = job % strips * kColumns, row = job / strips, place = row % s.n, outer = row / s.n;
      const std::int64_t width = std::min(kColumns, s.inner - column);
      T* to = out + row * s.inner + column;
      if (!base)
        std::fill(to, to + width, T(0));
      else if (base != out)
        std::copy_n(base + row * s.inner + column, width, to);
      for (std::int64_t g = groups.begin(place); g < groups.end(place); ++g) {
        const T* from = src + (outer * s.m + groups.order[g]) * s.inner + column;
        TAPEDECK_INDEPENDENT
        for (std::int64_t j = 0; j < width; ++j) to[j] = Add{}(to[j], from[j]);
      }
    }
  });
}

// ---- tuples of indices: x [batch, indexed dimensions..., slice], indices [batch, tuples, k] ----

struct Tuples {
  std::int64_t batches, per_batch, k, slice, batch_stride;
  const std::int64_t* sizes;  // of the indexed dimensions of x
  const std::int64_t* strides;

  Tuples(const View& x, const View& indices, std::int64_t batch_dims) {
    const int batch = static_cast<int>(batch_dims);
    k = indices.sizes[indices.rank - 1];
    batches = product(indices, 0, batch);
    per_batch = product(indices, batch, indices.rank - 1);
    slice = product(x, batch + static_cast<int>(k), x.rank);
    batch_stride = product(x, batch, x.rank);
    sizes = x.sizes + batch;
    strides = x.strides + batch;
  }

  // The offset in x of the slice that tuple number `tuple` names, or -1 if an index is out of range.
  template <class I>
  std::int64_t offset(const KernelCall& call, const I* indices, std::int64_t tuple) const {
    std::int64_t at = tuple / per_batch * batch_stride;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t place = place_of(call, indices[tuple * k + i], sizes[i]);
      if (place < 0) return -1;
      at += place * strides[i];
    }
    return at;
  }
};

template <class T, class I>
void gather_tuples(const KernelCall& call) {
  const Tuples t(call.inputs[0], call.inputs[1], call.attributes<GatherNdAttrs>().batch_dims);
  const double ns = 0.3 * static_cast<double>(t.slice) + 2.0 * static_cast<double>(t.k) + 4;
  parallel_for(t.slice == 0 ? 0 : t.batches * t.per_batch, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tuple = begin; tuple < end; ++tuple) {
      const std::int64_t at = t.offset(call, call.inputs[1].as<I>(), tuple);
      T* to = call.outputs[0].as<T>() + tuple * t.slice;
      if (at < 0)
        std::fill(to, to + t.slice, T(0));
      else
        std::copy_n(call.inputs[0].as<T>() + at, t.slice, to);
    }
  });
}

// Each job takes a strip of the columns of one batch's slices, and goes through all tuples of the batch in order.
template <class Meet, class T, class I>
void scatter_tuples(const KernelCall& call) {
  constexpr std::int64_t kColumns = 256;
  const Tuples t(call.outputs[0], call.inputs[1], call.attributes<ScatterNdAttrs>().batch_dims);
  const std::int64_t strips = (t.slice + kColumns - 1) / kColumns;
  const double tuple_ns = 0.4 * static_cast<double>(std::min(t.slice, kColumns)) + 2.0 * static_cast<double>(t.k) + 3;
  const double ns = static_cast<double>(t.per_batch) * tuple_ns;
  parallel_for(t.per_batch == 0 ? 0 : t.batches * strips, grain_for(ns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const std::int64_t column = job % strips * kColumns, width = std::min(kColumns, t.slice - column);
      for (std::int64_t tuple = job / strips * t.per_batch; tuple < (job / strips + 1) * t.per_batch; ++tuple) {
        const std::int64_t at = t.offset(call, call.inputs[1].as<I>(), tuple);
        if (at < 0) continue;
        T* to = call.outputs[0].as<T>() + at + column;
        const T* src = call.inputs[2].as<T>() + tuple * t.slice + column;
        TAPEDECK_INDEPENDENT
        for (std::int64_t j = 0; j < width; ++j) to[j] = Meet{}(to[j], src[j]);
      }
    }
  });
}

}  // namespace

void gather(const KernelCall& call) {
  for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) { gather_rows<T, decltype(i)>(call); });
  });
}

void scatter(const KernelCall& call) {
  copy_unless_same(call.inputs[0], call.outputs[0]);
  for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) { scatter_lines<Replace, T, decltype(i)>(call, axis_of(call)); });
  });
}

void scatter_add(const KernelCall& call) {
  copy_unless_same(call.inputs[0], call.outputs[0]);
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) { scatter_lines<Add, T, decltype(i)>(call, axis_of(call)); });
  });
}

void scatter_reduce(const KernelCall& call) {
  copy_unless_same(call.inputs[0], call.outputs[0]);
  for_reductions(call.attributes<ScatterReduceAttrs>().reduction, [&](auto meet) {
    for_numbers(call, call.outputs[0].dtype, [&](auto t) {
      using Meet = decltype(meet);
      using T = decltype(t);
      const int axis = static_cast<int>(call.attributes<ScatterReduceAttrs>().axis);
      for_indices(call, call.inputs[1].dtype, [&](auto i) { scatter_lines<Meet, T, decltype(i)>(call, axis); });
    });
  });
}

void index_select(const KernelCall& call) { select_any(call, static_cast<int>(call.attributes<AxisAttrs>().axis)); }
void embedding(const KernelCall& call) { select_any(call, 0); }

void index_add(const KernelCall& call) {
  const Slices s(call.inputs[0], static_cast<int>(call.attributes<AxisAttrs>().axis), call.inputs[1]);
  for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) {
      add_slices(call, s, call.inputs[1].as<decltype(i)>(), call.inputs[2].as<T>(), call.inputs[0].as<T>(),
                 call.outputs[0].as<T>());
    });
  });
}

void embedding_grad(const KernelCall& call) {
  const Slices s(call.outputs[0], 0, call.inputs[0]);
  for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[0].dtype, [&](auto i) {
      add_slices<T>(call, s, call.inputs[0].as<decltype(i)>(), call.inputs[1].as<T>(), nullptr, call.outputs[0].as<T>());
    });
  });
}

void gather_nd(const KernelCall& call) {
  for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    for_indices(call, call.inputs[1].dtype, [&](auto i) { gather_tuples<T, decltype(i)>(call); });
  });
}

void scatter_nd(const KernelCall& call) {
  copy_unless_same(call.inputs[0], call.outputs[0]);
  const Name& reduction = call.attributes<ScatterNdAttrs>().reduction;
  for_indices(call, call.inputs[1].dtype, [&](auto i) {
    using I = decltype(i);
    if (reduction.view() == "none")
      return for_widths(call.outputs[0].dtype, [&](auto t) { scatter_tuples<Replace, decltype(t), I>(call); });
    for_reductions(reduction, [&](auto meet) {
      using Meet = decltype(meet);
      for_numbers(call, call.outputs[0].dtype, [&](auto t) { scatter_tuples<Meet, decltype(t), I>(call); });
    });
  });
}

void bincount(const KernelCall& call) {
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  const std::int64_t bins = call.outputs[0].numel(), m = call.inputs[0].numel();
  std::fill(out, out + bins, 0);
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    const auto* x = call.inputs[0].as<decltype(t)>();
    for (std::int64_t k = 0; k < m; ++k) {
      const auto at = static_cast<std::int64_t>(x[k]);
      if (at < 0 || at >= bins)
        call.fault->report("number outside the bins", at);
      else
        ++out[at];
    }
  });
}

}  // namespace tapedeck::kernels::cpu
