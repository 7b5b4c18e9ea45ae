// A schedule with repeated runs as its difference to the schedule without any: what a plan adds and leaves out.
//
//     stage 0: %a    stage 1: %b    stage 2: %c, behind a second run of %a         changes: {stage 2, node 0, added}
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <cstddef>
#include <vector>

namespace tapedeck {

// Ascending in stage and then in node: the runs beside each node's run in its own stage, and the nodes that do not run there.
using Changes = std::vector<Step>;

Changes changes_of(const Schedule& schedule);
// After the first `steps` steps of a journal.
Changes changes_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps);

// The steps that lead from one schedule to another.
std::vector<Step> steps_between(const Changes& from, const Changes& to);

// Makes the changes and brings live bytes up to date. REQUIRES: the schedule is the one that the steps begin at.
void make_steps(const std::vector<Step>& steps, Schedule* schedule);

// What the runs beside each node's first cost, added in the order of the schedule, so that equal schedules cost the same to the
// last bit. A node that runs in another stage only costs nothing.
double cost_of(const Changes& changes, const Facts& facts);

}  // namespace tapedeck
