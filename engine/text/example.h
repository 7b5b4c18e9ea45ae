// Parses the examples of op blocks: "log(f32[3,5] in (0.1,4)) {attr=..}" becomes operand types, ranges of elements, and
// attributes.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The elements of the operand lie in [low, high). If the example gives no range, floats lie in [-2,2), integers in [0,4), and
// booleans are false or true.
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

// Throws ParseError. The message has the op's name in place of a file name.
ParsedExample parse_example(const Op& op, std::string_view text);

}  // namespace TAPEDECK_API
