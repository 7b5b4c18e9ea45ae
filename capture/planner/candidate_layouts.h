// The layouts of candidates. A candidate is placed when its peak is first asked for, and its layout is searched when that is
// worth it. Few layouts are kept: a peak is a number, and a layout is as large as the plan.
#pragma once

#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/effort.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/rematerialize/cancel_and_progress.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace tapedeck {

struct Planning;

struct PlacedCandidate {
  std::size_t number = 0;  // the candidate's
  std::int64_t peak = 0;   // external bytes counted
  ClonedGraph cloned;
  Layout layout;
};

class CandidateLayouts {
 public:
  CandidateLayouts(const PlanOptions& options, const Watch& watch)
      : options_(options), watch_(watch), effort_(options) {}  // both outlive it

  // Of greedy placement, or of search if it has been searched.
  std::int64_t peak(Candidate& candidate);

  // After a search for better offsets, which happens once. Only the candidate that is taken is searched because of the budget,
  // and its search only makes its peak lower; but never lower than a known floor, which is one number whatever the budget.
  std::int64_t searched_peak(Candidate& candidate);
  void hold_floor(std::int64_t floor) { floor_ = floor; }

  // PlanOptions::near, of the candidate that is taken alone, so that no choice changes. `budget`: -1 for none.
  void keep_addresses(Candidate& candidate, std::int64_t budget);

  // The layout behind the candidate's peak, if it was kept; it is gone then.
  std::optional<PlacedCandidate> take(const Candidate& candidate);

 private:
  PlacedCandidate lay_out_candidate(const Candidate& candidate, ClonedGraph cloned, const Placing& how) const;
  void search_quickly(const Candidate& candidate, PlacedCandidate* placed);
  bool beats_the_floor(const PlacedCandidate& placed) const { return floor_ >= 0 && placed.peak < floor_; }

  const PlanOptions& options_;
  const Watch& watch_;
  PlanEffort effort_;
  std::optional<PlacedCandidate> lowest_;        // the layout with the lowest peak, which is often the one that is taken
  std::map<std::size_t, PlacedCandidate> kept_;  // the searched layouts, by number of the candidate
  std::int64_t floor_ = -1;
};

// The stage: every value and every workspace of the candidate that is taken gets its bytes, by a search, and near the addresses
// of PlanOptions::near.
PlacedCandidate place_candidate(Candidate& candidate, std::int64_t budget, Planning* planning);

}  // namespace tapedeck
