// Search for a lower end of one part. Two methods take turns: a race of exact searches (exact_race.h) and, after some rounds of
// the race without a win, local search by ejection (ejection_search.h). The race proves bounds and solves tight parts. Ejection
// is better where no exact search finishes, as in loose parts of hundreds of buffers. The part does not show which method will
// win, so both continue, and the method that won last gets more of the work.
#pragma once

#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/exact_race.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck {

// The search in one part. Sizes are in bytes, by member of the part.
class PartSearch {
 public:
  // `known` is a valid placement of the part. The part must be searchable; the part and `p` must outlive the search.
  PartSearch(const PlaceProblem& p, const PlacePart& part, Attempt known);

  const Attempt& best() const { return best_; }
  std::int64_t proven() const { return race_.proven() * part_.unit; }  // no placement ends lower
  void take(Attempt found);  // takes a placement from another search, if it ends lower

  // Runs one round of the race, and the ejection search's share of the work. Neither looks for an end below `low`; `goal` is
  // tried before other ends (-1: no goal). `most_steps` (1 or more) limits both together, in steps of the race. The answer
  // depends on earlier turns and on the arguments, not on the threads of the calling TBB arena (unless `stop` stops it).
  // Returns the steps taken.
  std::int64_t turn(std::int64_t low, std::int64_t goal, std::int64_t most_steps, const SearchStop& stop);

 private:
  void begin_to_climb();
  std::int64_t share_of_climber(std::int64_t most_steps) const;
  Attempt of_race() const;

  const PlaceProblem& p_;
  const PlacePart& part_;
  Race race_;
  Attempt best_;
  PlaceProblem alone_;                // the part as a problem of its own, for the ejection search
  std::unique_ptr<Climber> climber_;  // null until the race has had its chance
  int vain_rounds_ = 0;               // rounds of the race without a win, counted while there is no climber
  std::int64_t last_round_ = 0;       // the steps of the last round of the race
  bool climber_won_ = false;          // true if the ejection search, not the race, had the last win
};

// The microseconds of one step of an exact search, as measured, in a part whose buffers have `stretches` intervals between
// holes.
double us_of_step(std::size_t stretches);
// The look-ups of the ejection search that take as long as one step of the exact search.
std::int64_t look_ups_of_step(std::size_t stretches);

}  // namespace tapedeck
