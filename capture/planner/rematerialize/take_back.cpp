#include <tapedeck/capture/planner/rematerialize/take_back.h>

#include <algorithm>

namespace tapedeck {

std::vector<Step> repeated_runs(const Schedule& schedule) {
  std::vector<Step> runs;
  for (NodeId stage = 0; stage < schedule.stage_count(); ++stage)
    for (NodeId node : schedule.runs(stage))
      if (node != stage && schedule.runs_before(stage, node)) runs.push_back({stage, node, true});
  return runs;
}

void take_back(const Step& run, Schedule* schedule) {
  schedule->remove_with_operands(run.stage, run.node);
  schedule->refresh();
}

int take_back_within(std::int64_t live_bytes, const std::vector<Step>& runs, Schedule* schedule) {
  int taken = 0;
  for (const Step& run : runs) {
    if (!schedule->has_run(run.stage, run.node) || !schedule->runs_before(run.stage, run.node)) continue;
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
    std::vector<Step> runs = repeated_runs(*schedule);
    std::stable_sort(runs.begin(), runs.end(),
                     [&](const Step& a, const Step& b) { return facts.cost[a.node] > facts.cost[b.node]; });
    taken = take_back_within(live_bytes, runs, schedule);
  } while (taken > 0);
}

}  // namespace tapedeck
