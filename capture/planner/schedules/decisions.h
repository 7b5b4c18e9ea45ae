// The decisions behind a schedule that a search found: read off its runs, because the search took many back on its way.
// Strategies that note each decision when they make it count its runs by count_runs().
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/changes.h>

#include <cstddef>
#include <vector>

namespace tapedeck {

// One decision for each stage that runs earlier nodes: the value that its own node needs most, the runs that make it, and the
// most bytes alive once this stage and those before it are as planned. Ascending in stage.
std::vector<Decision> decisions_of(const Facts& facts, const Changes& plan);

// Adds to the decision the clones and the microseconds of all runs that the journal adds, less those that it removes, from step
// `first` on.
void count_runs(const Schedule& schedule, std::size_t first, const Facts& facts, Decision* decision);

}  // namespace tapedeck
