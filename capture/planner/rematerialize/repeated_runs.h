// A schedule whose repeated runs are chosen as sets. A strategy that thinks in sets of runs (all values of a segment, all
// values on one side of a cut) names the runs that it wants; the steps from one set to the next are found here:
//
//     own runs only  --add-->  {exp in the stage of %d}  --switch_to-->  {exp in the stage of %g, tanh in the stage of %g}
//
// After each change no run is left whose results nobody reads. A repeated run without a reader goes. A node's own run goes too
// if all of its readers come after the node has run again: the node was moved, which costs no time.
#pragma once

#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tapedeck {

// One node in one stage that is not its own.
struct RepeatedRun {
  NodeId stage = kNone;
  NodeId node = kNone;
  auto operator<=>(const RepeatedRun&) const = default;
};

class RepeatedRuns {
 public:
  explicit RepeatedRuns(const Facts& facts) : facts_(facts), schedule_(facts) {}

  // Makes `runs` the only runs beside the nodes' own. REQUIRES: node < stage; the node makes a value in the arena; all operands
  // that lie elsewhere are still there at the stage.
  void switch_to(const std::set<RepeatedRun>& runs);
  // Adds runs to the runs that there are. REQUIRES: as above. Cost: only the stages that it touches.
  void add(const std::set<RepeatedRun>& runs);
  // Takes back all steps after the first `journal` ones.
  void take_back(std::size_t journal);

  bool has_run(NodeId stage, NodeId node) const { return schedule_.has_run(stage, node); }
  std::int64_t live_peak() const { return schedule_.peak().bytes; }
  std::int64_t work() const { return schedule_.work(); }
  std::int64_t clone_count() const { return schedule_.clone_count(); }
  const std::set<RepeatedRun>& runs() const { return runs_; }  // beside the nodes' own
  const std::vector<Step>& journal() const { return schedule_.journal(); }

  // A decision with the clones and microseconds that the steps after the first `journal` ones add, and the live peak now.
  Decision decision_since(std::size_t journal) const;
  ChoicePoint point_after(std::size_t decisions) const;

 private:
  void drop_unread(const std::set<RepeatedRun>& runs);
  void follow_journal();
  void follow(const Step& step, bool added);

  const Facts& facts_;
  Schedule schedule_;
  std::set<RepeatedRun> runs_;  // beside the nodes' own
  std::set<NodeId> moved_;      // nodes whose own run is gone
  std::size_t followed_ = 0;    // steps of the journal that runs_ and moved_ know
};

}  // namespace tapedeck
