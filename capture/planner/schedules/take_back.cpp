#include <tapedeck/capture/planner/schedules/take_back.h>

#include <algorithm>

namespace tapedeck {

namespace {

// Without the run, the copy made before is kept for its readers, and a wish of the user may forbid that.
bool may_be_kept_instead(const Step& run, const Facts& facts, const Schedule& schedule) {
  const auto makes = facts.makes(run.node);
  return std::all_of(makes.begin(), makes.end(), [&](ValueId v) {
    const Schedule::Presence at = schedule.presence(v, run.stage);
    const NodeId reader = schedule.waits(v, run.stage) && at.next != kNone ? at.next : run.stage;
    return at.previous == kNone || facts.may_keep(v, at.previous, reader);
  });
}

}  // namespace

bool may_take_back(const Step& run, const Facts& facts, const Schedule& schedule) {
  return schedule.has_run(run.stage, run.node) && schedule.runs_before(run.stage, run.node) &&
         may_be_kept_instead(run, facts, schedule);
}

std::vector<Step> repeated_runs(const Facts& facts, const Schedule& schedule) {
  std::vector<Step> runs;
  schedule.each_changed_stage([&](NodeId stage) {
    for (NodeId node : schedule.runs(stage))
      if (node != stage && may_take_back({stage, node, true}, facts, schedule)) runs.push_back({stage, node, true});
  });
  return runs;
}

void take_back(const Step& run, Schedule* schedule) {
  schedule->remove_with_operands(run.stage, run.node);
  schedule->refresh();
}

int take_back_within(std::int64_t live_bytes, const std::vector<Step>& runs, const Facts& facts, Schedule* schedule) {
  int taken = 0;
  for (const Step& run : runs) {
    if (!may_take_back(run, facts, *schedule)) continue;
    if (schedule->least_without(run.stage, run.node).bytes > live_bytes) continue;
    const std::size_t before = schedule->journal().size();
    take_back(run, schedule);
    if (schedule->peak().bytes <= live_bytes) {
      ++taken;
      continue;
    }
    schedule->undo_to(before);
    schedule->refresh();
  }
  return taken;
}

void take_back_all_within(std::int64_t live_bytes, const Facts& facts, Schedule* schedule) {
  int taken = 0;
  do {
    std::vector<Step> runs = repeated_runs(facts, *schedule);
    std::stable_sort(runs.begin(), runs.end(),
                     [&](const Step& a, const Step& b) { return facts.cost[a.node] > facts.cost[b.node]; });
    taken = take_back_within(live_bytes, runs, facts, schedule);
  } while (taken > 0);
}

}  // namespace tapedeck
