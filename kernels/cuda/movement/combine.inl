// Ops that write at places which indices name: embedding_grad, index_add, scatter and its like, bincount.
//
//   scatter_add  x = [0 0 0 0], index = [2 0 2], src = [5 6 7]   ->   [6 0 12 0]   (5 first, then 7)
//
// Several writes may have one place, and then their order matters: for the bits of a sum, and for the one that stays. So the
// writes are sorted by their places first (pairs.h), which keeps their order:
//
//   places 2 0 2   ->   pairs (0, write 1) (2, write 0) (2, write 2)
//
// The thread of the first pair of a place does all writes there, one after the other, as the CPU kernel does; the others have
// nothing to do. An index out of range is reported, and its write gets the place behind the last.
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/attrs/index.h>
#include <tapedeck/kernels/cuda/movement/movement.h>
#include <tapedeck/kernels/cuda/movement/pairs.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/scalar.h>

#include <string_view>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

using movement::Indices;
using movement::Pairs;
using movement::PairSpace;

// ---- how a written element meets the one before ----

enum class Meet { replace, add, mul, max, min };

Meet meet_of(const Name& reduction) {
  const std::string_view name = reduction.view();
  if (name == "none") return Meet::replace;
  if (name == "add") return Meet::add;
  if (name == "mul") return Meet::mul;
  return name == "max" ? Meet::max : Meet::min;
}

template <class T>
TAPEDECK_DEVICE T met(Meet how, T old, T next) {
  switch (how) {
    case Meet::add:
      return Add{}(old, next);
    case Meet::mul:
      return Mul{}(old, next);
    case Meet::max:
      return Maximum{}(old, next);
    case Meet::min:
      return Minimum{}(old, next);
    default:
      return next;
  }
}

// Half-precision numbers meet in f32; the result is rounded once, when all have met.
template <class T>
TAPEDECK_DEVICE T loaded(T x) {
  return x;
}
TAPEDECK_DEVICE float loaded(F16 x) { return to_f32(x); }
TAPEDECK_DEVICE float loaded(Bf16 x) { return to_f32(x); }
template <class T>
TAPEDECK_DEVICE void store(T& to, T x) {
  to = x;
}
TAPEDECK_DEVICE void store(F16& to, float x) { to = to_f16(x); }
TAPEDECK_DEVICE void store(Bf16& to, float x) { to = to_bf16(x); }

// ---- the places of the writes ----

// The writes go to slices of `out` [outer, n, ...]. Write k goes to slice key of each of the outer blocks. There are three ways
// to name a slice; all give n for an index out of range.
struct Places {
  Indices index;
  KernelFault* fault;
  std::int64_t m = 0, n = 0;                            // writes and slices
  int rank = 0;                                         // by_element, by_tuple: of the index
  int axis = 0;                                         // by_element
  std::int64_t k = 0, per_batch = 1, batch_stride = 0;  // by_tuple: indices of a tuple, tuples and slices of a batch
  // by_element: the sizes of the index, and the strides of x; by_tuple: of the indexed dimensions, in slices
  std::int64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {}, axis_size = 0;

  TAPEDECK_DEVICE std::int64_t failed(std::int64_t raw) const {
    report_fault(fault, Fault::index_out_of_range, raw);
    return n;
  }
};

struct BySlice {
  TAPEDECK_DEVICE std::int64_t operator()(const Places& p, std::int64_t write) const {
    const std::int64_t raw = p.index.at(write), at = movement::place_of(raw, p.n);
    return at < 0 ? p.failed(raw) : at;
  }
};

struct ByElement {
  TAPEDECK_DEVICE std::int64_t operator()(const Places& p, std::int64_t write) const {
    const std::int64_t raw = p.index.at(write), at = movement::place_of(raw, p.axis_size);
    if (at < 0) return p.failed(raw);
    std::int64_t rest = write, offset = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      const std::int64_t next = rest / p.sizes[d];
      offset += (d == p.axis ? at : rest - next * p.sizes[d]) * p.strides[d];
      rest = next;
    }
    return offset;
  }
};

struct ByTuple {
  TAPEDECK_DEVICE std::int64_t operator()(const Places& p, std::int64_t write) const {
    std::int64_t slice = write / p.per_batch * p.batch_stride;
    for (std::int64_t d = 0; d < p.k; ++d) {
      const std::int64_t raw = p.index.at(write * p.k + d), at = movement::place_of(raw, p.sizes[d]);
      if (at < 0) return p.failed(raw);
      slice += at * p.strides[d];
    }
    return slice;
  }
};

template <class Key>
struct Naming {
  Places places;
  Pairs<Key> pairs;
};

template <class Find, class Key>
TAPEDECK_KERNEL void name_kernel(const Naming<Key> naming) {
  for (std::int64_t i = thread_index(); i < naming.places.m; i += thread_count()) {
    naming.pairs.keys[i] = static_cast<Key>(Find{}(naming.places, i));
    naming.pairs.numbers[i] = static_cast<std::uint32_t>(i);
  }
}

