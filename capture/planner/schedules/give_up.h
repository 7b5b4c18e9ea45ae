// What giving up a gap takes: the runs that make its value again at the end of the gap, and what these read.
//
//     gap of %h          %a --> %h ......................... reader of %h
//     recipe             %a --> %h            %a' --> %h' --> reader          %a is made again too, or kept until then
//
// An operand of a clone that is not at hand is kept longer where live bytes leave room for it; else it is made again too, and
// so on. One that is made again somewhat later anyway can be made here instead and kept until then (hoisted).
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/schedule.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// How operands that are not at hand may be had.
struct Ways {
  bool keep_longer, hoist;
};
inline constexpr Ways kWays[] = {{true, true}, {true, false}, {false, true}, {false, false}};

// Where live bytes are too many, and how many are too many.
struct Limit {
  NodeId stage = 0;
  std::int64_t bytes = 0;  // operands are kept longer only where fewer bytes than these stay alive
};

struct Recipe {
  NodeId stage = kNone;  // the clones run here
  std::vector<NodeId> clones;
  std::vector<Step> hoisted;           // clones of later stages that these make superfluous
  double cost = 0;                     // net
  std::int64_t kept_across_limit = 0;  // bytes of operands that are alive at Limit::stage only because they are kept longer

  void clear() {
    clones.clear();
    hoisted.clear();
    cost = 0;
    kept_across_limit = 0;
  }
};

// A gap that may be given up, for a queue that has the best first; of equal ones the value that was made first.
struct GapOption {
  double score = 0;
  Gap gap;
  bool exact = false;  // the score counts the whole recipe, not only the value's own node
  bool operator<(const GapOption& o) const {
    if (score != o.score) return score < o.score;
    return gap.value != o.gap.value ? gap.value > o.gap.value : gap.from > o.gap.from;
  }
};

class GiveUp {
 public:
  // Both outlive it.
  GiveUp(const Facts& facts, Schedule* schedule);

  // Whether the value of the gap may be made again at the end of the gap.
  bool may_give_up(const Gap& gap) const { return gap.value != kNone && roots_[gap.value].may_give_up; }

  // The cost of running the value's own node at the end of the gap: less than a recipe costs where operands must be made again.
  double cost_of_first(const Gap& gap) const;

  // Writes the recipe anew. False if the value cannot be made again at the end of the gap in this way.
  bool find(const Gap& gap, Ways ways, const Limit& limit, Recipe* recipe);

  // Makes the changes of the recipe in the schedule and brings live bytes up to date.
  void apply(const Gap& gap, const Recipe& recipe);

  std::int64_t costed() const { return costed_; }  // clones put into recipes so far: a clock, as Schedule::work()

 private:
  bool make_again(NodeId node, Recipe* recipe);
  bool have(ValueId root, Recipe* recipe);
  bool may_keep_longer(ValueId root, const Schedule::Presence& at, Recipe* recipe) const;
  bool has_room(NodeId first, NodeId last, std::int64_t bytes) const;

  // The numbers of a value that are asked for again and again lie side by side.
  struct Root {
    std::int64_t bytes;
    NodeId maker, overwritten;
    bool in_arena;
    bool may_give_up;  // it has bytes, and its maker may run again
  };

  const Facts& facts_;
  Schedule& schedule_;
  Ways ways_{};  // of the recipe being made
  Limit limit_;
  std::vector<char> planned_;  // by node: in the recipe being made
  std::vector<Root> roots_;    // by value
  std::int64_t costed_ = 0;
};

}  // namespace tapedeck
