// The layouts of candidates. A candidate is placed when its peak is first asked for, and its layout is searched when that is
// worth it. Few layouts are kept: a peak is a number, and a layout is as large as the plan.
#pragma once

#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/layout/layout.h>
#include <tapedeck/capture/planner/requests/effort.h>
#include <tapedeck/capture/planner/solvers/cancel_and_progress.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace tapedeck {

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

  // After a search for better offsets, which happens once. Before a budget is known, this is how the peak of keep-all and the
  // floor are found.
  std::int64_t searched_peak(Candidate& candidate);

  // After a part of that search, which shows how far the candidate leads. A search that follows goes on from there.
  std::int64_t tried_peak(Candidate& candidate);

  // From now on, no search makes a peak lower than this floor, which is one number whatever the budget.
  void hold_floor(std::int64_t floor) { floor_ = floor; }

  // The peak after a search. It changes neither peak() nor a layout.
  std::int64_t placed_peak(const Candidate& candidate);

  // The layout of the candidate that a budget takes: that of peak() or, if `searched`, that of placed_peak(). The addresses of
  // PlanOptions::near are kept where they cost little. It changes no peak, so that no later answer depends on the budgets that
  // were asked for before. `budget`: -1 for none.
  PlacedCandidate place(const Candidate& candidate, std::int64_t budget, bool searched);

 private:
  struct Recent {
    bool searched = false;
    PlacedCandidate placed;
  };

  PlacedCandidate greedy(const Candidate& candidate) const;
  PlacedCandidate first(const Candidate& candidate) const;
  PlacedCandidate search(const Candidate& candidate, std::int64_t parts) const;
  const PlacedCandidate& laid_out(const Candidate& candidate, bool searched);
  void keep_addresses(const Candidate& candidate, std::int64_t budget, PlacedCandidate* placed) const;
  void lay_out_again(const Candidate& candidate, const Placing& how, PlacedCandidate* placed) const;
  bool beats_the_floor(std::int64_t peak) const { return floor_ >= 0 && peak < floor_; }

  const PlanOptions& options_;
  const Watch& watch_;
  PlanEffort effort_;
  std::optional<PlacedCandidate> lowest_;  // the greedy layout with the lowest peak, which is often the one that is taken
  std::map<std::size_t, PlacedCandidate> tried_;      // by number of the candidate: the layouts after a part of a search
  std::map<std::size_t, PlacedCandidate> kept_;       // the searched layouts, by number of the candidate
  std::deque<Recent> recent_;                         // of the last candidates that budgets took
  std::map<std::size_t, std::int64_t> placed_peaks_;  // by number of the candidate
  std::int64_t floor_ = -1;
};

}  // namespace tapedeck
