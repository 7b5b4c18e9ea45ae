// Calls of kernels on random operands: the kernel for the device, run by the emulator, against the kernel of the CPU.
//
// A layout has dimensions in any order in memory, gaps, and repeated dimensions, or it is dense, so that kernels take their
// way of several elements at a time. A buffer ends with the last byte of its view, so that the address sanitizer reports an
// access outside. TAPEDECK_TEST_SEED sets the seed, to repeat a run.
#pragma once

#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/kernel.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::testing::cuda {

using Types = std::vector<DType>;
using Sizes = std::vector<std::int64_t>;

inline const Types kFloats = {DType::f32, DType::f64, DType::f16, DType::bf16};
inline const Types kIntegers = {DType::i32, DType::i64, DType::u8};
inline const Types kNumbers = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
inline const Types kAll = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean};

struct Buffer {
  View view;
  std::vector<std::uint8_t> bytes;
  std::size_t offset = 0;  // the view begins so many bytes behind the beginning

  Buffer() = default;
  Buffer(const Buffer& o) : view(o.view), bytes(o.bytes), offset(o.offset) { place(); }
  Buffer& operator=(const Buffer& o) {
    view = o.view, bytes = o.bytes, offset = o.offset;
    place();
    return *this;
  }
  void place() {
    bytes.shrink_to_fit();
    view.data = bytes.data() + offset;
  }
};

// The range of random floating operands; the special values such as infinity come besides.
struct Range {
  double low = -5, high = 5;
  bool special = true;
};

class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}

  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }

  Sizes sizes() {
    const std::int64_t choices[] = {1, 2, 3, 4, 5, 6, 8, 16};
    Sizes sizes(static_cast<std::size_t>(below(5)));
    for (auto& size : sizes) size = chance(0.03) ? 0 : choices[below(8)];
    return sizes;
  }

  // A view of the sizes. A plain one is dense; perhaps it repeats along some dimensions, and rarely it is not aligned.
  Buffer buffer(DType dtype, const Sizes& sizes, bool may_repeat, bool plain, Range range = {}) {
    Buffer b;
    b.view.dtype = dtype;
    b.view.rank = static_cast<int>(sizes.size());
    std::vector<int> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (!plain && chance(0.5)) std::shuffle(order.begin(), order.end(), engine_);
    const bool gaps = !plain && chance(0.4);
    std::int64_t extent = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const int d = order[i];
      b.view.sizes[d] = sizes[static_cast<std::size_t>(d)];
      b.view.strides[d] = 0;
      if (may_repeat && chance(0.2)) continue;
      if (gaps) extent += below(3);
      b.view.strides[d] = extent;
      extent *= std::max<std::int64_t>(b.view.sizes[d], 1);
    }
    std::int64_t reach = 1;
    for (int d = 0; d < b.view.rank; ++d) reach += b.view.strides[d] * std::max<std::int64_t>(b.view.sizes[d] - 1, 0);
    if (chance(0.1)) b.offset = dtype_size(dtype);
    b.bytes.resize(static_cast<std::size_t>(reach) * dtype_size(dtype) + b.offset);
    b.place();
    for (std::int64_t i = 0; i < reach; ++i) fill(b, i, range);
    return b;
  }
  Buffer dense(DType dtype, const Sizes& sizes, Range range = {}) { return buffer(dtype, sizes, false, true, range); }

 private:
  void fill(Buffer& b, std::int64_t i, const Range& range) {
    switch (b.view.dtype) {
      case DType::f32:
        return put(b, i, floating<float>(range));
      case DType::f64:
        return put(b, i, floating<double>(range));
      case DType::f16:
        return put(b, i, kernels::to_f16(floating<float>(range)).bits);
      case DType::bf16:
        return put(b, i, kernels::to_bf16(floating<float>(range)).bits);
      case DType::i32:
        return put(b, i, integer<std::int32_t>(range));
      case DType::i64:
        return put(b, i, integer<std::int64_t>(range));
      case DType::u8:
        return put(b, i, integer<std::uint8_t>(range));
      default:
        return put(b, i, static_cast<std::uint8_t>(chance(0.05) ? 2 : below(2)));  // any nonzero byte reads as true
    }
  }
  template <class T>
  static void put(Buffer& b, std::int64_t i, T value) {
    std::memcpy(static_cast<char*>(b.view.data) + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
  }
  template <class T>
  T floating(const Range& range) {
    using Limits = std::numeric_limits<T>;
    const T special[] = {T(0),
                         -T(0),
                         T(1),
                         T(-1),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::min(),
                         T(2e5)};
    if (range.special && chance(0.1)) return special[below(std::size(special))];
    return static_cast<T>(std::uniform_real_distribution<double>(range.low, range.high)(engine_));
  }
  template <class T>
  T integer(const Range& range) {
    if (range.special && chance(0.1)) return chance(0.5) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    return static_cast<T>(below(11) - (std::is_signed_v<T> ? 5 : 0));
  }

  std::mt19937_64 engine_;
};

