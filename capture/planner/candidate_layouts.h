// Where the bytes of offers lie: placed when first asked for, searched when worth it. Few are kept: an offer's peak is a
// number, its layout is as large as the plan.
#pragma once

#include <tapedeck/capture/planner/candidates.h>
#include <tapedeck/capture/planner/effort.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace tapedeck {

struct PlacedOffer {
  std::size_t number = 0;  // the offer's
  std::int64_t peak = 0;   // external bytes counted
  ClonedGraph cloned;
  Layout layout;
};

class OfferLayouts {
 public:
  OfferLayouts(const PlanOptions& options, const Watch& watch)
      : options_(options), watch_(watch), effort_(options) {}  // both outlive it

  // Of greedy placement, or of search if it has been searched.
  std::int64_t peak(Offer& offer);

  // After a search for better offsets, once. Which offers are searched does not depend on the budget, but for the one that is
  // taken, and for that it only makes the peak lower; but not below the floor once that is known, which is one number whatever
  // the budget.
  std::int64_t searched_peak(Offer& offer);
  void hold_floor(std::int64_t floor) { floor_ = floor; }

  // PlanOptions::near, of the offer that is taken alone, so that it changes no choice. `budget`: -1 for none.
  void keep_addresses(Offer& offer, std::int64_t budget);

  // The layout behind the offer's peak, if it was kept; it is gone then.
  std::optional<PlacedOffer> take(const Offer& offer);

 private:
  PlacedOffer lay_out_offer(const Offer& offer, ClonedGraph cloned, const Placing& how) const;
  bool beats_the_floor(const PlacedOffer& placed) const { return floor_ >= 0 && placed.peak < floor_; }

  const PlanOptions& options_;
  const Watch& watch_;
  PlanEffort effort_;
  std::optional<PlacedOffer> lowest_;        // that of the lowest peak: it is often the one that is taken
  std::map<std::size_t, PlacedOffer> kept_;  // those searched, by number
  std::int64_t floor_ = -1;
};

}  // namespace tapedeck
