// Operands of the tests of the products: views of any strides over numbers that are the same in every run.
#pragma once

#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace tapedeck::kernels {

// A view and its memory, which ends with the last element of the view. It may be moved; a copy would share the view's memory.
struct Operand {
  View view;
  std::vector<std::uint8_t> bytes;

  Operand() = default;
  Operand(Operand&&) = default;
  Operand& operator=(Operand&&) = default;
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  double at(std::int64_t offset) const {
    const std::uint8_t* from = bytes.data() + offset * static_cast<std::int64_t>(dtype_size(view.dtype));
    const auto read = [&](auto value) {
      std::memcpy(&value, from, sizeof value);
      return value;
    };
    switch (view.dtype) {
      case DType::f32:
        return read(float{});
      case DType::f64:
        return read(double{});
      case DType::f16:
        return to_f32(read(F16{}));
      case DType::bf16:
        return to_f32(read(Bf16{}));
      case DType::i32:
        return read(std::int32_t{});
      case DType::i64:
        return static_cast<double>(read(std::int64_t{}));
      default:
        return read(std::uint8_t{});
    }
  }
  void set(std::int64_t offset, double value) {
    std::uint8_t* to = bytes.data() + offset * static_cast<std::int64_t>(dtype_size(view.dtype));
    const auto write = [&](auto v) { std::memcpy(to, &v, sizeof v); };
    switch (view.dtype) {
      case DType::f32:
        return write(static_cast<float>(value));
      case DType::f64:
        return write(value);
      case DType::f16:
        return write(to_f16(static_cast<float>(value)));
      case DType::bf16:
        return write(to_bf16(static_cast<float>(value)));
      case DType::i32:
        return write(static_cast<std::int32_t>(value));
      case DType::i64:
        return write(static_cast<std::int64_t>(value));
      default:
        return write(static_cast<std::uint8_t>(value));
    }
  }
  // Element number `index`, counted row-major.
  std::int64_t offset_of(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int d = view.rank - 1; d >= 0; --d) {
      offset += index % view.sizes[d] * view.strides[d];
      index /= view.sizes[d];
    }
    return offset;
  }
  double element(std::int64_t index) const { return at(offset_of(index)); }
};

inline std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

// An operand of random numbers; integers are small whole numbers.
class Operands {
 public:
  explicit Operands(unsigned seed = 1) : engine_(seed) {}

  Operand make(DType dtype, const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
    Operand x;
    x.view.dtype = dtype;
    x.view.rank = static_cast<std::int32_t>(sizes.size());
    std::int64_t reach = 1;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      x.view.sizes[d] = sizes[d];
      x.view.strides[d] = strides[d];
      reach += strides[d] * (sizes[d] > 0 ? sizes[d] - 1 : 0);
    }
    if (x.view.numel() == 0) reach = 0;
    x.bytes.resize(static_cast<std::size_t>(reach) * dtype_size(dtype));
    x.view.data = x.bytes.data();
    for (std::int64_t i = 0; i < reach; ++i) x.set(i, number(dtype));
    return x;
  }
  Operand make(DType dtype, const std::vector<std::int64_t>& sizes) { return make(dtype, sizes, dense_strides(sizes)); }
  // The last two dimensions are column-major.
  Operand turned(DType dtype, const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> strides = dense_strides(sizes);
    const std::size_t r = sizes.size() - 2;
    strides[r] = 1;
    strides[r + 1] = sizes[r];
    return make(dtype, sizes, strides);
  }

 private:
  double number(DType dtype) {
    if (dtype == DType::boolean) return static_cast<double>(engine_() % 2);
    if (dtype == DType::i32 || dtype == DType::i64) return static_cast<double>(engine_() % 2001) - 1000;
    return std::uniform_real_distribution<double>(-1, 1)(engine_);
  }
  std::mt19937 engine_;
};

// The same operand in another type, and its elements dense.
inline Operand converted(const Operand& x, DType dtype) {
  Operand y;
  y.view = x.view;
  y.view.dtype = dtype;
  std::vector<std::int64_t> sizes(x.view.sizes, x.view.sizes + x.view.rank);
  const std::vector<std::int64_t> strides = dense_strides(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) y.view.strides[d] = strides[d];
  y.bytes.resize(static_cast<std::size_t>(x.view.numel()) * dtype_size(dtype));
  y.view.data = y.bytes.data();
  for (std::int64_t i = 0; i < x.view.numel(); ++i) y.set(i, x.element(i));
  return y;
}

inline void call_kernel(Kernel kernel, const std::vector<View>& inputs, const std::vector<View>& outputs, KernelFault& fault,
                        const void* attrs = nullptr, std::vector<char>* workspace = nullptr) {
  KernelCall call;
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.n_inputs = static_cast<std::int32_t>(inputs.size());
  call.n_outputs = static_cast<std::int32_t>(outputs.size());
  call.attrs = attrs;
  call.fault = &fault;
  if (workspace) {
    call.workspace = workspace->data();
    call.workspace_bytes = workspace->size();
  }
  kernel(call);
}

}  // namespace tapedeck::kernels
