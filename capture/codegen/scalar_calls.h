// An elementwise node as an expression of the functors of kernels/scalar*.h, which the CPU kernels call too:
//
//     %c: f32 = add(%a, %b)        Add{}(v0, v1)
//     %c: bf16 = tanh(%a)          to_bf16(Tanh{}(to_f32(v0)))
//     %c: f32 = clamp(%a) {min=0}  Clamp<float>{bits_float(0x00000000u), bits_float(0x7f800000u)}(v0)
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <span>
#include <string>

namespace tapedeck::codegen {

// The headers whose functors an expression calls, as bits. kernels/scalar.h and kernels/half.h are always there.
using Headers = unsigned;
inline constexpr Headers kFunctions = 1;    // scalar_functions.h
inline constexpr Headers kActivations = 2;  // scalar_activations.h, which includes scalar_functions.h
inline constexpr Headers kLosses = 4;       // loss_scalar.h

struct ScalarCall {
  std::string text;
  Headers headers = 0;
};

// The C++ type in which a generated kernel keeps an element: "float", "F16", "std::uint8_t", ...
const char* register_type(DType dtype);

// The expression that computes the result of the node from its operands. Throws DeviceError for an op without an expression,
// and for one that reports faults: the division of integers, and shifts.
ScalarCall scalar_call(const Graph& region, const Node& node, std::span<const std::string> operands);

}  // namespace tapedeck::codegen
