// A race for one part: exact searches of several strategies at several capacities, until the end is as low as can be.
//
// How hard a capacity is has little to do with how large it is: a tight one prunes best, and a loose one may be hopeless. So no
// search is trusted for long: a ladder of capacities between what is proven and what is reached is tried by all strategies in
// turn, each time for four times the steps of the last, with restarts whose tastes are perturbed.
#pragma once

#include <tapedeck/capture/planner/place/exact_search.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace tapedeck {

// All in units of the part.
class Race {
 public:
  // An end that is known to be possible. The part must be searchable and outlive it.
  Race(const PlacePart& part, std::int64_t end);

  std::int64_t end() const { return end_; }                              // of the best so far, or what is known to be possible
  void note_end(std::int64_t end) { end_ = std::min(end_, end); }        // is possible too, as others have found
  std::int64_t proven() const { return proven_; }                        // none ends lower
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // by member; empty until a lower end is found

  // No end below `low` is looked for; `goal` >= low is, before others (-1: no such).
  struct Aim {
    std::int64_t low = 0, goal = -1;
  };

  // One round of searches, at most `most_steps` (1 or more) together, on the threads of the TBB arena that it is called in.
  // What it finds depends on the rounds before and the arguments, not on the threads (unless it is stopped). Returns the steps
  // taken.
  std::int64_t round(const Aim& aim, std::int64_t most_steps, const SearchStop& stop);

 private:
  using Outcome = ExactSearch::Outcome;
  struct Rung {
    std::int64_t capacity;
    std::int32_t turns;                                  // jobs handed out
    std::vector<std::unique_ptr<ExactSearch>> searches;  // by strategy: they go on where they were
  };
  struct Job {
    Rung* rung;
    std::int32_t strategy;
    std::uint64_t seed;  // other than 0: a new search, dropped after its steps
    std::int64_t steps;  // in all
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
  std::deque<Rung> ladder_;  // capacities within proven_..end_ - 1
};

}  // namespace tapedeck
