// Taking repeated runs back: a value that was made again is kept instead, as far as live bytes allow.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// Whether the run is there, the node runs in an earlier stage, too, and no wish of the user forbids to keep what that made.
bool may_take_back(const Step& run, const Facts& facts, const Schedule& schedule);

// The runs that may be taken back, ascending in stage and node.
std::vector<Step> repeated_runs(const Facts& facts, const Schedule& schedule);

// Takes the run back, and the runs that made its operands alone. Its readers then read the copy made before.
// REQUIRES: may_take_back().
void take_back(const Step& run, Schedule* schedule);

// Takes back every run, one after the other in the order of the list, with which at most `live_bytes` stay alive. Runs that
// have gone by then are passed over. Returns how many were taken back.
int take_back_within(std::int64_t live_bytes, const std::vector<Step>& runs, const Facts& facts, Schedule* schedule);

// Takes runs back, the dearest first, until none is left that can go within `live_bytes`.
void take_back_all_within(std::int64_t live_bytes, const Facts& facts, Schedule* schedule);

}  // namespace tapedeck
