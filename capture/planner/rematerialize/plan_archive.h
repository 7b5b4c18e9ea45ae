// The plans of recomputation that no other known plan beats: each has a lower peak or a lower cost than any other.
//
//     cost  |  x                       x  in the archive
//           |      x     o             o  beaten: the x on its left costs no more and has the lower peak
//           |          x
//           +----------------- peak
#pragma once

#include <tapedeck/capture/planner/schedules/changes.h>

#include <cstdint>
#include <map>

namespace tapedeck {

struct ArchivedPlan {
  double cost = 0;  // microseconds beside those of keeping all
  Changes changes;
};

class PlanArchive {
 public:
  // Costs that differ by less than `tolerance` count as equal: sums in another order differ in their last bits.
  explicit PlanArchive(double tolerance) : tolerance_(tolerance) {}

  bool is_beaten(std::int64_t live_peak, double cost) const;
  // Takes the plan in unless it is beaten, and drops the plans that it beats. Returns whether it was taken in.
  bool offer(std::int64_t live_peak, ArchivedPlan plan);
  void offer_all(const PlanArchive& other);

  // By live peak in arena bytes, ascending; costs descend.
  const std::map<std::int64_t, ArchivedPlan>& plans() const { return plans_; }
  // Of the plans with at most these live bytes the cheapest; null if there is none.
  const ArchivedPlan* cheapest_within(std::int64_t live_bytes) const;
  std::int64_t peak_of_cheapest_within(std::int64_t live_bytes) const;  // -1 if there is none

 private:
  double tolerance_ = 0;
  std::map<std::int64_t, ArchivedPlan> plans_;
};

}  // namespace tapedeck
