// The pointwise kernels: out[i] = f(a[i], b[i], ...) over views of equal sizes and any strides (0 = broadcast).
//
// The work of one thread is written here once, in plain C++ without CUDA keywords, so that g++ compiles it too. pointwise_*.cu
// launch it on the device; tests/kernels/cuda/pointwise_test.cpp runs the same functions on the host, one thread after the
// other. The arithmetic is that of scalar.h, so that the device and the CPU kernels give the same f32 bits (compile with
// --fmad=false, which turns contraction off).
//
// A kernel is a pair of a family and a functor. The family is the set of types that the kernel is compiled for. The lists at
// the end of this file name all kernels. A family calls Launch::map<Out, In...>(call, f), and the Launch type runs the threads:
// on the device, or in a loop on the host.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/kernel.h>
#include <tapedeck/kernels/scalar_functions.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace tapedeck::kernels::cuda {

// Several views of equal sizes, walked together; operand 0 is the output. Strides count elements. The device receives the
// struct by value.
template <int kOperands>
struct Walk {
  std::int64_t n = 0;
  // Dimensions of size 1 are dropped, and neighbouring dimensions are merged where every operand allows it.
  std::int32_t rank = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kOperands][kMaxRank];
  void* data[kOperands];
};

template <int kOperands>
Walk<kOperands> make_walk(const KernelCall& call) {
  const View* views[kOperands] = {&call.outputs[0]};
  for (int k = 1; k < kOperands; ++k) views[k] = &call.inputs[k - 1];
  Walk<kOperands> walk;
  walk.n = views[0]->numel();
  for (int k = 0; k < kOperands; ++k) walk.data[k] = views[k]->data;
  for (int d = 0; d < views[0]->rank; ++d) {
    const std::int64_t size = views[0]->sizes[d];
    if (size == 1) continue;
    bool merges = walk.rank > 0;
    for (int k = 0; merges && k < kOperands; ++k) merges = walk.strides[k][walk.rank - 1] == views[k]->strides[d] * size;
    if (merges)
      walk.sizes[walk.rank - 1] *= size;
    else
      walk.sizes[walk.rank++] = size;
    for (int k = 0; k < kOperands; ++k) walk.strides[k][walk.rank - 1] = views[k]->strides[d];
  }
  return walk;
}

// Computes the offset of element i of the walk in every operand. Division is the expensive part, so Index has 32 bits where the
// walk is short enough.
template <class Index, int kOperands>
TAPEDECK_HD inline void locate(const Walk<kOperands>& walk, std::int64_t element, std::int64_t (&at)[kOperands]) {
  for (int k = 0; k < kOperands; ++k) at[k] = 0;
  Index rest = static_cast<Index>(element);
  for (int d = walk.rank - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(walk.sizes[d]);
    const Index quotient = d == 0 ? Index(0) : rest / size;
    const std::int64_t index = static_cast<std::int64_t>(rest - quotient * size);
    for (int k = 0; k < kOperands; ++k) at[k] += index * walk.strides[k][d];
    rest = quotient;
  }
}

template <class Out, class... In, class F, std::size_t... I>
TAPEDECK_HD inline void apply_at(const F& f, void* const* data, const std::int64_t* at, std::index_sequence<I...>) {
  static_cast<Out*>(data[0])[at[0]] = f(static_cast<const In*>(data[I + 1])[at[I + 1]]...);
}

// The work of one thread: the elements first, first + step, first + 2 step, ... of the walk.
template <class Out, class... In, class F>
TAPEDECK_HD inline void map_thread(const Walk<1 + sizeof...(In)>& walk, const F& f, std::int64_t first, std::int64_t step) {
  constexpr int kOperands = 1 + sizeof...(In);
  constexpr auto operands = std::index_sequence_for<In...>{};
  std::int64_t at[kOperands];
  if (walk.rank <= 1) {  // dense, or a row of any stride
    for (std::int64_t i = first; i < walk.n; i += step) {
      for (int k = 0; k < kOperands; ++k) at[k] = walk.rank == 0 ? 0 : i * walk.strides[k][0];
      apply_at<Out, In...>(f, walk.data, at, operands);
    }
  } else if (walk.n <= std::numeric_limits<std::int32_t>::max()) {
    for (std::int64_t i = first; i < walk.n; i += step) {
      locate<std::uint32_t>(walk, i, at);
      apply_at<Out, In...>(f, walk.data, at, operands);
    }
  } else {
    for (std::int64_t i = first; i < walk.n; i += step) {
      locate<std::uint64_t>(walk, i, at);
      apply_at<Out, In...>(f, walk.data, at, operands);
    }
  }
}

// ---- families: each compiles a functor for a set of types ----

