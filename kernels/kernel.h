// The one call signature of every kernel, on every device.
//
// A kernel computes its outputs from its inputs and attributes, and nothing else: it never throws, never allocates, keeps no
// state, and its bits do not depend on strides, alignment or the number of threads. Kernels run concurrently on distinct calls.
//
// Layout: inputs of ops with trait `any_strides` may have any strides (0 = broadcast); of `matrix_strides` the last two
// dimensions may be row- or column-major and the leading ones are arbitrary; those in an op's `batch_strides` are dense but for
// their first dimension; all others are dense (row-major without gaps). Outputs are dense, except for elementwise and joining
// kernels, which also write strided outputs (an in-place op on a view), and those in `batch_strides`. An output may be the very
// same bytes as an input where the op declares the pair in-place; otherwise outputs overlap nothing.
// Views with zero elements are legal everywhere and may have a null pointer.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tapedeck {

inline constexpr int kMaxRank = 8;

// A typed window on memory. Strides count elements, not bytes.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int32_t rank = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kMaxRank];

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= sizes[i];
    return n;
  }
  bool dense() const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// What a kernel found wrong at run time: the first report wins, from whatever thread. `what` is a string literal,
// `value` the offending number (an index out of range).
struct KernelFault {
  std::atomic<const char*> what{nullptr};
  std::atomic<std::int64_t> value{0};

  void report(const char* message, std::int64_t offending) {
    const char* none = nullptr;
    if (what.compare_exchange_strong(none, message)) value = offending;
  }
};

struct KernelCall;
using Kernel = void (*)(const KernelCall&);

struct KernelCall {
  const View* inputs = nullptr;
  const View* outputs = nullptr;
  std::int32_t n_inputs = 0;
  std::int32_t n_outputs = 0;
  const void* attrs = nullptr;  // the op's attribute struct (kernels/attrs.h), or null if it has none
  void* workspace = nullptr;    // 64-byte aligned scratch of the size the op's `workspace` rule gave
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;        // CUDA stream; null on the CPU
  KernelFault* fault = nullptr;  // never null
  Kernel f32_kernel = nullptr;   // of run_in_f32 (half.h) alone: what to run

  template <class A>
  const A& attributes() const {
    return *static_cast<const A*>(attrs);
  }
};

}  // namespace tapedeck
