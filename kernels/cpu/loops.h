// The elementwise loop: out[i] = f(a[i], b[i], ...) over views of equal sizes and any strides. It takes one of four ways:
//   dense     all views are dense; the fast path of eager code, without any set-up
//   rows      every operand of a row is contiguous, or one element read again and again (a bias, a scalar)
//   strided   rows of any strides
//   turned    as rows, for operands like a transposed matrix, of which a block is turned into contiguous rows first
// All four call f on the same values, so they give the same bits. Neighbouring dimensions are merged where all views allow it.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/tile_loops.h>
#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tapedeck::kernels::cpu {

inline constexpr int kMaxOperands = 4;

// The sizes and strides of several views walked together in the order of operand 0, the output. Strides count bytes.
struct Walk {
  int rank = 0;
  int operands = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kMaxOperands][kMaxRank];
  char* base[kMaxOperands];
};

// Computes one row of n elements. Operand k begins at ptr[k], and its elements lie strides[k] bytes apart. `f` points to the
// functor.
using RowBody = void (*)(const void* f, char* const* ptr, const std::int64_t* strides, std::int64_t n);

// Makes a walk from views of equal sizes. Neighbouring dimensions are merged where every operand allows it.
Walk make_walk(const View* const* views, int operands);

// Runs body over the elements [begin, end) of the walk, counted row-major.
void walk_range(const Walk& walk, std::int64_t begin, std::int64_t end, RowBody body, const void* f);

// Walks the output (operand 0) and the inputs. A walk of more than `grain` elements runs in parallel.
void walk_call(const KernelCall& call, RowBody body, const void* f, std::int64_t grain);

// The loop of a kernel, for a caller that runs it on many short rows (elementwise/tiles.cpp) and then need not call the kernel
// for each of them. Such a caller calls the kernel once, with views without elements, with kBindLoop in place of the number of
// outputs, and with a BoundLoop as workspace, in which loops is 0. A kernel made of one map() writes its loop there; any other
// kernel computes nothing, since there is nothing to compute.
struct BoundLoop {
  static constexpr std::size_t kMostBytes = 64;

  std::int32_t loops;  // how many loops the kernel is made of; body and functor mean something if it is 1
  RowBody body;
  alignas(std::max_align_t) unsigned char functor[kMostBytes];  // the argument `f` of the body
};
inline constexpr std::int32_t kBindLoop = -1;

// Writes the loop down as the BoundLoop of the call. A functor that cannot be copied byte by byte counts as two loops.
template <class F>
void bind_loop(const KernelCall& call, RowBody body, const F& f) {
  auto& loop = *static_cast<BoundLoop*>(call.workspace);
  if constexpr (std::is_trivially_copyable_v<F> && sizeof(F) <= BoundLoop::kMostBytes) {
    ++loop.loops;
    loop.body = body;
    std::memcpy(loop.functor, &f, sizeof f);
  } else {
    loop.loops += 2;
  }
}

namespace detail {

template <class Out, class... In, class F>
void dense_run(F f, std::int64_t begin, std::int64_t end, Out* out, const In*... in) {
  if constexpr (RunsByTiles<F, In...>) {
    run_tiles(f, end - begin, out + begin, (in + begin)...);
  } else {
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) out[i] = f(in[i]...);
  }
}

// An operand of a row: its elements, or one element again and again. That element is read before the loop, since the compiler
// cannot know that the loop does not write over it, and would read it in each step if results are bytes.
template <class T, bool kRepeated>
struct RowOperand {
  explicit RowOperand(const char* at) : elements(reinterpret_cast<const T*>(at)) {}
  T operator[](std::int64_t i) const { return elements[i]; }
  const T* elements;
};
template <class T>
struct RowOperand<T, true> {
  explicit RowOperand(const char* at) : element(*reinterpret_cast<const T*>(at)) {}
  T operator[](std::int64_t) const { return element; }
  const T element;
};

template <class F, class Out, class... Operands>
void run_row(F f, Out* out, std::int64_t n, const Operands... in) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]...);
}

// Bit k of kRepeated says that input k is a single element.
template <unsigned kRepeated, class Out, class... In, class F, std::size_t... I>
void row_of(F f, char* const* ptr, std::int64_t n, std::index_sequence<I...>) {
  if (n == 0) return;
  run_row(f, reinterpret_cast<Out*>(ptr[0]), n, RowOperand<In, (kRepeated >> I & 1) != 0>(ptr[I + 1])...);
}