template <class Launch, class F>
void unary_numbers(const KernelCall& call) {
  cpu::for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, T>(call, F{});
  });
}

template <class Launch, class F>
void unary_floats(const KernelCall& call) {
  cpu::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, T>(call, F{});
  });
}

template <class Launch, class F>
void binary_numbers(const KernelCall& call) {
  cpu::for_numbers(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, T, T>(call, F{});
  });
}

template <class Launch, class F>
void binary_floats(const KernelCall& call) {
  cpu::for_floats(call, call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, T, T>(call, F{});
  });
}

// Booleans are compared as bytes.
template <class Launch, class F>
void compare(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  cpu::for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<std::uint8_t, T, T>(call, F{});
  });
}

template <class Launch, class F>
void unary_logic(const KernelCall& call) {
  Launch::template map<std::uint8_t, std::uint8_t>(call, F{});
}

template <class Launch, class F>
void binary_logic(const KernelCall& call) {
  Launch::template map<std::uint8_t, std::uint8_t, std::uint8_t>(call, F{});
}

template <class Launch, class F>
void choose(const KernelCall& call) {
  cpu::for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, std::uint8_t, T, T>(call, F{});
  });
}

struct Same {
  template <class T>
  TAPEDECK_HD T operator()(T x) const {
    return x;
  }
};

template <class Launch, class F>
void move_bytes(const KernelCall& call) {
  cpu::for_widths(call.outputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    Launch::template map<T, T>(call, F{});
  });
}

// The two types determine the functor of a cast, so the functor in the list is unused.
template <class Launch, class>
void convert(const KernelCall& call) {
  const DType from = call.inputs[0].dtype, to = call.outputs[0].dtype;
  const bool from_bool = from == DType::boolean;
  cpu::for_numbers(call, from_bool ? DType::u8 : from, [&](auto f) {
    using From = decltype(f);
    if (to == DType::boolean) return Launch::template map<std::uint8_t, From>(call, ToBool{});
    cpu::for_numbers(call, to, [&](auto t) {
      using To = decltype(t);
      if constexpr (std::is_same_v<From, std::uint8_t>) {
        if (from_bool) return Launch::template map<To, From>(call, FromBool<To>{});
      }
      Launch::template map<To, From>(call, Cast<To>{});
    });
  });
}

// ---- all of them: X(kernel, family, functor) ----
// clang-format would change these tables again on every run.
// clang-format off

#define TAPEDECK_POINTWISE_ARITHMETIC(X)                                                                                       \
  X(add, binary_numbers, Add) X(sub, binary_numbers, Sub) X(mul, binary_numbers, Mul) X(div, binary_numbers, Div)              \
  X(maximum, binary_numbers, Maximum) X(minimum, binary_numbers, Minimum) X(pow, binary_numbers, Pow)                          \
  X(relu_grad, binary_floats, ReluGrad) X(tanh_grad, binary_floats, TanhGrad) X(sigmoid_grad, binary_floats, SigmoidGrad)

#define TAPEDECK_POINTWISE_FUNCTIONS(X)                                                                                        \
  X(neg, unary_numbers, Neg) X(abs, unary_numbers, Abs) X(sign, unary_numbers, Sign) X(relu, unary_numbers, Relu)              \
  X(square, unary_numbers, Square) X(exp, unary_floats, Exp) X(log, unary_floats, Log) X(tanh, unary_floats, Tanh)             \
  X(sigmoid, unary_floats, Sigmoid) X(sqrt, unary_floats, Sqrt) X(rsqrt, unary_floats, Rsqrt) X(sin, unary_floats, Sin)        \
  X(cos, unary_floats, Cos)

#define TAPEDECK_POINTWISE_COMPARISONS(X)                                                                                      \
  X(equal, compare, Equal) X(not_equal, compare, NotEqual) X(less, compare, Less) X(less_equal, compare, LessEqual)            \
  X(greater, compare, Greater) X(greater_equal, compare, GreaterEqual) X(logical_and, binary_logic, LogicalAnd)                \
  X(logical_or, binary_logic, LogicalOr) X(logical_not, unary_logic, LogicalNot) X(where, choose, Where)

#define TAPEDECK_POINTWISE_CONVERSIONS(X) X(cast, convert, void) X(copy, move_bytes, Same)

#define TAPEDECK_POINTWISE_KERNELS(X) \
  TAPEDECK_POINTWISE_ARITHMETIC(X) TAPEDECK_POINTWISE_FUNCTIONS(X) TAPEDECK_POINTWISE_COMPARISONS(X) TAPEDECK_POINTWISE_CONVERSIONS(X)
// clang-format on

}  // namespace tapedeck::kernels::cuda
