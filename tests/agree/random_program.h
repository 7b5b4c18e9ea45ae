// Programs nobody wrote: a list of lines as plain data, so that a program can be run in C++ again and again, printed, and made
// smaller.
//
// Variables are numbers, given once and kept: a line may be taken away, and those that read its results then read a stand-in, a
// tensor of the type filled with one number. So every list of lines is a program, and a failing one shrinks by dropping lines.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::agree {

struct Operand {
  int var = -1;
  Type type;  // what it had when the program was made
  double stand_in = 0.5;
};

enum class LineKind {
  op,       // results = op(operands) {attributes}
  dropout,  // draws from the step's random stream
  uniform,  // likewise; no operands
  detach,   // the same bytes, no history
  write,    // operands[0] op= operands[1], or op_(operands[0]); no result
  copy_in,  // operands[0] = operands[1]
  fill,     // operands[0] = number
  keep,     // a buffer takes (the start of) a value: state for the next step
  region,   // body, as a checkpoint region; the result is its outcome
  scan,     // carried = operands[0]; `number` times carried = tanh(outcome of the body); the result is the last
  loop,     // carried = operands[0]; while mean(|carried|) < number, at most 4 times, carried = 1.3 tanh(outcome of the body)
  branch,   // sum(operands[1]) > 0 ? tanh(outcome of the body, of carried = operands[0]) : operands[0] / 2
};

struct Line {
  LineKind kind = LineKind::op;
  const Op* op = nullptr;
  std::vector<unsigned char> attributes;
  std::vector<Operand> operands;
  double number = 0;      // probability of dropout, what fill writes
  int first_result = -1;  // variables of the results: this and those after
  std::vector<Type> results;
  std::vector<Line> body;
  int carried = -1;  // scan, loop, branch: the variable that the body sees
  Operand outcome;   // what the body ends with: all that is seen of it outside
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
  std::vector<Operand> losses;  // the loss is the sum of their means
  std::vector<Operand> outputs;
  Trainer trainer = Trainer::none;
  int variables = 0;
};

// Runs the lines on the variables; what a line makes is added to them.
void run_lines(const std::vector<Line>& lines, Tensors& variables);
void run_line(const Line& line, Tensors& variables);
bool is_control(const Line& line);  // a loop or a branch

Builder builder_of(const RandomProgram& program);
// As C++ of a kind, one line a line.
std::string text_of(const RandomProgram& program);
int line_count(const RandomProgram& program);  // those of bodies counted

// A program that runs eagerly without an error; a function of the seed alone.
RandomProgram random_program(std::uint64_t seed);

}  // namespace tapedeck::agree
