// Local search for cheap plans of recomputation under a bound of live bytes: ruin and recreate (Schrimpf, Schneider,
// Stamm-Wilbrandt and Dueck, "Record Breaking Optimization Results Using the Ruin and Recreate Principle", 2000).
//
//     a plan within the bound
//       ruin       some repeated runs are taken back although live bytes then exceed the bound, or a kept value is given up
//       recreate   other values are given up until live bytes are within the bound again
//       clean up   all runs go that are not needed any more, the dearest first
//     the outcome replaces the plan if it costs no more
//
// Every plan on the way that none beats goes into an archive. The same seed gives the same plans on every machine.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/plan_archive.h>
#include <tapedeck/capture/planner/schedules/changes.h>
#include <tapedeck/capture/planner/schedules/give_up.h>
#include <tapedeck/capture/planner/schedules/schedule.h>
#include <tapedeck/capture/planner/solvers/random_numbers.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

class PlanImprover {
 public:
  // `facts` and `archive` outlive it.
  PlanImprover(const Facts& facts, std::uint64_t seed, PlanArchive* archive);

  void go_to(const Changes& plan);
  std::int64_t live_peak() const { return schedule_.peak().bytes; }

  // Gives values up until at most `live_bytes` are alive. `noise` blurs which value comes first; 0: none. False, with the
  // schedule as far as it came, if no value is left that helps.
  bool lower_to(std::int64_t live_bytes, double noise);

  // Takes back whatever the bound leaves room for, and offers the outcome to the archive. Returns what the outcome costs.
  double clean_up(std::int64_t live_bytes);

  // Ruins and recreates the plan at hand until `work` is spent, or nothing has been won for long, or the plan costs no more
  // than `least_cost`, which no plan within the bound undercuts. REQUIRES: live_peak() <= live_bytes.
  void improve(std::int64_t live_bytes, std::int64_t work, double least_cost);

  // Looks for a plan with fewer live bytes than the plan at hand, whatever it costs, until `work` is spent.
  void lower_peak(std::int64_t work);

  std::int64_t work() const { return schedule_.work() + give_up_.costed() + looked_at_; }

 private:
  void measure_excess(std::int64_t live_bytes);
  double excess_over(const Gap& gap, NodeId stage) const;
  std::vector<GapOption> options_at(NodeId stage, double noise);
  bool give_up_one(std::int64_t live_bytes, double noise);
  bool try_options(const std::vector<GapOption>& options, Ways ways, const Limit& limit);
  bool try_recipe(const Gap& gap, const Recipe& recipe, const Limit& limit);

  void ruin(std::int64_t live_bytes);
  void take_back_some();
  void give_up_some(std::int64_t live_bytes);
  double recomputed_cost() const { return cost_of(changes_of(schedule_), facts_); }
  double offer();

  const Facts& facts_;
  PlanArchive& archive_;
  Schedule schedule_;
  GiveUp give_up_;
  RandomNumbers random_;
  std::vector<char> forbidden_;         // by value: not given up again in this round, because its run was just taken back
  std::vector<ValueId> forbidden_now_;  // the values that are
  std::vector<std::int64_t> live_;      // by stage
  std::vector<std::int64_t> stages_over_, bytes_over_;                // by stage: summed over the stages before it
  std::vector<std::int64_t> stages_over_before_, bytes_over_before_;  // the same before the recipe that is being tried
  std::int64_t looked_at_ = 0;                                        // stages and gaps
};

}  // namespace tapedeck
