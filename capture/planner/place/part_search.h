// Search for a lower end of one part: a race of exact searches (exact_race.h) and, once some rounds of it have won nothing, a
// climber (ejection_search.h) beside it. The race proves, and finds what is tight; a climber is better where no search comes to
// an end, as in loose parts of hundreds of buffers. Neither can be told from the part, so both go on: what has won last has
// more of the work.
#pragma once

#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/exact_race.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck {

// Bytes, by member of the part.
class PartSearch {
 public:
  // A right placement of the part to begin with. The part must be searchable, and outlive it as `p` must.
  PartSearch(const PlaceProblem& p, const PlacePart& part, Attempt known);

  const Attempt& best() const { return best_; }
  std::int64_t proven() const { return race_.proven() * part_.unit; }  // none ends lower
  void take(Attempt found);                                            // by others: if it ends lower, it is the best

  // A round of the race, and the climber's share. No end below `low` is looked for; `goal` is, before others (-1: no such).
  // `most_steps` (1 or more) together, of the race's. The answer depends on the turns before and the arguments, not on the
  // threads of the TBB arena that it is called in (unless it is stopped). Returns the steps taken.
  std::int64_t turn(std::int64_t low, std::int64_t goal, std::int64_t most_steps, const SearchStop& stop);

 private:
  void begin_to_climb();
  std::int64_t share_of_climber(std::int64_t most_steps) const;
  Attempt of_race() const;

  const PlaceProblem& p_;
  const PlacePart& part_;
  Race race_;
  Attempt best_;
  PlaceProblem alone_;                // the part, for the climber
  std::unique_ptr<Climber> climber_;  // once the race has had its chance
  int vain_rounds_ = 0;               // of the race, until there is a climber
  std::int64_t last_round_ = 0;       // steps of it
  bool climber_won_ = false;          // it, and not the race, was the last to win
};

// Of a step of an exact search, as measured: for so many stretches of buffers' lives in a part.
double us_of_step(std::size_t stretches);
// Look-ups of a climber that take as long as a step.
std::int64_t look_ups_of_step(std::size_t stretches);

}  // namespace tapedeck
