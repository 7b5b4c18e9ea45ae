// place(): greedy orders first, then search; see place.h. One arena runs through these stages:
//
//   first()             the given start, or the greedy placement; or the placement at hints, if it ends low enough
//   place_with_first()  more greedy attempts, with buffers that ended too high placed first
//   Improver            splits the instance into parts, and always searches the part that ends highest
//   return_to_hints()   takes the placement at hints after all, if it ends at most 1 % higher
#include <tapedeck/capture/planner/place/place.h>

#include <tapedeck/capture/planner/place/chunks.h>
#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>
#include <tapedeck/capture/planner/place/part_search.h>

#include <tapedeck/kernels/thread_limit.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace tapedeck {

namespace {

using PlaceClock = std::chrono::steady_clock;

// Microseconds of search that are worth a check whether a large part should be searched exactly or by ejection.
constexpr double kLeastUs = 5000;

// Improves on an attempt, part by part: always the part that ends highest.
class Improver {
 public:
  Improver(const PlaceProblem& p, const PlaceOptions& options, PlaceClock::time_point begun, Attempt* best)
      : p_(p),
        options_(options),
        stretches_(p.stretches()),
        begun_(begun),
        stop_(stop_for(options, begun)),
        best_(best),
        bound_(p.bound) {}

  // False if there is nothing to search, so that the caller asks for no threads.
  bool has_to_search() const { return !is_done() && !is_hopeless(); }

  void improve() {
    parts_ = split(p_, options_.most_pairs);
    searches_.resize(parts_.size());
    for (std::size_t k = 0; k < parts_.size(); ++k) ends_.push_back(end_of(k));
    while (!is_done() && !is_stuck_ && work_left() > 0 && !stop_.now()) {
      const std::size_t worst = static_cast<std::size_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
      // Even a search without a wrong decision takes one step per buffer.
      if (parts_[worst].is_searchable() && work_left() < parts_[worst].size()) break;
      work_ += parts_[worst].is_searchable() ? search(worst) : climb_all();
    }
  }

  std::int64_t bound() const { return bound_; }  // no placement ends lower
  std::int64_t work() const { return work_; }

  void report() const {
    if (options_.on_better) options_.on_better(best_->end, std::chrono::duration<double>(PlaceClock::now() - begun_).count());
  }

 private:
  bool is_done() const { return best_->end <= std::max(bound_ + options_.slack, options_.capacity); }
  bool has_time_only() const { return options_.seconds > 0 && options_.work == 0; }
  std::int64_t work_left() const { return has_time_only() ? std::int64_t{1} << 62 : options_.work - work_; }

  // The buffers fall into parts whose lifetimes do not meet. True if the number of steps that the search may take,
  // options_.work, suffices neither for the exact search in the part with the highest end, which takes at least one step for
  // each buffer of the part, nor for the ejection search (climb_all).
  bool is_hopeless() const {
    if (has_time_only() || options_.work >= static_cast<std::int64_t>(p_.buffers.size())) return false;
    // By step: the number of buffers alive at this step and at the step before.
    std::vector<std::int32_t> going(static_cast<std::size_t>(p_.steps) + 1, 0);
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
    const bool may_be_climbed =
        n * n > options_.most_pairs && static_cast<double>(options_.work) * us_of_step(stretches_) > kLeastUs;
    return options_.work < n && !may_be_climbed;
  }

  std::int64_t end_of(std::size_t k) const {
    std::int64_t end = 0;
    for (std::int32_t i : parts_[k].buffers) end = std::max(end, best_->offsets[i] + p_.buffers[i].bytes);
    return end;
  }

  Attempt part_of_best(std::size_t k) const {
    Attempt part;
    for (std::int32_t i : parts_[k].buffers) part.offsets.push_back(best_->offsets[i]);
    part.end = end_of(k);
    return part;
  }

  void put_in_place(std::size_t k) {
    const std::vector<std::int64_t>& offsets = searches_[k]->best().offsets;
    for (std::size_t m = 0; m < offsets.size(); ++m) best_->offsets[parts_[k].buffers[m]] = offsets[m];
  }

