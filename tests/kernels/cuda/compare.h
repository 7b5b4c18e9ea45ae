// Runs a kernel of the device in the emulator, beside its CPU kernel, and compares the results. The CPU kernels of halves run
// in f32: the oracle of a call with halves is the CPU kernel on the converted operands.
#pragma once

#include <tapedeck/tests/kernels/views.h>

#include <tapedeck/kernels/half.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tapedeck::testing {

// A random array; the values of halves are numbers, not bits.
inline Array random_numbers(Random& random, DType dtype, const Sizes& sizes, double low = -2, double high = 2) {
  Array a = random_array(random, kernels::is_half(dtype) ? DType::f32 : dtype, sizes, low, high);
  if (!kernels::is_half(dtype)) return a;
  Array halves = make_array(dtype, sizes);
  for (std::int64_t i = 0; i < a.numel(); ++i)
    halves.at<std::uint16_t>(i) =
        dtype == DType::f16 ? kernels::to_f16(a.at<float>(i)).bits : kernels::to_bf16(a.at<float>(i)).bits;
  return halves;
}

// The same numbers, whose images lie further apart.
inline Array apart(const Array& a, std::int64_t gap) {
  Array b = a;
  const std::int64_t image = a.view.sizes[0] > 0 ? a.numel() / a.view.sizes[0] : 0;
  b.view.strides[0] = image + gap;
  b.storage = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(a.view.sizes[0] * (image + gap)) + 1);
  b.view.data = b.storage->data();
  for (std::int64_t i = 0; i < a.numel(); ++i) std::memcpy(b.address(i), a.address(i), dtype_size(a.view.dtype));
  return b;
}

inline double number(const Array& a, std::int64_t i) {
  if (a.view.dtype == DType::f16) return kernels::to_f32(kernels::F16{a.at<std::uint16_t>(i)});
  if (a.view.dtype == DType::bf16) return kernels::to_f32(kernels::Bf16{a.at<std::uint16_t>(i)});
  return a.get(i);
}

// A dense copy in which halves are f32.
inline Array in_f32(const Array& a) {
  if (!kernels::is_half(a.view.dtype)) return a;
  Array b = make_array(DType::f32, Sizes(a.view.sizes, a.view.sizes + a.view.rank));
  for (std::int64_t i = 0; i < a.numel(); ++i) b.set(i, number(a, i));
  return b;
}

// Two results may differ by this: a part of the magnitude of the numbers that were added up to them, or one unit in the last
// place of a half.
struct Tolerance {
  double magnitude = 1;
  double f32 = 1e-5, f64 = 1e-12;

  double of(DType dtype, double wanted) const {
    const double size = std::fabs(wanted);
    switch (dtype) {
      case DType::f32:
        return f32 * std::max(magnitude, size);
      case DType::f64:
        return f64 * std::max(magnitude, size);
      case DType::f16:
        return std::max(size / 1024, 6.2e-5) + f32 * magnitude;
      case DType::bf16:
        return size / 128 + f32 * magnitude;
      default:
        return 0;
    }
  }
};

inline void expect_close(const Array& got, const Array& wanted, const Tolerance& t) {
  ASSERT_EQ(got.numel(), wanted.numel());
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = number(got, i), b = number(wanted, i);
    if (a == b || (a != a && b != b)) continue;
    ASSERT_LE(std::fabs(a - b), t.of(got.view.dtype, b)) << "element " << i << ": " << a << ", not " << b;
  }
}

using WorkspaceRule = std::int64_t (*)(const KernelCall& call);

struct Operands {
  std::vector<Array> inputs, outputs;
  const void* attrs = nullptr;
};

inline std::int64_t workspace_for(WorkspaceRule rule, const Operands& o) {
  if (!rule) return 0;
  std::vector<View> in, out;
  for (const Array& a : o.inputs) in.push_back(a.view);
  for (const Array& a : o.outputs) out.push_back(a.view);
  KernelCall call;
  call.inputs = in.data();
  call.outputs = out.data();
  call.n_inputs = static_cast<std::int32_t>(in.size());
  call.n_outputs = static_cast<std::int32_t>(out.size());
  call.attrs = o.attrs;
  return rule(call);
}

// Fills the outputs with bytes that are no result, runs the kernel, and returns its fault.
inline Outcome run_emulated(Kernel kernel, WorkspaceRule rule, const Operands& o) {
  for (const Array& a : o.outputs)
    for (std::int64_t i = 0; i < a.numel(); ++i) std::memset(a.address(i), 0x5b, dtype_size(a.view.dtype));
  return run(kernel, o.inputs, o.outputs, o.attrs, workspace_for(rule, o));
}

// Runs both kernels, the emulated one twice: the results are to be close, and those of the two runs equal.
inline void compare(Kernel emulated, WorkspaceRule rule, Kernel cpu, std::int64_t cpu_workspace, const Operands& o,
                    const Tolerance& t = {}) {
  Operands again = o, oracle = o;
  for (Array& a : oracle.inputs) a = in_f32(a);
  for (std::size_t i = 0; i < o.outputs.size(); ++i) {
    const View& v = o.outputs[i].view;
    const Sizes sizes(v.sizes, v.sizes + v.rank);
    again.outputs[i] = make_array(v.dtype, sizes);
    oracle.outputs[i] = make_array(kernels::is_half(v.dtype) ? DType::f32 : v.dtype, sizes);
  }
  const Outcome first = run_emulated(emulated, rule, o);
  run_emulated(emulated, rule, again);
  const Outcome expected = run(cpu, oracle.inputs, oracle.outputs, o.attrs, cpu_workspace);
  EXPECT_EQ(first.fault != nullptr, expected.fault != nullptr);
  for (std::size_t i = 0; i < o.outputs.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "output " << i << " of " << dtype_name(o.outputs[i].view.dtype));
    expect_close(o.outputs[i], oracle.outputs[i], t);
    EXPECT_TRUE(same_bits(o.outputs[i], again.outputs[i])) << "two runs differ";
  }
}

}  // namespace tapedeck::testing
