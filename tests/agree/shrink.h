// Makes a failing program smaller while it still fails: lines, results, losses and leaves are dropped as long as the harness
// finds something. Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002) over the
// list of lines.
#pragma once

#include <tapedeck/tests/agree/harness.h>
#include <tapedeck/tests/agree/random_program.h>

namespace tapedeck::agree {

using Fails = std::function<bool(const RandomProgram&)>;

// REQUIRES: fails(program). The result fails, and no single line of it can be taken away. Cost: O(lines^2) runs at most.
RandomProgram shrunk(RandomProgram program, const Fails& fails);

// Checks one random program; empty if it agrees. Otherwise what differs, the shrunk program, its seed, and how to run it again.
std::string failure_of(std::uint64_t seed, const Harness& harness);

}  // namespace tapedeck::agree
