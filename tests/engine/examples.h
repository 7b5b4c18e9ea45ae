// The examples in the op blocks, ready to run: "log(f32[3,5] in (0.1,4)) {attr=..}" becomes an op, types, ranges and attributes.
//
// A range is half open and applies to the elements of its operand; without one, floats lie in [-2,2), integers in [0,4).
#pragma once

#include <tapedeck/engine/attr_parser.h>
#include <tapedeck/engine/dispatch.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/tape.h>

#include <tapedeck/tests/engine/half_values.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::testing {

struct Operand {
  Type type;
  double low = -2, high = 2;
};

struct Example {
  const Op* op = nullptr;
  std::string text;
  std::vector<Operand> operands;
  std::vector<unsigned char> attributes;

  const void* attrs() const { return op->attrs ? attributes.data() : nullptr; }
};

// "f32[3,5]" and the rest of the text behind it.
inline Type parse_type(const std::string& text, std::size_t* at) {
  const std::size_t open = text.find('[', *at), close = text.find(']', open);
  const std::string name = text.substr(*at, open - *at);
  Type type;
  for (int d = 0; d < kDTypeCount; ++d)
    if (name == dtype_name(static_cast<DType>(d))) type.dtype = static_cast<DType>(d);
  for (std::size_t i = open + 1; i < close;) {
    std::size_t used = 0;
    type.shape.sizes[type.shape.rank++] = std::stoll(text.substr(i), &used);
    i += used + 1;
  }
  *at = close + 1;
  return type;
}

inline Example parse_example(const Op& op, const std::string& text) {
  Example e;
  e.op = &op;
  e.text = text;
  std::size_t at = text.find('(') + 1;
  while (text[at] != ')') {
    while (text[at] == ' ' || text[at] == ',') ++at;
    Operand operand;
    operand.type = parse_type(text, &at);
    if (!is_floating(operand.type.dtype)) operand.low = 0, operand.high = operand.type.dtype == DType::boolean ? 2 : 4;
    if (text.compare(at, 5, " in (") == 0) {
      if (std::sscanf(text.c_str() + at, " in (%lf,%lf)", &operand.low, &operand.high) != 2) ADD_FAILURE() << text;
      at = text.find(')', at) + 1;
    }
    e.operands.push_back(operand);
  }
  const std::string attributes = text.substr(at + 1), file = op.name;
  Lexer lexer(attributes, file);
  ParsedAttrs parsed;
  parse_attributes(lexer, op, 0, {}, {}, &parsed);
  e.attributes = parsed.bytes;
  return e;
}

// Of every op, all of them.
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

// Rounding may not carry an element out of its half open range: then the number before it is taken.
inline Tensor drawn_half(const Type& type, const Operand& o, std::mt19937_64& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(type.numel()) + 1);
  for (std::uint16_t& v : values) {
    const double fraction = static_cast<double>(random() >> 11) * 0x1p-53;
    v = half_bits(type.dtype, o.low + (o.high - o.low) * fraction);
    if (o.high > o.low && o.high > 0 && half_value(type.dtype, v) >= o.high) --v;
  }
  return from_bytes(type, values.data());
}

// Operands with elements in their ranges; `real` is the dtype of the floating ones.
inline std::vector<Tensor> make_operands(const Example& e, DType real, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  for (const Operand& o : e.operands) {
    Type type = o.type;
    if (is_floating(type.dtype)) type.dtype = real;
    switch (type.dtype) {
      case DType::f32: tensors.push_back(drawn<float>(type, o, random, false)); break;
      case DType::f64: tensors.push_back(drawn<double>(type, o, random, false)); break;
      case DType::f16:
      case DType::bf16: tensors.push_back(drawn_half(type, o, random)); break;
      case DType::i32: tensors.push_back(drawn<std::int32_t>(type, o, random, true)); break;
      case DType::i64: tensors.push_back(drawn<std::int64_t>(type, o, random, true)); break;
      default: tensors.push_back(drawn<unsigned char>(type, o, random, true)); break;
    }
  }
  return tensors;
}

inline std::vector<Tensor> run(const Example& e, const std::vector<Tensor>& operands) {
  return apply_all(*e.op, operands, e.attrs(), {__FILE__, __LINE__});
}

}  // namespace tapedeck::testing
