#include <tapedeck/capture/place/place.h>

#include <tapedeck/capture/place/chunks.h>
#include <tapedeck/capture/place/climb.h>
#include <tapedeck/capture/place/greedy.h>
#include <tapedeck/capture/place/race.h>

#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace tapedeck {

namespace {

using PlaceClock = std::chrono::steady_clock;

constexpr double kMostSeconds = 1e8;  // the clock counts no further than some of these

constexpr double kUsOfLookUp = 0.06;   // of one buffer, in climbing
constexpr double kLeastUs = 5000;      // that are worth looking whether a large part is to be searched or climbed

double us_of_step(std::size_t buffers) {
  const double n = std::max(static_cast<double>(buffers), 10.0);
  return std::min(n / 30, n * n / 31'000);   // of the exact search, as measured
}

// Improves on an attempt, part by part: always the part that ends highest.
class Improver {
 public:
  Improver(const PlaceProblem& p, const PlaceOptions& options, PlaceClock::time_point begun, Attempt* best)
      : p_(p), options_(options), begun_(begun), best_(best), bound_(p.bound) {
    stop_.cancel = options.cancel;
    stop_.has_deadline = options.seconds > 0;
    if (stop_.has_deadline)
      stop_.deadline = begun + std::chrono::duration_cast<PlaceClock::duration>(std::chrono::duration<double>(std::min(options.seconds, kMostSeconds)));
  }

  // No threads are asked for where there is nothing to do for them.
  bool has_to_search() const { return !is_done() && !is_hopeless(); }

  void improve() {
    parts_ = split(p_, options_.most_pairs);
    races_.resize(parts_.size());
    for (std::size_t k = 0; k < parts_.size(); ++k) ends_.push_back(end_of(k));
    while (!is_done() && !is_stuck_ && work_left() > 0 && !stop_.now()) {
      const std::size_t worst = static_cast<std::size_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
      if (parts_[worst].is_searchable() && work_left() < parts_[worst].size()) break;   // a search takes a step for each buffer, if it never errs
      work_ += parts_[worst].is_searchable() ? race(worst) : climb_all();
    }
  }

  std::int64_t bound() const { return bound_; }  // no placement ends lower
  std::int64_t work() const { return work_; }

  void report() const {
    if (options_.on_better) options_.on_better(best_->end, std::chrono::duration<double>(PlaceClock::now() - begun_).count());
  }

 private:
  bool is_done() const { return best_->end <= std::max(bound_ + options_.slack, options_.capacity); }
  std::int64_t work_left() const { return options_.seconds > 0 ? std::int64_t{1} << 62 : options_.work - work_; }

  // A search takes a step for each buffer of a part, and the part that ends highest is the one to begin with.
  bool is_hopeless() const {
    if (options_.seconds > 0 || options_.work >= static_cast<std::int64_t>(p_.buffers.size())) return false;
    std::vector<std::int32_t> going(static_cast<std::size_t>(p_.steps) + 1, 0);  // by step: buffers alive there and at the step before
    const Tenant* highest = &p_.buffers.front();
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      const Tenant& b = p_.buffers[i];
      ++going[b.birth + 1], --going[b.death + 1];
      if (best_->offsets[i] + b.bytes == best_->end) highest = &b;
    }
    std::partial_sum(going.begin(), going.end(), going.begin());
    std::int32_t first = highest->birth, last = highest->death;
    while (going[first] > 0) --first;
    while (going[last + 1] > 0) ++last;
    const auto is_in = [&](const Tenant& b) { return b.birth >= first && b.death <= last; };
    const std::int64_t n = std::count_if(p_.buffers.begin(), p_.buffers.end(), is_in);
    const bool may_be_climbed = n * n > options_.most_pairs && static_cast<double>(options_.work) * us_of_step(p_.buffers.size()) > kLeastUs;
    return options_.work < n && !may_be_climbed;
  }

  std::int64_t end_of(std::size_t k) const {
    std::int64_t end = 0;
    for (std::int32_t i : parts_[k].buffers) end = std::max(end, best_->offsets[i] + p_.buffers[i].bytes);
    return end;
  }

  // What is lower than the bound of all is as good as the bound.
  std::int64_t race(std::size_t k) {
    const PlacePart& part = parts_[k];
    if (!races_[k]) races_[k] = std::make_unique<Race>(part, (ends_[k] + part.unit - 1) / part.unit);
    Race& race = *races_[k];
    const std::int64_t before = race.end();
    const std::int64_t steps = race.round({bound_ / part.unit, options_.capacity < 0 ? -1 : options_.capacity / part.unit}, work_left(), stop_);
    bound_ = std::max(bound_, race.proven() * part.unit);
    if (race.end() < before) {
      for (std::int32_t i = 0; i < part.size(); ++i) best_->offsets[part.buffers[i]] = race.offsets()[i] * part.unit;
      take_ends(k);
    }
    return std::max<std::int64_t>(steps, 1);
  }

  // On the whole instance: what ends highest is what it works on. One climber for all threads: two share the memory's bandwidth, not the work.
  std::int64_t climb_all() {
    constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
    const auto of_step = static_cast<std::int64_t>(us_of_step(p_.buffers.size()) / kUsOfLookUp) + 1;
    const std::int64_t steps = std::clamp<std::int64_t>(kAtOnce / of_step, 1, work_left());
    if (!climber_) climber_ = std::make_unique<Climber>(p_, 1);
    is_stuck_ = !climber_->is_able();
    if (!climber_->climb(steps * of_step, best_)) return steps;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const std::int64_t end = end_of(k);
      if (end > ends_[k]) races_[k] = nullptr;  // what it has found is lost
      if (races_[k]) races_[k]->note_end((end + parts_[k].unit - 1) / parts_[k].unit);
      ends_[k] = end;
    }
    report();
    return steps;
  }

