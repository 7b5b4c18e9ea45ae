#include <tapedeck/capture/planner/rematerialize/repeated_runs.h>

#include <tapedeck/capture/planner/schedules/decisions.h>

namespace tapedeck {

void RepeatedRuns::switch_to(const std::set<RepeatedRun>& runs) {
  for (NodeId n : moved_) schedule_.add_run(n, n);
  for (const RepeatedRun& run : runs_)
    if (!runs.contains(run)) schedule_.remove_run(run.stage, run.node);
  for (const RepeatedRun& run : runs)
    if (!runs_.contains(run)) schedule_.add_run(run.stage, run.node);
  drop_unread(runs);
}

void RepeatedRuns::add(const std::set<RepeatedRun>& runs) {
  for (const RepeatedRun& run : runs)
    if (!schedule_.has_run(run.stage, run.node)) schedule_.add_run(run.stage, run.node);
  drop_unread(runs);
}

void RepeatedRuns::take_back(std::size_t journal) {
  for (; followed_ > journal; --followed_)
    follow(schedule_.journal()[followed_ - 1], !schedule_.journal()[followed_ - 1].added);
  schedule_.undo_to(journal);
  schedule_.refresh();
}

// Readers before what they read: a run that goes may have been the only reader of another one.
void RepeatedRuns::drop_unread(const std::set<RepeatedRun>& runs) {
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) schedule_.remove_if_unread(run->stage, run->node);
  std::set<NodeId> repeated;
  for (const RepeatedRun& run : runs) repeated.insert(run.node);
  for (auto n = repeated.rbegin(); n != repeated.rend(); ++n) schedule_.remove_if_unread(*n, *n);
  schedule_.refresh();
  follow_journal();
}

void RepeatedRuns::follow_journal() {
  for (; followed_ < schedule_.journal().size(); ++followed_)
    follow(schedule_.journal()[followed_], schedule_.journal()[followed_].added);
}

void RepeatedRuns::follow(const Step& step, bool added) {
  if (step.stage == step.node)
    added ? void(moved_.erase(step.node)) : void(moved_.insert(step.node));
  else
    added ? void(runs_.insert({step.stage, step.node})) : void(runs_.erase({step.stage, step.node}));
}

Decision RepeatedRuns::decision_since(std::size_t journal) const {
  Decision d;
  count_runs(schedule_, journal, facts_, &d);
  d.live_peak_bytes = facts_.external_bytes + live_peak();
  return d;
}

ChoicePoint RepeatedRuns::point_after(std::size_t decisions) const {
  return {static_cast<std::int32_t>(decisions), schedule_.journal().size(), live_peak()};
}

}  // namespace tapedeck
