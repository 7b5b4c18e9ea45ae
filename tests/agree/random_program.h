// Random programs. A program is a list of lines as plain data, so that tests can run it in C++ any number of times, print it
// and make it smaller.
//
// A variable is a number that never changes. If a line is removed, the lines that read its results read a stand-in instead:
// a tensor of the same type, filled with one number. So every list of lines is a program, and a failing program shrinks when
// lines are dropped.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::agree {

struct Operand {
  int var = -1;
  Type type;  // the type of the variable when the program was made
  double stand_in = 0.5;
};

enum class LineKind {
  op,       // results = op(operands) {attributes}
  dropout,  // draws from the random stream of the step
  uniform,  // draws as well; has no operands
  detach,   // the same bytes, without the history of gradients
  write,    // operands[0] op= operands[1], or op_(operands[0]); no result
  copy_in,  // operands[0] = operands[1]
  fill,     // operands[0] = number
  keep,     // a buffer stores the first elements of a value as state for the next step
  region,   // runs the body as a checkpoint region; the result is the outcome of the body
  scan,     // carried = operands[0]; `number` times: carried = tanh(outcome of the body); the result is the last carried value
  loop,     // carried = operands[0]; while mean(|carried|) < number, at most 4 times, carried = 1.3 tanh(outcome of the body)
  branch,   // sum(operands[1]) > 0 ? tanh(outcome of the body, of carried = operands[0]) : operands[0] / 2
};

struct Line {
  LineKind kind = LineKind::op;
  const Op* op = nullptr;
  std::vector<unsigned char> attributes;
  std::vector<Operand> operands;
  double number = 0;      // the probability of dropout, or the number that fill writes
  int first_result = -1;  // the number of the first result; further results have the next numbers
  std::vector<Type> results;
  std::vector<Line> body;
  int carried = -1;  // scan, loop, branch: the variable through which the body reads operands[0]
  Operand outcome;   // the value of the body that the line's result is made from
  std::int64_t checkpoint = 0;

  const void* attrs() const { return op && op->attrs ? attributes.data() : nullptr; }
};

enum class LeafKind { input, parameter, buffer, constant };

struct Leaf {
  LeafKind kind = LeafKind::input;
  Type type;
  Range range;
  int var = -1;
};

enum class Trainer { none, sgd, adamw };

struct RandomProgram {
  std::uint64_t seed = 0;
  std::vector<Leaf> leaves;
  std::vector<Line> lines;
  std::vector<Operand> losses;  // the loss is the sum of the means of these
  std::vector<Operand> outputs;
  Trainer trainer = Trainer::none;
  int variables = 0;
};

// Runs the lines on the variables and appends the results to them.
void run_lines(const std::vector<Line>& lines, Tensors& variables);
void run_line(const Line& line, Tensors& variables);
bool is_control(const Line& line);  // true for a loop or a branch

Builder builder_of(const RandomProgram& program);
// The program as text that resembles C++, one line of text for each line of the program.
std::string text_of(const RandomProgram& program);
int line_count(const RandomProgram& program);  // lines in bodies count

// A random program that runs eagerly without an error. It depends on the seed alone.
RandomProgram random_program(std::uint64_t seed);

}  // namespace tapedeck::agree
