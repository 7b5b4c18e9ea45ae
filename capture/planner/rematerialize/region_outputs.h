// The outputs of checkpoint regions, for budgets that the regions alone do not meet. A region's output that is kept across the
// peak for a later phase is made again instead, in the re-execution that reads it. So regions feed each other:
//
//     %a = f(%x) [region=0]   an output: region 1 reads it            kept until %b runs again
//     %b = g(%a) [region=1]
//     regions alone           ... %2 = g(%a) [of=%b]; %d = h(%2) [phase=backward]
//     outputs too             ... %1 = f(%x) [of=%a]; %2 = g(%1) [of=%b]; %d = h(%2) [phase=backward]
//
// Nodes outside of regions never run again, and no choice raises the peak.
#pragma once

#include <tapedeck/capture/planner/rematerialize/strategy.h>
#include <tapedeck/capture/planner/schedules/give_up.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tapedeck {

struct RegionMarks {
  std::vector<char> inside;  // by node: a node of a region, in forward
  std::vector<char> later;   // by node: it runs in a phase after forward
  std::vector<char> output;  // by value: a region makes it, and a forward node outside of the region reads it
};

class RegionOutputs {
 public:
  // All outlive it. `schedule` runs the regions again; `choices` have the point that stands for it.
  RegionOutputs(const Facts& facts, const RegionMarks& marks, const Watch& watch, Schedule* schedule, Choices* choices)
      : facts_(facts), marks_(marks), watch_(watch), schedule_(*schedule), give_up_(facts, schedule), choices_(*choices) {}

  // Gives up outputs as long as the peak falls, or the number of stages at the peak. Appends the decisions and their points,
  // which are for budgets only.
  void give_up();

 private:
  std::vector<Gap> gaps_at_peak() const;
  bool improve();
  std::optional<Recipe> recipe_for(const Gap& gap, const Ways& ways);
  bool try_recipe(const Gap& gap, const Recipe& recipe);
  void note_decision(const Gap& gap, std::size_t journal_before);

  const Facts& facts_;
  const RegionMarks& marks_;
  const Watch& watch_;
  Schedule& schedule_;
  GiveUp give_up_;
  Choices& choices_;
  LiveTree::Peak peak_;
};

}  // namespace tapedeck
