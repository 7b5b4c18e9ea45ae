// KernelCall is the one call signature of every kernel, on every device.
//
// A kernel computes its outputs from its inputs and its attributes, and from nothing else. A kernel never throws, never
// allocates and keeps no state. The bits of its results do not depend on strides, alignment or the number of threads. Several
// threads may run one kernel at the same time, each with its own KernelCall.
//
// Strides of inputs. The traits of the op (engine/ops) say which strides a kernel must accept:
//   any_strides      any strides; a stride of 0 repeats one element (broadcast)
//   matrix_strides   the last two dimensions are row-major or column-major; the leading dimensions have any strides
//   batch_strides    the inputs that the op lists there are dense but for the stride of the first dimension
//   none of these    dense: row-major without gaps
// Strides of outputs. Outputs are dense, with two exceptions: elementwise and joining kernels also write outputs of any strides
// (an in-place op on a view), and an output that the op lists in `batch_strides` is dense but for its first dimension.
// Overlap. An output may lie on exactly the bytes of an input where the op declares this pair in-place. Otherwise an output
// overlaps no other view.
// A view with zero elements is legal everywhere, and its pointer may be null.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tapedeck {

inline constexpr int kMaxRank = 8;

// A typed view of memory that the view does not own. Sizes and strides count elements, not bytes; entries at `rank` and beyond
// mean nothing.
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

// The report of an error that a kernel finds while it runs, for example an index out of range. Several threads may report; the
// first report is kept and later reports are dropped. `what` is a string literal; `value` is the offending number.
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

// One call of a kernel. The struct owns nothing, and the kernel reads it only until it returns. The memory of the views and the
// workspace must live until the results are there: on CUDA, until the stream has run the kernel.
struct KernelCall {
  const View* inputs = nullptr;
  const View* outputs = nullptr;
  std::int32_t n_inputs = 0;
  std::int32_t n_outputs = 0;
  const void* attrs = nullptr;  // the attribute struct of the op (kernels/attrs.h), or null if the op has none
  void* workspace = nullptr;    // scratch memory, aligned to 64 bytes; the op's `workspace` rule gives its size
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;        // the CUDA stream to launch on; null on the CPU
  KernelFault* fault = nullptr;  // never null
  Kernel f32_kernel = nullptr;   // read by run_in_f32 (half.h) only: the kernel to run on the converted operands

  template <class A>
  const A& attributes() const {
    return *static_cast<const A*>(attrs);
  }
};

}  // namespace tapedeck