  void take_ends(std::size_t k) {
    ends_[k] = end_of(k);
    const std::int64_t end = *std::max_element(ends_.begin(), ends_.end());
    if (end >= best_->end) return;
    best_->end = end;
    report();
  }

  const PlaceProblem& p_;
  const PlaceOptions& options_;
  const PlaceClock::time_point begun_;
  SearchStop stop_;
  Attempt* best_;
  std::int64_t bound_;
  std::int64_t work_ = 0;
  std::unique_ptr<Climber> climber_;          // for parts that are too large for a race
  bool is_stuck_ = false;                     // and too large for that
  std::vector<PlacePart> parts_;
  std::vector<std::unique_ptr<Race>> races_;  // by part, once there is one
  std::vector<std::int64_t> ends_;            // by part, in bytes
};

// What is known already, as a greedy attempt would have it.
Attempt known_placement(const PlaceProblem& p, const std::vector<std::int64_t>& start) {
  Attempt known;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    known.offsets.push_back(start[static_cast<std::size_t>(p.original[i])]);
    known.end = std::max(known.end, known.offsets.back() + p.buffers[i].bytes);
  }
  return known;
}

void refuse_fixed(const std::vector<Tenant>& buffers) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].fixed >= 0) throw PlaceError({static_cast<std::int32_t>(i)}, "has a fixed offset, which does not say in which of several arenas it lies");
}

}  // namespace

std::int64_t place_steps(double us, std::size_t buffers) { return static_cast<std::int64_t>(std::clamp(us / us_of_step(buffers), 0.0, 1e18)); }

Offsets place(const std::vector<Tenant>& buffers, const PlaceOptions& options) {
  const PlaceClock::time_point begun = PlaceClock::now();
  if (options.chunk_bytes > 0) refuse_fixed(buffers);
  const PlaceProblem p = make_problem(buffers);
  if (options.chunk_bytes > 0) return place_in_chunks(p, options, buffers.size());
  if (p.buffers.empty()) {
    Offsets nothing;
    nothing.offsets.assign(buffers.size(), 0);
    nothing.optimal = true;
    return nothing;
  }
  Attempt best = options.start.empty() ? place_greedily(p, {options.threads, options.slack, options.first_fit_only}) : known_placement(p, options.start);
  place_with_first(p, best.at_hints ? 0 : options.retries, &best);
  Improver improver(p, options, begun, &best);
  improver.report();
  // What keeps its addresses is searched further only for a capacity that it does not meet.
  const bool stays = best.at_hints && (options.capacity < 0 || best.end <= options.capacity);
  if (!stays && (options.work > 0 || options.seconds > 0) && improver.has_to_search())
    tbb::task_arena(std::max(options.threads, 1)).execute([&] { improver.improve(); });
  Offsets result = to_offsets(p, best, buffers.size());
  result.optimal = best.end <= improver.bound();
  result.work = improver.work();
  return result;
}

}  // namespace tapedeck
