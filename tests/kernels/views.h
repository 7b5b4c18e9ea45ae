// Arrays for kernel tests: storage with a view, in every layout that kernels must accept. Oracles read the elements as
// doubles.
#pragma once

#include <tapedeck/kernels/kernel.h>

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace tapedeck::testing {

using Sizes = std::vector<std::int64_t>;
using Random = std::mt19937;

struct Array {
  std::shared_ptr<std::vector<std::uint64_t>> storage;
  View view;

  std::int64_t numel() const { return view.numel(); }

  // The address of element `flat` in row-major order.
  char* address(std::int64_t flat) const {
    std::int64_t offset = 0;
    for (int d = view.rank - 1; d >= 0; --d) {
      offset += flat % view.sizes[d] * view.strides[d];
      flat /= view.sizes[d];
    }
    return view.as<char>() + offset * static_cast<std::int64_t>(dtype_size(view.dtype));
  }
  template <class T>
  T& at(std::int64_t flat) const {
    return *reinterpret_cast<T*>(address(flat));
  }
  double get(std::int64_t i) const {
    switch (view.dtype) {
      case DType::f32:
        return at<float>(i);
      case DType::f64:
        return at<double>(i);
      case DType::i32:
        return at<std::int32_t>(i);
      case DType::i64:
        return static_cast<double>(at<std::int64_t>(i));
      case DType::f16:
      case DType::bf16:
        return at<std::uint16_t>(i);
      default:
        return at<std::uint8_t>(i);
    }
  }
  void set(std::int64_t i, double x) const {
    switch (view.dtype) {
      case DType::f32:
        at<float>(i) = static_cast<float>(x);
        return;
      case DType::f64:
        at<double>(i) = x;
        return;
      case DType::i32:
        at<std::int32_t>(i) = static_cast<std::int32_t>(x);
        return;
      case DType::i64:
        at<std::int64_t>(i) = static_cast<std::int64_t>(x);
        return;
      case DType::f16:
      case DType::bf16:
        at<std::uint16_t>(i) = static_cast<std::uint16_t>(static_cast<std::int64_t>(x));
        return;
      default:
        at<std::uint8_t>(i) = static_cast<std::uint8_t>(static_cast<std::int64_t>(x));  // a negative number wraps around
        return;
    }
  }
};

// A dense row-major array of zeros.
inline Array make_array(DType dtype, const Sizes& sizes) {
  Array a;
  a.view.dtype = dtype;
  a.view.rank = static_cast<int>(sizes.size());
  std::int64_t n = 1;
  for (int d = a.view.rank - 1; d >= 0; --d) {
    a.view.sizes[d] = sizes[d];
    a.view.strides[d] = n;
    n *= sizes[d];
  }
  a.storage = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(n) * dtype_size(dtype) / 8 + 1);
  a.view.data = n ? a.storage->data() : nullptr;
  return a;
}

inline Array array_of(DType dtype, const Sizes& sizes, const std::vector<double>& values) {
  Array a = make_array(dtype, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i) a.set(i, values[i]);
  return a;
}