// ---- equality of results ----

inline bool is_nan(DType dtype, const std::uint8_t* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, dtype_size(dtype));
  if (dtype == DType::f32) return (bits & 0x7FFFFFFF) > 0x7F800000;
  if (dtype == DType::f64) return (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000;
  if (dtype == DType::f16) return (bits & 0x7FFF) > 0x7C00;
  return dtype == DType::bf16 && (bits & 0x7FFF) > 0x7F80;
}

// Compares all bytes under two results, gaps included, because a kernel must not write outside of its view. Any NaN equals any
// other, because the compiler chooses which one it is.
inline bool equal_results(const Buffer& a, const Buffer& b) {
  const std::size_t width = dtype_size(a.view.dtype);
  for (std::size_t at = a.offset; at < a.bytes.size(); at += width) {
    if (std::memcmp(a.bytes.data() + at, b.bytes.data() + at, width) == 0) continue;
    if (!is_nan(a.view.dtype, a.bytes.data() + at) || !is_nan(b.view.dtype, b.bytes.data() + at)) return false;
  }
  return true;
}

inline std::string describe(const View& view) {
  std::string text = dtype_name(view.dtype);
  for (int d = 0; d < view.rank; ++d) text += " " + std::to_string(view.sizes[d]) + "*" + std::to_string(view.strides[d]);
  return text;
}

// ---- calls ----

