// A region with operands of any layout, and the results that the CPU kernels give for it, op by op.
#pragma once

#include <tapedeck/capture/codegen/layout.h>
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ops/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::test {

// The order of the elements of a tensor in memory.
enum class Placement { dense, columns /* the first dimension is the innermost */, padded /* gaps between rows */ };

// Memory of a tensor, filled with one byte where there is no element.
struct Stored {
  View view;  // of the tensor itself, not broadcast
  std::vector<unsigned char> bytes;

  Stored() = default;
  Stored(const Type& type, Placement placement) {
    view.dtype = type.dtype;
    view.rank = type.shape.rank;
    std::int64_t step = 1;
    for (int i = 0; i < view.rank; ++i) {
      const int d = placement == Placement::columns ? i : view.rank - 1 - i;
      view.sizes[d] = type.shape[d];
      view.strides[d] = step;
      step *= type.shape[d];
      if (placement == Placement::padded && i == 0) step += 16;
    }
    bytes.assign(static_cast<std::size_t>(step) * dtype_size(type.dtype) + 16, 0xAB);
    view.data = bytes.data();
  }
  Stored(const Stored&) = delete;
  Stored(Stored&&) = default;  // the memory of a vector stays where it is
  Stored& operator=(Stored&&) = default;

  template <class F>
  void for_elements(F&& f) {  // f(number in row-major order, address)
    for (std::int64_t i = 0; i < view.numel(); ++i) {
      std::int64_t rest = i, at = 0;
      for (int d = view.rank - 1; d >= 0; --d) {
        at += rest % view.sizes[d] * view.strides[d];
        rest /= view.sizes[d];
      }
      f(i, bytes.data() + static_cast<std::size_t>(at) * dtype_size(view.dtype));
    }
  }
  void set(const void* dense) {
    const std::size_t width = dtype_size(view.dtype);
    for_elements([&](std::int64_t i, unsigned char* to) {
      std::memcpy(to, static_cast<const unsigned char*>(dense) + static_cast<std::size_t>(i) * width, width);
    });
  }
};

// A view of the sizes of `shape`, with strides of 0 where the tensor is broadcast.
inline View broadcast_view(const View& v, const Shape& shape) {
  View wide = v;
  wide.rank = shape.rank;
  for (int d = 0; d < shape.rank; ++d) {
    const int from = d - (shape.rank - v.rank);
    wide.sizes[d] = shape[d];
    wide.strides[d] = from < 0 || v.sizes[from] == 1 ? 0 : v.strides[from];
  }
  return wide;
}

// Random elements. One in eight is a number that functions treat in a special way.
template <class T>
std::vector<T> random_elements(std::int64_t n, std::mt19937_64& random) {
  const double special[] = {0.0, -0.0, 1.0, -1.0, 1e-40, 100.0, -100.0, INFINITY};
  std::vector<T> values(static_cast<std::size_t>(n) + 1);
  for (T& v : values) {
    const double x = static_cast<double>(random() >> 11) * 0x1p-50 - 4;
    if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(random() % 8 == 0 ? special[random() % 8] : x);
    else
      v = static_cast<T>(static_cast<std::int64_t>(random() % 8 == 0 ? random() : random() % 200) - (sizeof(T) > 1 ? 100 : 0));
  }
  return values;
}

inline Tensor random_tensor(const Type& type, std::mt19937_64& random) {
  const std::int64_t n = type.numel();
  if (type.dtype == DType::f64) return from_bytes(type, random_elements<double>(n, random).data());
  if (type.dtype == DType::i32) return from_bytes(type, random_elements<std::int32_t>(n, random).data());
  if (type.dtype == DType::i64) return from_bytes(type, random_elements<std::int64_t>(n, random).data());
  if (type.dtype == DType::u8) return from_bytes(type, random_elements<unsigned char>(n, random).data());
  const Tensor real = from_bytes({DType::f32, type.shape}, random_elements<float>(n, random).data());
  if (type.dtype == DType::boolean) return greater(real, 0);
  return type.dtype == DType::f32 ? real : cast(real, type.dtype);
}

// A region, its operands, and the memory that a kernel reads and writes.
struct FusedCase {
  Graph region;
  std::string name;
  std::vector<Tensor> operands;
  std::vector<Stored> inputs, outputs;
  std::vector<View> input_views, output_views;
  codegen::FusedLayout layout;

  FusedCase(Graph g, std::string given_name, std::vector<Tensor> given, const std::vector<Placement>& places = {})
      : region(std::move(g)), name(std::move(given_name)), operands(std::move(given)) {
    const auto place = [&](std::size_t k) { return k < places.size() ? places[k] : Placement::dense; };
    const Shape& shape = region.values[region.outputs[0]].type.shape;
    for (const Tensor& t : operands) {
      inputs.emplace_back(t.type(), place(inputs.size()));
      if (t.numel() > 0) inputs.back().set(contiguous(t).data());
      input_views.push_back(broadcast_view(inputs.back().view, shape));
    }
    for (ValueId v : region.outputs) {
      outputs.emplace_back(region.values[v].type, place(inputs.size() + outputs.size()));
      output_views.push_back(outputs.back().view);
    }
    layout = codegen::fused_layout(input_views, output_views);
  }

  KernelCall call(KernelFault* fault) const {
    KernelCall c;
    c.inputs = input_views.data();
    c.n_inputs = static_cast<std::int32_t>(input_views.size());
    c.outputs = output_views.data();
    c.n_outputs = static_cast<std::int32_t>(output_views.size());
    c.fault = fault;
    return c;
  }

  void forget_results() {
    for (Stored& s : outputs) std::fill(s.bytes.begin(), s.bytes.end(), static_cast<unsigned char>(0xAB));
  }

  // Compares the memory of the results, gaps included, with what the CPU kernels give one by one. Two NaN are equal: their bits
  // depend on the order of the operands of an addition.
  void expect_results(const std::string& what) {
    const std::vector<Tensor> expected = interpret(region, operands).outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      Stored wanted(expected[k].type(), Placement::dense);
      wanted.view = outputs[k].view;
      wanted.bytes.assign(outputs[k].bytes.size(), 0xAB);
      if (expected[k].numel() > 0) wanted.set(contiguous(expected[k]).data());
      if (wanted.bytes == outputs[k].bytes) continue;
      outputs[k].for_elements([&](std::int64_t i, unsigned char* got) {
        const unsigned char* const right = wanted.bytes.data() + (got - outputs[k].bytes.data());
        const std::size_t width = dtype_size(outputs[k].view.dtype);
        if (std::memcmp(got, right, width) == 0 || (is_nan(got, k) && is_nan(right, k))) {
          std::memcpy(got, right, width);
          return;
        }
        ADD_FAILURE() << what << ": result " << k << ", element " << i << " differs\n" << to_text();
      });
      EXPECT_TRUE(wanted.bytes == outputs[k].bytes) << what << ": result " << k << " reaches beyond its elements\n"
                                                    << to_text();
    }
  }

 private:
  std::string to_text() const {
    std::string text;
    for (NodeId n = 0; n < region.node_count(); ++n) text += region.node_text(n) + "\n";
    return text;
  }
  bool is_nan(const unsigned char* at, std::size_t k) const {
    std::uint64_t bits = 0;
    const DType dtype = outputs[k].view.dtype;
    std::memcpy(&bits, at, dtype_size(dtype));
    if (dtype == DType::f32) return (bits & 0x7fffffffu) > 0x7f800000u;
    if (dtype == DType::f64) return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
    if (dtype == DType::f16) return (bits & 0x7fffu) > 0x7c00u;
    return dtype == DType::bf16 && (bits & 0x7fffu) > 0x7f80u;
  }
};

}  // namespace tapedeck::test
