// The examples in the op blocks, parsed: "log(f32[3,5] in (0.1,4)) {attr=..}" becomes operand types, ranges and attributes.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The range is half open and applies to the operand's elements; without one, floats lie in [-2,2), integers in [0,4), booleans
// are any.
struct ExampleOperand {
  Type type;
  double low = -2, high = 2;
};

struct ParsedExample {
  const Op* op = nullptr;
  std::string text;
  std::vector<ExampleOperand> operands;
  std::vector<unsigned char> attributes;

  const void* attrs() const { return op->attrs ? attributes.data() : nullptr; }
  std::vector<Type> types() const;  // of the operands
};

// Throws ParseError, with the op's name as the file.
ParsedExample parse_example(const Op& op, std::string_view text);

}  // namespace TAPEDECK_API
