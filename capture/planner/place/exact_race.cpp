// The race of exact searches; see exact_race.h. The rungs of the ladder are capacities between the proven bound and the best
// end, and each rung hands out jobs to strategies in turn:
//
//   wave 1    every strategy, few steps
//   wave 2    every strategy continues, with four times the steps; then every strategy restarts with another seed
//   wave 3    the same, with four times the steps of wave 2; and so on
#include <tapedeck/capture/planner/place/exact_race.h>

#include <tapedeck/kernels/parallel.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int64_t kJobsInRound = 8;
constexpr std::int64_t kFirstSteps = 1000;
constexpr std::int32_t kMostWaves = 20;
constexpr std::size_t kRungs = 5;

// The strategies, in the order in which they are tried.
ExactStrategy strategy_of(std::int32_t number, std::uint64_t seed) {
  using Niche = ExactStrategy::Niche;
  using Taste = ExactStrategy::Taste;
  constexpr Niche kNiches[] = {Niche::fewest_choices, Niche::lowest, Niche::least_slack};
  constexpr std::pair<Taste, bool> kTastes[] = {{Taste::size, false}, {Taste::size, true},  {Taste::width, false},
                                                {Taste::area, true},  {Taste::load, false}, {Taste::width, true},
                                                {Taste::area, false}, {Taste::load, true}};
  const auto& [taste, lift] = kTastes[number % 8];
  return {kNiches[number / 8], taste, lift, seed};
}
constexpr std::int32_t kStrategies = 24;

// Fewer strategies for large parts, so that the kept searches do not fill the memory.
std::int32_t strategies_for(const PlacePart& part) {
  constexpr std::int64_t kMostWords = std::int64_t{1} << 25;
  const std::int64_t words_of_one = std::int64_t{part.size()} * (part.size() / 64 + 16);
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kMostWords / (words_of_one * static_cast<std::int64_t>(kRungs)), 4, kStrategies));
}

std::int64_t end_of(const PlacePart& part, const std::vector<std::int64_t>& offsets) {
  std::int64_t end = 0;
  for (std::int32_t i = 0; i < part.size(); ++i) end = std::max(end, offsets[i] + part.units[i]);
  return end;
}

}  // namespace

Race::Race(const PlacePart& part, std::int64_t end)
    : part_(part), end_(end), proven_(part.bound), strategies_(strategies_for(part)) {}

void Race::add_rung(std::int64_t capacity) {
  for (const Rung& r : ladder_)
    if (r.capacity == capacity) return;
  ladder_.push_back({capacity, 0, {}});
  ladder_.back().searches.resize(static_cast<std::size_t>(strategies_));
}

// The rungs are the lowest capacity, the goal, and some capacities between the lowest and the best end.
void Race::build_ladder(const Aim& aim) {
  const std::int64_t low = std::max(aim.low, proven_), gap = end_ - 1 - low;
  std::erase_if(ladder_, [&](const Rung& r) { return r.capacity < low || r.capacity >= end_; });
  if (gap < 0) return;
  add_rung(low);
  if (aim.goal >= low && aim.goal < end_) add_rung(aim.goal);
  for (std::int64_t sixteenths : {8, 4, 12, 1, 2}) {
    if (ladder_.size() >= kRungs) break;
    add_rung(low + gap / 16 * sixteenths + gap % 16 * sixteenths / 16);
  }
}

// Each wave gives every strategy four times the steps of the wave before. From the second wave on, it also restarts every
// strategy with another seed.
Race::Job Race::next_job(Rung* rung) const {
  const std::int32_t turn = rung->turns++ + strategies_;
  const std::int32_t wave = std::min(turn / (2 * strategies_), kMostWaves), at = turn % (2 * strategies_);
  const std::int64_t steps = (kFirstSteps + 2 * part_.size()) << (2 * wave);
  if (turn < 2 * strategies_) return {rung, at - strategies_, 0, steps};
  if (at < strategies_) return {rung, at, 0, steps};
  return {rung, at - strategies_, static_cast<std::uint64_t>(turn), steps / 4};
}

// Makes the jobs of one round. Little work goes to few jobs, because even a search without a wrong decision takes one step per
// buffer.
std::vector<Race::Job> Race::next_jobs(std::int64_t most_steps) {
  const std::int64_t most = std::clamp<std::int64_t>(most_steps / (2 * part_.size()), 1, kJobsInRound);
  std::vector<Job> jobs;
  while (static_cast<std::int64_t>(jobs.size()) < most) {
    const auto least =
        std::min_element(ladder_.begin(), ladder_.end(), [](const Rung& x, const Rung& y) { return x.turns < y.turns; });
    if (least->turns >= strategies_ && !jobs.empty() && least->turns % strategies_ == 0)
      break;  // a round must not run the same search twice
    jobs.push_back(next_job(&*least));
  }
  return jobs;
}

void Race::run(Job* job, const SearchStop& stop) const {
  std::unique_ptr<ExactSearch> fresh;
  std::unique_ptr<ExactSearch>& search = job->seed ? fresh : job->rung->searches[job->strategy];
  if (!search) search = std::make_unique<ExactSearch>(part_, job->rung->capacity, strategy_of(job->strategy, job->seed));
  const std::int64_t before = search->steps();
  job->outcome = search->run(job->steps, stop);
  job->taken = search->steps() - before;
  if (job->outcome != Outcome::found) return;
  for (std::int32_t i = 0; i < part_.size(); ++i) job->offsets.push_back(search->offset(i));
}

void Race::take(const Job& job) {
  if (job.outcome == Outcome::none) proven_ = std::max(proven_, job.rung->capacity + 1);
  if (job.outcome != Outcome::found) return;
  const std::int64_t end = end_of(part_, job.offsets);
  if (end >= end_) return;
  end_ = end;
  offsets_ = job.offsets;
}

std::int64_t Race::round(const Aim& aim, std::int64_t most_steps, const SearchStop& stop) {
  build_ladder(aim);
  if (ladder_.empty()) return 0;
  std::vector<Job> jobs = next_jobs(most_steps);
  const std::int64_t share = most_steps / static_cast<std::int64_t>(jobs.size());
  for (Job& j : jobs) {
    const auto& search = j.rung->searches[j.strategy];
    j.steps = std::min(j.steps, share + (j.seed || !search ? 0 : search->steps()));
  }
  kernels::parallel_for(static_cast<std::int64_t>(jobs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) run(&jobs[k], stop);
  });
  std::int64_t taken = 0;
  for (const Job& j : jobs) {
    take(j);
    taken += j.taken;
  }
  return taken;
}

}  // namespace tapedeck
