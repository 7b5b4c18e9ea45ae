// Makes the examples of the op blocks ready to run: it draws operands from their ranges.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/example.h>

#include <tapedeck/tests/engine/half_values.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::testing {

using Operand = ExampleOperand;
using Example = ParsedExample;
using tapedeck::parse_example;

// All examples of all ops.
inline std::vector<Example> all_examples() {
  std::vector<Example> all;
  for (const Op* op : all_ops())
    for (const char* text : op->examples) all.push_back(parse_example(*op, text));
  return all;
}

template <class T>
Tensor drawn(const Type& type, const Operand& o, std::mt19937_64& random, bool integer) {
  std::vector<T> values(static_cast<std::size_t>(type.numel()) + 1);
  for (T& v : values) {
    const double fraction = static_cast<double>(random() >> 11) * 0x1p-53;
    const double x = o.low + (o.high - o.low) * fraction;
    v = static_cast<T>(integer ? std::floor(x) : x);
  }
  return from_bytes(type, values.data());
}

// Rounding may move an element out of its half-open range. Then the next smaller number is taken.
inline Tensor drawn_half(const Type& type, const Operand& o, std::mt19937_64& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(type.numel()) + 1);
  for (std::uint16_t& v : values) {
    const double fraction = static_cast<double>(random() >> 11) * 0x1p-53;
    v = half_bits(type.dtype, o.low + (o.high - o.low) * fraction);
    if (o.high > o.low && o.high > 0 && half_value(type.dtype, v) >= o.high) --v;
  }
  return from_bytes(type, values.data());
}

// Returns `real` if the op's floating operands may have this dtype, otherwise f32.
inline DType usable_real(const Example& e, DType real) {
  if (real == DType::f32) return real;
  std::vector<Type> types, outputs;
  for (const Operand& o : e.operands) types.push_back({is_floating(o.type.dtype) ? real : o.type.dtype, o.type.shape});
  try {
    infer_types(*e.op, types, e.attrs(), outputs);
    return real;
  } catch (const TypeError&) {
    return DType::f32;
  }
}

// A tensor of this type, with elements in the range of the operand.
inline Tensor drawn_operand(const Type& type, const Operand& o, std::mt19937_64& random) {
  switch (type.dtype) {
    case DType::f32:
      return drawn<float>(type, o, random, false);
    case DType::f64:
      return drawn<double>(type, o, random, false);
    case DType::f16:
    case DType::bf16:
      return drawn_half(type, o, random);
    case DType::i32:
      return drawn<std::int32_t>(type, o, random, true);
    case DType::i64:
      return drawn<std::int64_t>(type, o, random, true);
    default:
      return drawn<unsigned char>(type, o, random, true);
  }
}

// Operands with elements in their ranges. Floating operands have dtype `real`.
inline std::vector<Tensor> make_operands(const Example& e, DType real, std::uint64_t seed) {
  real = usable_real(e, real);
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  for (const Operand& o : e.operands)
    tensors.push_back(drawn_operand({is_floating(o.type.dtype) ? real : o.type.dtype, o.type.shape}, o, random));
  return tensors;
}

inline std::vector<Tensor> run(const Example& e, const std::vector<Tensor>& operands) {
  return apply_all(*e.op, operands, e.attrs(), {__FILE__, __LINE__});
}

}  // namespace tapedeck::testing
