// A difference between two nodes, as the parts of a CaptureMismatch.
#pragma once

#include <tapedeck/capture/analysis/same_program.h>
#include <tapedeck/capture/record/capture_mismatch.h>

#include <functional>
#include <string>

namespace tapedeck {

struct Mismatch {
  MismatchKind kind = MismatchKind::op;
  MismatchSide captured = {}, called = {};

  CaptureMismatch error(ErrorText text) const { return {kind, captured, called, std::move(text)}; }
  // "internal value mismatch: %a, then %x"
  std::string text() const;
};

// An operand of a node: input, internal_value, external_tensor or constant, and its name.
struct OperandName {
  MismatchKind kind = MismatchKind::internal_value;
  std::string name;
};

// Kind and names of a difference between nodes; the sites stay empty. `operand` says what a value is on one of the sides.
// REQUIRES: the difference is one of nodes.
Mismatch mismatch_of(const ProgramDifference& d, const std::function<OperandName(const ProgramSide&, ValueId)>& operand);

}  // namespace tapedeck