  // Runs one turn of the search in part k. The turn looks for no end below the bound of the whole instance.
  std::int64_t search(std::size_t k) {
    if (!searches_[k]) searches_[k] = std::make_unique<PartSearch>(p_, parts_[k], part_of_best(k));
    PartSearch& search = *searches_[k];
    const std::int64_t steps = search.turn(bound_, options_.capacity, work_left(), stop_);
    bound_ = std::max(bound_, search.proven());
    if (search.best().end < ends_[k]) {
      put_in_place(k);
      take_ends(k);
    }
    return steps;
  }

  // Runs the ejection search on the whole instance; it works on the part that ends highest. One climber serves all threads,
  // because several would share the bandwidth of the memory.
  std::int64_t climb_all() {
    constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
    const std::int64_t of_step = look_ups_of_step(stretches_);
    const std::int64_t steps = std::clamp<std::int64_t>(kAtOnce / of_step, 1, work_left());
    if (!climber_) climber_ = std::make_unique<Climber>(p_, 1);
    is_stuck_ = !climber_->is_able();
    if (!climber_->climb(steps * of_step, best_, stop_)) return steps;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      ends_[k] = end_of(k);
      if (!searches_[k]) continue;
      searches_[k]->take(part_of_best(k));
      if (searches_[k]->best().end >= ends_[k]) continue;
      put_in_place(k);  // the part's own search had found a lower end than the ejection search on the whole
      ends_[k] = end_of(k);
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
  const std::size_t stretches_;
  const PlaceClock::time_point begun_;
  const SearchStop stop_;
  Attempt* best_;
  std::int64_t bound_;
  std::int64_t work_ = 0;
  std::unique_ptr<Climber> climber_;  // the ejection search, for parts that are too large for a race
  bool is_stuck_ = false;             // the instance is too large for the ejection search too
  std::vector<PlacePart> parts_;
  std::vector<std::unique_ptr<PartSearch>> searches_;  // by part, once there is one
  std::vector<std::int64_t> ends_;                     // by part, in bytes
};

// The placement that the caller gave, as an Attempt.
Attempt known_placement(const PlaceProblem& p, const std::vector<std::int64_t>& start) {
  Attempt known;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    known.offsets.push_back(start[p.original[i]]);
    known.end = std::max(known.end, known.offsets.back() + p.buffers[i].bytes);
  }
  return known;
}

void refuse_fixed(const std::vector<Tenant>& buffers) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].fixed >= 0)
      throw PlaceError({static_cast<std::int32_t>(i)},
                       "has a fixed offset, which does not say in which of several arenas it lies");
}

template <class F>
void search_on(int threads, F&& search) {
  if (threads == 0)
    search();
  else
    kernels::run_on_threads(threads, std::forward<F>(search));
}

// Placement in one arena. A placement at hints that ends too high (`kept`) is given up only if the search finds a lower end.
class OneArena {
 public:
  OneArena(const PlaceProblem& p, const PlaceOptions& options) : p_(p), options_(options), begun_(PlaceClock::now()) {}

  Offsets place(std::size_t n_buffers) {
    Attempt best = first();
    place_with_first(p_, best.at_hints ? 0 : options_.retries, &best);
    PlaceOptions how = options_;
    if (kept_) how.seconds *= kShareOfSearch;  // the rest of the time is for move_few()
    Improver improver(p_, how, begun_, &best);
    improver.report();
    // A placement at hints is searched further only if it ends above the capacity.
    const bool stays = best.at_hints && (options_.capacity < 0 || best.end <= options_.capacity);
    if (!stays && searches() && improver.has_to_search()) search_on(options_.threads, [&] { improver.improve(); });
    if (kept_) return_to_hints(&best);
    Offsets result = to_offsets(p_, best, n_buffers);
    result.optimal = best.end <= improver.bound();
    result.work = improver.work();
    return result;
  }

 private:
  static constexpr double kShareOfSearch = 0.9;

  bool searches() const { return options_.work > 0 || options_.seconds > 0; }
  std::int64_t may_cost() const { return p_.bound / kHintsMayCost; }

