#include <tapedeck/capture/planner/schedules/changes.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace tapedeck {

namespace {

bool stands_before(const Step& a, const Step& b) { return std::tie(a.stage, a.node) < std::tie(b.stage, b.node); }

}  // namespace

Changes changes_of(const Schedule& schedule) {
  Changes changes;
  schedule.each_changed_stage([&](NodeId stage) {
    bool runs_itself = false;
    for (NodeId node : schedule.runs(stage)) {
      if (node == stage)
        runs_itself = true;
      else
        changes.push_back({stage, node, true});
    }
    if (!runs_itself) changes.push_back({stage, stage, false});  // no node runs before its own stage, so it stands last
  });
  return changes;
}

Changes changes_after(const Facts& facts, const std::vector<Step>& journal, std::size_t steps) {
  Schedule schedule(facts);
  make_steps({journal.begin(), journal.begin() + static_cast<std::ptrdiff_t>(steps)}, &schedule);
  return changes_of(schedule);
}

std::vector<Step> steps_between(const Changes& from, const Changes& to) {
  std::vector<Step> steps;
  std::set_difference(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(steps), stands_before);
  const auto first_undone = static_cast<std::ptrdiff_t>(steps.size());
  std::set_difference(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(steps), stands_before);
  for (auto step = steps.begin() + first_undone; step != steps.end(); ++step) step->added = !step->added;
  return steps;
}

void make_steps(const std::vector<Step>& steps, Schedule* schedule) {
  for (const Step& step : steps) {
    if (step.added)
      schedule->add_run(step.stage, step.node);
    else
      schedule->remove_run(step.stage, step.node);
  }
  schedule->refresh();
}

double cost_of(const Changes& changes, const Facts& facts) {
  std::vector<NodeId> moved;  // whose first run is still to come
  double us = 0;
  for (const Step& step : changes) {
    if (!step.added) {
      moved.push_back(step.node);
      continue;
    }
    const auto waiting = std::find(moved.begin(), moved.end(), step.node);
    if (waiting == moved.end())
      us += facts.cost[step.node];
    else
      moved.erase(waiting);
  }
  return us;
}

}  // namespace tapedeck
