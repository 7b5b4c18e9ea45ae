// Calls that the author functions refuse, each in a row with its message, and operands whose types alone matter.
#pragma once

#include <tapedeck/engine/ops/create.h>
#include <tapedeck/tests/engine/messages.h>

#include <span>

namespace tapedeck::testing {

struct Mistake {
  int line;
  const char* message;
  void (*program)();
};

// Every program throws its message, and names the file of the test and the line of its MISTAKE.
inline void expect_mistakes(std::span<const Mistake> mistakes, const std::string& file) {
  for (const Mistake& m : mistakes)
    EXPECT_EQ(without_folders(message_of<TypeError>(m.program)),
              m.message + (" (" + file + ":" + std::to_string(m.line) + ")"));
}

inline Tensor f32(const Shape& shape) { return zeros(shape); }
inline Tensor f64(const Shape& shape) { return zeros(shape, DType::f64); }
inline Tensor i32(const Shape& shape) { return zeros(shape, DType::i32); }

}  // namespace tapedeck::testing

// __builtin_LINE, as in the ops: in a call of several lines, compilers differ in __LINE__.
#define MISTAKE(message, ...)                      \
  {                                                \
    __builtin_LINE(), message, [] { __VA_ARGS__; } \
  }