// Bit k of `repeated` says that input k is a single element.
template <class... In, class F, std::size_t... I>
void tiled_row(const F& f, unsigned repeated, char* const* ptr, std::int64_t n, std::index_sequence<I...>) {
  if (n == 0) return;
  float* out = reinterpret_cast<float*>(ptr[0]);
  if (repeated == 0)
    run_tiles(f, n, out, reinterpret_cast<const In*>(ptr[I + 1])...);
  else
    run_tiles(f, n, out, TileOperand<In>(reinterpret_cast<const In*>(ptr[I + 1]), (repeated >> I & 1) != 0, n)...);
}

template <class Out, class... In, class F, std::size_t... I>
void strided_row(F f, char* const* ptr, const std::int64_t* strides, std::int64_t n, std::index_sequence<I...>) {
  for (std::int64_t i = 0; i < n; ++i)
    *reinterpret_cast<Out*>(ptr[0] + i * strides[0]) = f(*reinterpret_cast<const In*>(ptr[I + 1] + i * strides[I + 1])...);
}

// Compiles a loop for each of the 2^n patterns of repeated inputs, and runs the loop of the pattern `repeated`. Returns false
// if no pattern matches.
template <class F, class Out, class... In, unsigned... P>
bool patterned_row(const F& f, unsigned repeated, char* const* ptr, std::int64_t n, std::integer_sequence<unsigned, P...>) {
  return ((repeated == P && (row_of<P, Out, In...>(f, ptr, n, std::index_sequence_for<In...>{}), true)) || ...);
}

template <class F, class Out, class... In>
void row(const void* context, char* const* ptr, const std::int64_t* strides, std::int64_t n) {
  const F& f = *static_cast<const F*>(context);
  const std::int64_t widths[] = {static_cast<std::int64_t>(sizeof(In))...};
  unsigned repeated = 0;
  bool simple = strides[0] == static_cast<std::int64_t>(sizeof(Out)) || n == 1;
  for (unsigned k = 0; k < sizeof...(In); ++k) {
    if (strides[k + 1] == 0)
      repeated |= 1u << k;
    else if (strides[k + 1] != widths[k] && n != 1)
      simple = false;
  }
  if (!simple)
    strided_row<Out, In...>(f, ptr, strides, n, std::index_sequence_for<In...>{});
  else if constexpr (RunsByTiles<F, In...>)
    tiled_row<In...>(f, repeated, ptr, n, std::index_sequence_for<In...>{});
  else
    patterned_row<F, Out, In...>(f, repeated, ptr, n, std::make_integer_sequence<unsigned, 1u << sizeof...(In)>{});
}

template <class Out, class... In, class F, std::size_t... I>
void dense_call(const KernelCall& call, const F& f, std::int64_t n, std::int64_t grain, std::index_sequence<I...>) {
  Out* out = call.outputs[0].as<Out>();
  if (n <= grain) {
    dense_run<Out, In...>(f, 0, n, out, call.inputs[I].as<In>()...);
    return;
  }
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    dense_run<Out, In...>(f, begin, end, out, call.inputs[I].as<In>()...);
  });
}

}  // namespace detail

// True if the first output and the first `n_inputs` inputs are dense, so that one loop runs over all elements.
inline bool all_dense(const KernelCall& call, int n_inputs) {
  if (!call.outputs[0].dense()) return false;
  for (int k = 0; k < n_inputs; ++k)
    if (!call.inputs[k].dense()) return false;
  return true;
}

// A whole elementwise kernel: out = f(in...). `ns_per_item` is the rough cost of one element in nanoseconds; it sets the grain.
template <class Out, class... In, class F>
void map(const KernelCall& call, const F& f, double ns_per_item = 0.5) {
  if (call.n_outputs == kBindLoop) return bind_loop(call, detail::row<F, Out, In...>, f);
  const std::int64_t grain = grain_for(ns_per_item);
  if (all_dense(call, sizeof...(In)))
    detail::dense_call<Out, In...>(call, f, call.outputs[0].numel(), grain, std::index_sequence_for<In...>{});
  else
    walk_call(call, detail::row<F, Out, In...>, &f, grain);
}

// The same for a loop that the caller wrote, for rows of any strides. It gets a pointer to `f`.
template <class F>
void map_rows(const KernelCall& call, RowBody body, const F& f, double ns_per_item) {
  if (call.n_outputs == kBindLoop) return bind_loop(call, body, f);
  walk_call(call, body, &f, grain_for(ns_per_item));
}

}  // namespace tapedeck::kernels::cpu
