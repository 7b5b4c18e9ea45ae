// A program, captured: its graph, where it starts, and what its eager run did in the steps after.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/capture/record/capture.h>

namespace tapedeck::agree {

struct Record {
  Tensors outputs, state;
};

struct Subject {
  std::unique_ptr<Program> program;
  Captured captured;
  Tensors start;                 // the graph's state before the first replayed step
  std::vector<Tensors> inputs;   // of the graph, by replayed step
  std::vector<Record> expected;  // likewise; state in the graph's order
};

// Step 0 runs eagerly (it may make what later steps only update), step 1 is captured, steps 2 and 3 are what replays must
// repeat.
inline constexpr int kFirstReplayed = 2, kReplayed = 2, kSteps = kFirstReplayed + kReplayed;

std::unique_ptr<Program> made(const Builder& build, std::uint64_t seed);
// Steps 0 ... kSteps-1 run eagerly, with the program's own state.
std::vector<Record> run_eager_twin(const Builder& build, std::uint64_t seed);
Subject captured_subject(const Builder& build, std::uint64_t seed);

// The forward pass of a program that trains: its graph, and what eager backward makes of it.
struct ForwardSubject {
  bool comparable = true;  // false: the graph does not hold what the program says of gradients (Program::own_gradients)
  std::unique_ptr<Program> program;
  Captured captured;
  Tensors start, inputs;  // state and inputs before it ran
  std::vector<std::size_t>
      wrt;           // which state values are parameters of the program, by its wrt(); those it does not read are left out
  Tensors expected;  // its results, then the gradients of `wrt`; zeros where eager backward left none
  // -0 becomes 0 in the gradients at the end of a list: zeros of a branch not taken have either sign.
  void add_zero(Tensors& results) const;
};
ForwardSubject forward_subject(const Builder& build, std::uint64_t seed);

// What differs first between what a way gave and what it should have given; empty if nothing does.
std::string difference(const Record& got, const Record& expected, int step);

}  // namespace tapedeck::agree