// All elements as doubles in row-major order, for oracles.
inline std::vector<double> values(const Array& a) {
  std::vector<double> all(static_cast<std::size_t>(a.numel()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = a.get(static_cast<std::int64_t>(i));
  return all;
}

inline Array permuted(Array a, const std::vector<int>& axes) {
  const View before = a.view;
  for (int d = 0; d < before.rank; ++d) {
    a.view.sizes[d] = before.sizes[axes[d]];
    a.view.strides[d] = before.strides[axes[d]];
  }
  return a;
}

// Adds leading dimensions and stretches dimensions of size 1, by strides of 0.
inline Array broadcast(Array a, const Sizes& sizes) {
  const View before = a.view;
  const int added = static_cast<int>(sizes.size()) - before.rank;
  a.view.rank = static_cast<int>(sizes.size());
  for (int d = 0; d < a.view.rank; ++d) {
    const bool repeated = d < added || before.sizes[d - added] != sizes[d];
    a.view.sizes[d] = sizes[d];
    a.view.strides[d] = repeated ? 0 : before.strides[d - added];
  }
  return a;
}

inline Array dense_copy(const Array& a) {
  Array b = make_array(a.view.dtype, Sizes(a.view.sizes, a.view.sizes + a.view.rank));
  for (std::int64_t i = 0; i < a.numel(); ++i) std::memcpy(b.address(i), a.address(i), dtype_size(a.view.dtype));
  return b;
}

// The same elements in another layout: permuted dimensions in memory, and gaps between rows.
inline Array scrambled(Random& random, const Array& a) {
  std::vector<int> order(static_cast<std::size_t>(a.view.rank));
  for (int d = 0; d < a.view.rank; ++d) order[d] = d;
  std::shuffle(order.begin(), order.end(), random);
  Array b = a;
  std::int64_t n = 1;
  for (const int d : order) {
    b.view.strides[d] = n;
    n *= a.view.sizes[d] + static_cast<std::int64_t>(random() % 3);
  }
  b.storage = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(n) * dtype_size(a.view.dtype) / 8 + 1);
  b.view.data = b.storage->data();
  for (std::int64_t i = 0; i < a.numel(); ++i) std::memcpy(b.address(i), a.address(i), dtype_size(a.view.dtype));
  return b;
}

inline Array random_array(Random& random, DType dtype, const Sizes& sizes, double low = -2, double high = 2) {
  Array a = make_array(dtype, sizes);
  std::uniform_real_distribution<double> real(low, high);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    a.set(i, dtype == DType::boolean ? static_cast<double>(random() & 1) : real(random));
  return a;
}

inline Sizes random_sizes(Random& random, int max_rank, int max_size, int min_size = 0) {
  Sizes sizes(random() % static_cast<unsigned>(max_rank + 1));
  for (auto& s : sizes) s = min_size + static_cast<int>(random() % static_cast<unsigned>(max_size - min_size + 1));
  return sizes;
}

inline bool same_bits(const Array& a, const Array& b) {
  if (a.numel() != b.numel()) return false;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (std::memcmp(a.address(i), b.address(i), dtype_size(a.view.dtype)) != 0) return false;
  return true;
}

struct Outcome {
  const char* fault = nullptr;
  std::int64_t value = 0;
};

// Gives a call with these operands to `f`, and returns the fault that it has reported.
template <class F>
Outcome run_call(const F& f, const std::vector<Array>& inputs, const std::vector<Array>& outputs, const void* attrs = nullptr,
                 std::int64_t workspace_bytes = 0) {
  std::vector<View> in, out;
  for (const Array& a : inputs) in.push_back(a.view);
  for (const Array& a : outputs) out.push_back(a.view);
  std::vector<char> scratch(static_cast<std::size_t>(workspace_bytes) + 64);
  KernelFault fault;
  KernelCall call;
  call.inputs = in.data();
  call.outputs = out.data();
  call.n_inputs = static_cast<std::int32_t>(in.size());
  call.n_outputs = static_cast<std::int32_t>(out.size());
  call.attrs = attrs;
  call.workspace = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  call.workspace_bytes = static_cast<std::size_t>(workspace_bytes);
  call.fault = &fault;
  f(call);
  return {fault.what.load(), fault.value.load()};
}

inline Outcome run(Kernel kernel, const std::vector<Array>& inputs, const std::vector<Array>& outputs,
                   const void* attrs = nullptr, std::int64_t workspace_bytes = 0) {
  return run_call(kernel, inputs, outputs, attrs, workspace_bytes);
}

template <class F>
void with_threads(int n, F&& f) {
  tbb::task_arena arena(n);
  arena.execute(f);
}

}  // namespace tapedeck::testing
