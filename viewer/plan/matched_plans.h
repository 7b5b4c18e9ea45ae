// The same values in two plans, and what differs between them. The plans may be of one captured step or of two: values of two
// steps are matched by name, then by structure, as `tapedeck compare` matches them. Values that the planner added are matched
// by what they are made from.
//
//     left                     right
//     %h  kept                 %h  recomputed, 2 runs      the same value, planned otherwise
//     %a = relu(%x)            %b = relu(%x)               the same value under another name
//     %old                     -                           only in the left plan
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/words/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// One of two plans that are compared.
struct ComparedPlan {
  std::string title;  // "digits.tape · train_step"
  std::shared_ptr<const PlanModel> model;
  std::shared_ptr<const Graph> captured;  // that the plan was made for
};

// What became of a value from the left plan to the right one. A value has the first of these that holds.
enum class PlanChange : std::uint8_t {
  only_left,
  only_right,
  type,    // other sizes, or another dtype
  choice,  // kept in one plan and recomputed in the other, or recomputed another number of times
  moved,   // at another address
  none,
};
const char* change_name(PlanChange change);  // "only left" "only right" "type" "choice" "moved" "same"

struct MatchedValue {
  std::array<std::int32_t, 2> entry{kNone, kNone};  // of the value logs of both plans; kNone: it is not there
  PlanChange change = PlanChange::none;
  bool renamed = false;  // matched by structure alone
};

// Immutable: any thread may read it.
class MatchedPlans {
 public:
  // O(values log values).
  MatchedPlans(ComparedPlan left, ComparedPlan right);

  const ComparedPlan& side(int side) const { return sides_[static_cast<std::size_t>(side)]; }
  // The values that changed come first, in the order of PlanChange. Values of one kind of change stand in the order of the left
  // plan, and after them stand the values that only the right plan has.
  const std::vector<MatchedValue>& values() const { return values_; }
  // The match of a value of one side: the first of its runs on the other side; kNone if there is none.
  ValueId other(int side, ValueId v) const;
  std::int64_t count(PlanChange change) const { return counts_[static_cast<std::size_t>(change)]; }
  // Whether both plans do the same: equal values in equal places at equal cost, made and read by the same nodes.
  bool equal() const;

 private:
  class ByStructure;
  void match();
  PlanChange change_of(const ValueEntry& left, const ValueEntry& right) const;

  std::array<ComparedPlan, 2> sides_;
  std::vector<MatchedValue> values_;
  std::array<std::vector<std::int32_t>, 2> match_of_;  // by entry of a side: the entry of the other side
  std::array<std::int64_t, 6> counts_{};
};

// "right against left: peak -12.3 MiB (-20.0 %), cost +3.1 %, 37 more nodes": what a person asks first. Says so if the
// plans are equal.
std::string difference_summary(const MatchedPlans& plans, const ByteUnit& unit);

}  // namespace tapedeck::viewer
