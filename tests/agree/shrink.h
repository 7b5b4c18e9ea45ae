// Makes a failing program smaller while it still fails. It drops lines, results, losses and leaves as long as the harness
// still finds a difference. The method is delta debugging over the list of lines (Zeller and Hildebrandt, "Simplifying and
// isolating failure-inducing input", 2002).
#pragma once

#include <tapedeck/tests/agree/harness.h>
#include <tapedeck/tests/agree/random_program.h>

namespace tapedeck::agree {

using Fails = std::function<bool(const RandomProgram&)>;

// REQUIRES: fails(program). The result fails, but it no longer fails if any single line is dropped. Cost: at most O(lines^2)
// runs.
RandomProgram shrunk(RandomProgram program, const Fails& fails);

// Checks the random program of a seed. The result is empty if all ways agree. Otherwise it names the difference, the shrunk
// program, the seed and the command that runs the program again.
std::string failure_of(std::uint64_t seed, const Harness& harness);

}  // namespace tapedeck::agree
