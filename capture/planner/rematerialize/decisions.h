// The decisions behind a schedule that a search found: read off its runs, because the search took many back on its way.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/changes.h>

#include <vector>

namespace tapedeck {

// One decision for each stage that runs earlier nodes: the value that its own node needs most, the runs that make it, and the
// most bytes alive once this stage and those before it are as planned. Ascending in stage.
std::vector<Decision> decisions_of(const Facts& facts, const Changes& plan);

}  // namespace tapedeck