// ---- the writes ----

// src is [outer, m, inner], out is [outer, n, inner].
template <class Key>
struct Writes {
  Pairs<Key> pairs;
  const void* src;
  void* out;
  std::int64_t outer, m, n, inner;
  Meet meet;

  // The last of the pairs with the key of pair `first`.
  TAPEDECK_DEVICE std::int64_t last_of(std::int64_t first) const {
    std::int64_t low = first, high = m - 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (pairs.keys[middle] == pairs.keys[first])
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

// All writes of the pairs first ... to one element. Eight elements are loaded before they meet, because each load takes much
// longer than the sum.
template <class T, class Key>
TAPEDECK_DEVICE void write_group(const Writes<Key>& w, std::int64_t first, const T* src, T& to) {
  constexpr int kAhead = 8;
  const Key key = w.pairs.keys[first];
  auto value = loaded(to);
  std::int64_t q = first;
  for (; q + kAhead <= w.m && w.pairs.keys[q + kAhead - 1] == key; q += kAhead) {
    decltype(value) ahead[kAhead];
    for (int e = 0; e < kAhead; ++e) ahead[e] = loaded(src[w.pairs.numbers[q + e] * w.inner]);
    for (int e = 0; e < kAhead; ++e) value = met(w.meet, value, ahead[e]);
  }
  for (; q < w.m && w.pairs.keys[q] == key; ++q) value = met(w.meet, value, loaded(src[w.pairs.numbers[q] * w.inner]));
  store(to, value);
}

template <class T, class Key>
TAPEDECK_KERNEL void write_kernel(const Writes<Key> w) {
  const std::int64_t total = w.outer * w.m * w.inner;
  for (std::int64_t i = thread_index(); i < total; i += thread_count()) {
    const std::int64_t row = i / w.inner, column = i - row * w.inner, outer = row / w.m, first = row - outer * w.m;
    const Key key = w.pairs.keys[first];
    if (key >= static_cast<Key>(w.n) || (first > 0 && w.pairs.keys[first - 1] == key)) continue;
    const T* const src = static_cast<const T*>(w.src) + outer * w.m * w.inner + column;
    T& to = static_cast<T*>(w.out)[(outer * w.n + static_cast<std::int64_t>(key)) * w.inner + column];
    if (w.meet == Meet::replace)
      to = src[w.pairs.numbers[w.last_of(first)] * w.inner];
    else
      write_group(w, first, src, to);
  }
}

// Runs the writes in the type of the elements, or, if they only replace, in any type as wide.
template <class Key>
void run_writes(const KernelCall& call, DType dtype, const Writes<Key>& w) {
  const Launch size = for_items(w.outer * w.m * w.inner);
  if (dtype == DType::boolean && w.meet != Meet::replace) return unsupported(call, dtype);
  for_stored(call, dtype, [&](auto t) { launch(call, &write_kernel<decltype(t), Key>, size, w); });
}

constexpr std::int64_t kMostNarrow = 0xffffffffll;  // keys of 32 bits reach so far, and so do the numbers of writes

std::int64_t space_for(std::int64_t m, std::int64_t n) {
  return n <= kMostNarrow ? PairSpace<std::uint32_t>::bytes(1, m) : PairSpace<std::uint64_t>::bytes(1, m);
}

struct Target {
  DType dtype;
  const void* src;
  void* out;
  std::int64_t outer, inner;
  Meet meet;
};

template <class Find, class Key>
void write_all_by(const KernelCall& call, const Places& places, const Target& t) {
  PairSpace<Key> space(call.workspace, 1, places.m);
  launch(call, &name_kernel<Find, Key>, for_items(places.m), Naming<Key>{places, space.pairs});
  movement::sort_pairs(call, space, 1, places.m, movement::bits_for(static_cast<std::uint64_t>(places.n)));
  run_writes(call, t.dtype, Writes<Key>{space.pairs, t.src, t.out, t.outer, places.m, places.n, t.inner, t.meet});
}

// The result already holds the elements that the writes meet.
template <class Find>
void write_all(const KernelCall& call, const Places& places, const Target& t) {
  if (places.m > kMostNarrow) return call.fault->report("too many indices for this kernel", places.m);
  if (places.m == 0) return;
  if (places.n <= kMostNarrow)
    write_all_by<Find, std::uint32_t>(call, places, t);
  else
    write_all_by<Find, std::uint64_t>(call, places, t);
}

void copy_base(const KernelCall& call) {
  if (call.inputs[0].data != call.outputs[0].data) movement::copy_view(call, call.inputs[0], call.outputs[0]);
}

void scatter_by(const KernelCall& call, std::int64_t along, Meet meet) {
  copy_base(call);
  const View &x = call.outputs[0], &index = call.inputs[1];
  Places p{movement::indices_of(index), call.fault, index.numel(), x.numel(), x.rank, static_cast<int>(along)};
  p.axis_size = x.sizes[along];
  for (int d = 0; d < x.rank; ++d) {
    p.sizes[d] = index.sizes[d];
    p.strides[d] = x.strides[d];
  }
  write_all<ByElement>(call, p, {x.dtype, call.inputs[2].data, x.data, 1, 1, meet});
}

std::int64_t scatter_space(const KernelCall& call) { return space_for(call.inputs[1].numel(), call.inputs[0].numel()); }

// ---- bincount ----

struct Bins {
  const void* x;
  DType dtype;
  unsigned long long* out;
  KernelFault* fault;
  std::int64_t m, bins;

  TAPEDECK_DEVICE std::int64_t at(std::int64_t i) const {
    if (dtype == DType::i64) return static_cast<const std::int64_t*>(x)[i];
    if (dtype == DType::i32) return static_cast<const std::int32_t*>(x)[i];
    return static_cast<const std::uint8_t*>(x)[i];
  }
};

TAPEDECK_KERNEL void bins_kernel(const Bins b) {
  for (std::int64_t i = thread_index(); i < b.m; i += thread_count()) {
    const std::int64_t at = b.at(i);
    if (at < 0 || at >= b.bins)
      report_fault(b.fault, Fault::number_outside_bins, at);
    else
      atomic_add(b.out + at, 1ull);
  }
}

}  // namespace

void embedding_grad(const KernelCall& call) {
  const View &ids = call.inputs[0], &dy = call.inputs[1], &out = call.outputs[0];
  movement::clear_bytes(call, out.data, out.numel() * movement::width_of(out));
  const Places p{movement::indices_of(ids), call.fault, ids.numel(), out.sizes[0]};
  write_all<BySlice>(call, p, {out.dtype, dy.data, out.data, 1, out.sizes[1], Meet::add});
}

std::int64_t embedding_grad_workspace(const KernelCall& call) {
  return space_for(call.inputs[0].numel(), call.outputs[0].sizes[0]);
}

void index_add(const KernelCall& call) {
  copy_base(call);
  const View &index = call.inputs[1], &src = call.inputs[2], &out = call.outputs[0];
  const int axis = static_cast<int>(call.attributes<AxisAttrs>().axis);
  const Places p{movement::indices_of(index), call.fault, index.numel(), out.sizes[axis]};
  const std::int64_t outer = movement::product(out, 0, axis), inner = movement::product(out, axis + 1, out.rank);
  write_all<BySlice>(call, p, {out.dtype, src.data, out.data, outer, inner, Meet::add});
}

std::int64_t index_add_workspace(const KernelCall& call) {
  return space_for(call.inputs[1].numel(), call.inputs[0].sizes[call.attributes<AxisAttrs>().axis]);
}

void scatter(const KernelCall& call) { scatter_by(call, call.attributes<AxisAttrs>().axis, Meet::replace); }
std::int64_t scatter_workspace(const KernelCall& call) { return scatter_space(call); }

void scatter_add(const KernelCall& call) { scatter_by(call, call.attributes<AxisAttrs>().axis, Meet::add); }
std::int64_t scatter_add_workspace(const KernelCall& call) { return scatter_space(call); }

void scatter_reduce(const KernelCall& call) {
  const auto& attrs = call.attributes<ScatterReduceAttrs>();
  scatter_by(call, attrs.axis, meet_of(attrs.reduction));
}
std::int64_t scatter_reduce_workspace(const KernelCall& call) { return scatter_space(call); }

void scatter_nd(const KernelCall& call) {
  copy_base(call);
  const auto& attrs = call.attributes<ScatterNdAttrs>();
  const View &index = call.inputs[1], &out = call.outputs[0];
  const int batch = static_cast<int>(attrs.batch_dims), last = index.rank - 1, k = static_cast<int>(index.sizes[last]);
  const std::int64_t inner = movement::product(out, batch + k, out.rank);
  if (inner == 0) return;
  Places p{movement::indices_of(index), call.fault, movement::product(index, 0, last), out.numel() / inner, index.rank};
  p.k = k;
  p.per_batch = movement::product(index, batch, last);
  p.batch_stride = movement::product(out, batch, batch + k);
  for (int d = 0; d < k; ++d) {
    p.sizes[d] = out.sizes[batch + d];
    p.strides[d] = movement::product(out, batch + d + 1, batch + k);
  }
  write_all<ByTuple>(call, p, {out.dtype, call.inputs[2].data, out.data, 1, inner, meet_of(attrs.reduction)});
}

std::int64_t scatter_nd_workspace(const KernelCall& call) {
  const View& index = call.inputs[1];
  return space_for(movement::product(index, 0, index.rank - 1), call.inputs[0].numel());
}

void bincount(const KernelCall& call) {
  const View &x = call.inputs[0], &out = call.outputs[0];
  movement::clear_bytes(call, out.data, out.numel() * movement::width_of(out));
  const Bins b{x.data, x.dtype, out.as<unsigned long long>(), call.fault, x.numel(), out.numel()};
  launch(call, &bins_kernel, for_items(b.m), b);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
