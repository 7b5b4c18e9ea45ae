// Short words of tests that state the elements of tensors: tensors that are made from numbers, and numbers that are read from
// tensors.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/create.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/tests/engine/messages.h>

#include <functional>
#include <limits>
#include <numeric>

namespace tapedeck::testing {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::vector<float> floats_of(const Tensor& t) { return t.to_vector<float>(); }

inline Tensor f32_of(const std::vector<float>& values, const Shape& shape) { return from_vector(values, shape); }

// 0, 1, 2, ... in the order of the elements.
inline Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()) + 1);
  std::iota(values.begin(), values.end(), 0.0f);
  return from_bytes({DType::f32, shape}, values.data());
}

// The gradient of sum(f(x)) for x, at these values of x.
inline std::vector<float> slope(const std::function<Tensor(const Tensor&)>& f, const std::vector<float>& at) {
  Tensor x = from_vector(at, {static_cast<std::int64_t>(at.size())});
  x.requires_grad(true);
  backward(sum(f(x)));
  return floats_of(x.grad());
}

inline void expect_near(const Tensor& got, const std::vector<double>& wanted, double tolerance = 1e-6) {
  const std::vector<float> values = floats_of(got);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(static_cast<double>(values[i]), wanted[i], tolerance) << "element " << i;
}

// An operand whose call is at "a.cpp:1", and the message with which f refuses such operands.
inline Arg here(const Tensor& t) { return Arg(t, "a.cpp", 1); }
template <class F>
std::string refusal(F&& f) {
  return without_folders(message_of<TypeError>(f));
}

}  // namespace tapedeck::testing