// Declares the CPU kernels of a room's list.
#define TAPEDECK_DECLARE_CPU(op, halves) void op(const KernelCall& call);
// One case: the op, its kernel for the device, and the oracle.
#define TAPEDECK_CASE(op) \
  ::tapedeck::testing::cuda::Case { #op, &::tapedeck::kernels::emulated::op, &::tapedeck::kernels::cpu::op }

using WorkspaceRule = std::int64_t (*)(const KernelCall& call);

struct Case {
  const char* name;
  Kernel device;                      // run by the emulator
  Kernel cpu;                         // the oracle; halves go through run_in_f32, unless `native`
  bool native = false;                // the CPU kernel takes halves itself
  WorkspaceRule workspace = nullptr;  // of the device kernel
};

// One output that lies on exactly the bytes of an input.
struct InPlace {
  int output, input;
};

struct Operands {
  std::vector<Buffer> inputs, outputs;
  std::vector<InPlace> in_place;

  // The views of the call; an output in place has the bytes of its input, which the buffer of the output holds.
  void call_views(std::vector<View>* views) {
    views->clear();
    for (const InPlace& p : in_place) outputs[static_cast<std::size_t>(p.output)] = inputs[static_cast<std::size_t>(p.input)];
    for (Buffer& b : inputs) views->push_back(b.view);
    for (const InPlace& p : in_place)
      (*views)[static_cast<std::size_t>(p.input)].data = outputs[static_cast<std::size_t>(p.output)].view.data;
    for (Buffer& b : outputs) views->push_back(b.view);
  }
};

// Runs one kernel and says whether it reported a fault. The workspace has `bytes` bytes, or what the rule says. It ends with
// its last byte, so that the address sanitizer reports an access outside.
inline bool run(Kernel kernel, Kernel f32_kernel, Operands& operands, const void* attrs, std::size_t bytes,
                WorkspaceRule workspace = nullptr) {
  std::vector<View> views;
  operands.call_views(&views);
  KernelFault fault;
  KernelCall call;
  call.inputs = views.data();
  call.n_inputs = static_cast<int>(operands.inputs.size());
  call.outputs = views.data() + operands.inputs.size();
  call.n_outputs = static_cast<int>(operands.outputs.size());
  call.attrs = attrs;
  call.fault = &fault;
  call.f32_kernel = f32_kernel;
  if (workspace) bytes = static_cast<std::size_t>(workspace(call));
  const auto scratch = std::make_unique<std::uint8_t[]>(bytes);
  call.workspace = scratch.get();
  call.workspace_bytes = bytes;
  kernel(call);
  return fault.what.load() != nullptr;
}

inline bool run_on_cpu(const Case& c, Operands& operands, const void* attrs) {
  std::int64_t scratch = 0;
  bool half = false;
  for (const auto* list : {&operands.inputs, &operands.outputs})
    for (const Buffer& b : *list) {
      half = half || kernels::is_half(b.view.dtype);
      scratch += kernels::half_scratch(b.view.numel() + 16) + 16 * b.view.numel();
    }
  if (half && !c.native) return run(&kernels::run_in_f32, c.cpu, operands, attrs, static_cast<std::size_t>(scratch));
  return run(c.cpu, nullptr, operands, attrs, static_cast<std::size_t>(scratch));
}

// Both kernels, on copies of the operands. Results and the fact of a fault must be equal.
inline void compare(const Case& c, const Operands& operands, const void* attrs = nullptr) {
  Operands by_device = operands, by_cpu = operands;
  const bool cpu_fault = run_on_cpu(c, by_cpu, attrs);
  const bool device_fault = run(c.device, nullptr, by_device, attrs, 0, c.workspace);
  std::string text = c.name;
  for (const Buffer& b : operands.inputs) text += "\n  in  " + describe(b.view);
  for (const Buffer& b : operands.outputs) text += "\n  out " + describe(b.view);
  for (const InPlace& p : operands.in_place)
    text += "\n  output " + std::to_string(p.output) + " on input " + std::to_string(p.input);
  EXPECT_EQ(device_fault, cpu_fault) << text;
  for (std::size_t k = 0; k < operands.outputs.size(); ++k)
    EXPECT_TRUE(equal_results(by_device.outputs[k], by_cpu.outputs[k])) << text << "\n  differs in output " << k;
}

class RandomCalls : public ::testing::Test {
 protected:
  static unsigned chosen_seed() {
    const char* text = std::getenv("TAPEDECK_TEST_SEED");
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : std::random_device{}() & 0xFFFFFF;
  }

  // An elementwise op on random views of the types; the last type is that of the output. Where an output may lie on an input,
  // a third of the calls does that.
  void try_elementwise(const Case& c, const Types& types, const void* attrs = nullptr, int rounds = 24, Range range = {}) {
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      const Sizes sizes = draws_.sizes();
      const bool plain = round % 2 == 0;
      Operands operands;
      const int place = round % 3 == 0 ? static_cast<int>(draws_.below(static_cast<std::int64_t>(types.size()))) : -1;
      for (std::size_t k = 0; k + 1 < types.size(); ++k)
        operands.inputs.push_back(draws_.buffer(types[k], sizes, static_cast<int>(k) != place, plain, range));
      operands.outputs.push_back(draws_.buffer(types.back(), sizes, false, plain));
      if (place >= 0 && place + 1 < static_cast<int>(types.size()) && types[static_cast<std::size_t>(place)] == types.back())
        operands.in_place.push_back({0, place});
      compare(c, operands, attrs);
    }
  }

  const unsigned seed_ = chosen_seed();
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  Draws draws_{seed_};
};

}  // namespace tapedeck::testing::cuda
