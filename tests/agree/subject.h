// A subject is a captured program: its graph, its state after the capture, and the records of its eager steps after the
// capture.
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
  Tensors start;                 // the state of the graph before the first replayed step
  std::vector<Tensors> inputs;   // the inputs of the graph, for each replayed step
  std::vector<Record> expected;  // the record of each replayed step; its state is in the order of the graph's state
};

// Step 0 runs eagerly, because it may make state that later steps only update. Step 1 is captured. Replays must repeat steps
// 2 and 3.
inline constexpr int kFirstReplayed = 2, kReplayed = 2, kSteps = kFirstReplayed + kReplayed;

std::unique_ptr<Program> made(const Builder& build, std::uint64_t seed);
// Runs steps 0 ... kSteps-1 eagerly, on the state of a program of its own.
std::vector<Record> run_eager_twin(const Builder& build, std::uint64_t seed);
Subject captured_subject(const Builder& build, std::uint64_t seed);

// The captured forward pass of a training program, and the gradients that eager backward computes for it.
struct ForwardSubject {
  bool comparable = true;  // false: the graph does not contain the program's own gradients (Program::own_gradients)
  std::unique_ptr<Program> program;
  Captured captured;
  Tensors start, inputs;  // state and inputs before the forward pass ran
  std::vector<std::size_t>
      // indices of the state values that the program names in wrt(); a parameter that the forward pass does not read is left
      // out
      wrt;
  Tensors expected;  // the results, then the gradients of `wrt`; zeros where eager backward left none
  // Turns -0 into 0 in the gradients at the end of a list, because the zeros of an untaken branch have either sign.
  void add_zero(Tensors& results) const;
};
ForwardSubject forward_subject(const Builder& build, std::uint64_t seed);

// Describes the first difference between a record and the expected record; empty if they are equal.
std::string difference(const Record& got, const Record& expected, int step);

}  // namespace tapedeck::agree
