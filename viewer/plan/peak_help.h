// The changes that would lower the peak of a plan: the explanation that `tapedeck plan --explain peak` prints, ordered by how
// much it helps.
#pragma once

#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/viewer/plan/plan_model.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The explanation of one plan, or why there is none.
struct PeakHelp {
  std::uint64_t model = 0;  // the serial number of the plan
  PeakExplanation explanation;
  std::string error;
};

// The explanation of the library, with the costs that the plan was made with: the numbers are those of the tool. It takes long
// for large plans, so a thread in the background works it out.
PeakExplanation explained_peak(const PlanModel& model);

// Whether a change of this value alone would lower the peak: it is made again, or another order frees it before.
bool lowers_the_peak(const PeakExplanation& explanation, const PeakTenant& tenant);

// The values of the explanation with an advice: those that would lower the peak first, the lowest peak before the others and of
// equal peaks the least cost; then the rest, the largest first. Indices into explanation.alive.
std::vector<std::size_t> by_help(const PeakExplanation& explanation);

}  // namespace tapedeck::viewer
