// A race of exact searches for one part: several strategies at several capacities, until the end is proven to be the lowest.
//
// The size of a capacity says little about how hard the search is: a tight capacity prunes best, and a loose one may take for
// ever. So no search runs for long at first. The race keeps a ladder of capacities between the proven bound and the best end.
// All strategies try each rung in turn, each time with four times the steps of the last time, and also restart with randomly
// changed tastes.
#pragma once

#include <tapedeck/capture/planner/place/exact_search.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace tapedeck {

// One race. All sizes are in units of the part.
class Race {
 public:
  // `end` is an end that is known to be possible. The part must be searchable, and must outlive the race.
  Race(const PlacePart& part, std::int64_t end);

  std::int64_t end() const { return end_; }  // the lowest end found, or the lowest end known to be possible
  void note_end(std::int64_t end) { end_ = std::min(end_, end); }  // tells the race that another search has reached this end
  std::int64_t proven() const { return proven_; }                  // no placement ends lower
  const std::vector<std::int64_t>& offsets() const {
    return offsets_;
  }  // by member of the part; empty until the race finds a lower end

  // The race looks for no end below `low`. It tries `goal` (>= low) before other ends; -1: no goal.
  struct Aim {
    std::int64_t low = 0, goal = -1;
  };

  // Runs one round of searches on the threads of the calling TBB arena: at most `most_steps` (1 or more) steps in all. The
  // result depends on earlier rounds and on the arguments, not on the number of threads (unless `stop` stops the round).
  // Returns the steps taken.
  std::int64_t round(const Aim& aim, std::int64_t most_steps, const SearchStop& stop);

 private:
  using Outcome = ExactSearch::Outcome;
  struct Rung {
    std::int64_t capacity;
    std::int32_t turns;                                  // the number of jobs that this rung has had
    std::vector<std::unique_ptr<ExactSearch>> searches;  // by strategy: searches that continue where they stopped
  };
  struct Job {
    Rung* rung;
    std::int32_t strategy;
    std::uint64_t seed;  // 0: continue the kept search; otherwise a new search, dropped after its steps
    std::int64_t steps;  // the limit for all steps of this search
    Outcome outcome = Outcome::unfinished;
    std::int64_t taken = 0;
    std::vector<std::int64_t> offsets = {};
  };

  void build_ladder(const Aim& aim);
  void add_rung(std::int64_t capacity);
  Job next_job(Rung* rung) const;
  std::vector<Job> next_jobs(std::int64_t most_steps);
  void run(Job* job, const SearchStop& stop) const;
  void take(const Job& job);

  const PlacePart& part_;
  std::vector<std::int64_t> offsets_;
  std::int64_t end_, proven_;
  std::int32_t strategies_;
  std::deque<Rung> ladder_;  // the rungs, with capacities within proven_..end_ - 1
};

}  // namespace tapedeck