  Attempt first() {
    if (!options_.start.empty()) return known_placement(p_, options_.start);
    GreedyOptions how{options_.threads, options_.slack, options_.first_fit_only, true, stop_for(options_, begun_)};
    if (!searches() || !has_hints(p_)) return place_greedily(p_, how);
    Attempt kept = place_at_hints(p_);
    if (kept.end <= p_.bound + may_cost()) return kept;
    kept_ = std::move(kept);
    how.hints = false;
    return place_greedily(p_, how);
  }

  void return_to_hints(Attempt* best) {
    std::int64_t most = best->end + may_cost();
    if (options_.capacity >= best->end) most = std::min(most, options_.capacity);
    if (kept_->end > most) move_few(p_, most, &*kept_, stop_for(options_, begun_));
    if (kept_->end <= most) *best = std::move(*kept_);
  }

  const PlaceProblem& p_;
  const PlaceOptions& options_;
  const PlaceClock::time_point begun_;
  std::optional<Attempt> kept_;
};

// The options with the work and the time that are left.
PlaceOptions rest_of(const PlaceOptions& options, std::int64_t work, PlaceClock::time_point begun) {
  constexpr double kLeastSeconds = 1e-6;  // 0 would mean no limit
  PlaceOptions rest = options;
  if (options.work > 0) rest.work = std::max<std::int64_t>(options.work - work, 1);
  if (options.seconds > 0)
    rest.seconds = std::max(options.seconds - std::chrono::duration<double>(PlaceClock::now() - begun).count(), kLeastSeconds);
  return rest;
}

// If all buffers may fit into one chunk, tries one arena with half of the work and time. If they fit, the rest is spent on a
// lower end; if not, on a placement into chunks.
Offsets place_in_chunks_or_one(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers) {
  if (p.bound > options.chunk_bytes) return place_in_chunks(p, options, n_buffers);
  const PlaceClock::time_point begun = PlaceClock::now();
  PlaceOptions half = options;
  std::int64_t told = options.chunk_bytes + 1;
  if (options.on_better)
    half.on_better = [&](std::int64_t end, double seconds) {
      if (end < told) options.on_better(told = end, seconds);
    };
  half.start.clear();
  half.capacity = options.chunk_bytes;
  half.work -= half.work / 2;
  half.seconds /= 2;
  Offsets one = OneArena(p, half).place(n_buffers);
  PlaceOptions rest = rest_of(options, one.work, begun);
  const std::int64_t work = one.work;
  if (one.end > options.chunk_bytes) {
    Offsets several = place_in_chunks(p, rest, n_buffers);
    several.work += work;
    return several;
  }
  if (!one.optimal && one.end > options.capacity) {
    rest.on_better = half.on_better;
    rest.start = one.offsets;
    one = OneArena(p, rest).place(n_buffers);
    one.work += work;
  }
  one.arena.assign(n_buffers, 0);
  return one;
}

}  // namespace

std::int64_t place_steps(double us, std::size_t stretches) {
  return static_cast<std::int64_t>(std::clamp(us / us_of_step(stretches), 0.0, 1e18));
}

Offsets place(const std::vector<Tenant>& buffers, const PlaceOptions& options) {
  if (options.chunk_bytes > 0) refuse_fixed(buffers);
  PlaceProblem p = make_problem(buffers);
  PlaceOptions how = options;
  if (how.threads != 0) how.threads = std::clamp(how.threads, 1, kernels::hardware_threads());  // more would only wait
  if (p.buffers.empty() && options.chunk_bytes <= 0) {
    Offsets nothing = to_offsets(p, {}, buffers.size());
    nothing.optimal = true;
    return nothing;
  }
  if (options.chunk_bytes <= 0) return OneArena(p, how).place(buffers.size());
  for (Tenant& b : p.buffers) b.hint = -1;
  return p.buffers.empty() ? place_in_chunks(p, how, buffers.size()) : place_in_chunks_or_one(p, how, buffers.size());
}

}  // namespace tapedeck
