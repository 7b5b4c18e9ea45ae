// Greedy placement in several orders; see greedy_orders.h. The attempts are numbered order by order:
//
//   by size: first fit, best fit; by start: first fit, best fit; by duration; by area; by breadth
//
// Few buffers use a sorted list (SmallSpace), many buffers use a segment tree (Space), and very many begin with one sweep over
// time. The file also places buffers at their hints, and repeats the placement by size with troublesome buffers first.
#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <tapedeck/capture/planner/place/ejection_search.h>
#include <tapedeck/capture/planner/place/free_space.h>
#include <tapedeck/capture/planner/place/time_sweep.h>

#include <tapedeck/kernels/parallel.h>
#include <tapedeck/kernels/thread_limit.h>

#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace tapedeck {

namespace {

template <class KeyOf>
PlaceOrder sorted_by(const PlaceProblem& p, KeyOf key_of) {
  using Key = decltype(key_of(p.buffers.front()));
  std::vector<std::pair<Key, std::int32_t>> keyed;
  keyed.reserve(p.buffers.size());
  for (const Tenant& b : p.buffers) keyed.emplace_back(key_of(b), static_cast<std::int32_t>(keyed.size()));
  std::sort(keyed.begin(), keyed.end());
  PlaceOrder order;
  order.reserve(keyed.size());
  for (const auto& [key, i] : keyed) order.push_back(i);
  return order;
}

std::int64_t duration(const Tenant& b) { return b.death - b.birth + 1; }

}  // namespace

PlaceOrder order_by_size(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-b.bytes, -duration(b), b.birth); });
}
PlaceOrder order_by_area(const PlaceProblem& p) {
  return sorted_by(
      p, [](const Tenant& b) { return std::tuple(-static_cast<double>(b.bytes) * static_cast<double>(duration(b)), b.birth); });
}
PlaceOrder order_by_duration(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(-duration(b), -b.bytes, b.birth); });
}
PlaceOrder order_by_start(const PlaceProblem& p) {
  return sorted_by(p, [](const Tenant& b) { return std::tuple(b.birth, -b.bytes, -duration(b)); });
}

// Each buffer belongs to the step of its life with the most bytes alive.
PlaceOrder order_by_breadth(const PlaceProblem& p) {
  // A sparse table of maxima finds the busiest step of any range in O(1).
  std::vector<std::vector<std::int64_t>> most{p.load};
  for (std::size_t width = 1; width * 2 <= p.load.size(); width *= 2) {
    const auto& last = most.back();
    std::vector<std::int64_t> next(last.size() - width);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::max(last[i], last[i + width]);
    most.push_back(std::move(next));
  }
  const auto busiest = [&](const Tenant& b) {
    std::size_t level = 0;
    while ((std::int64_t{2} << level) <= duration(b)) ++level;
    return std::max(most[level][b.birth], most[level][b.death + 1 - (std::int32_t{1} << level)]);
  };
  return sorted_by(p, [&](const Tenant& b) { return std::tuple(-busiest(b), -b.bytes, -duration(b), b.birth); });
}

std::vector<std::int64_t> fixed_offsets(const PlaceProblem& p) {
  std::vector<std::int64_t> given;
  for (const Tenant& b : p.buffers) given.push_back(b.fixed);
  return given;
}

namespace {

constexpr std::size_t kFew = 1500;  // at most so many buffers are placed fastest with SmallSpace
// SmallSpace is also fastest for instances with at most so many pairs of a buffer and an interval of another buffer.
constexpr std::size_t kFewMeetings = 8000 * 8000;
constexpr std::size_t kVeryFewMeetings = kFew * kFew;  // beyond so many, buffers take bytes up to their alignment, as in Space
constexpr std::size_t kVeryFew = 64;                   // so are instances of at most so many buffers, whatever their lives
constexpr std::size_t kWorthThreads = 5000;            // from so many buffers on, attempts run on threads and watch the clock
constexpr std::int64_t kMostLookUps = 45'000'000;  // all attempts together take so many look-ups; no new attempt begins beyond
// Beyond so many buffers, only first fit is tried, and only until an attempt is close to the bound.
constexpr std::size_t kMany = 20000;

// All attempts: every order, each by first fit and then by best fit.
class GreedyAttempts {
 public:
  GreedyAttempts(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given,
                 const GreedyOptions& options)
      : p_(p), chunks_(chunks), given_(given), enough_(p.bound + options.slack), first_fit_only_(options.first_fit_only) {
    const std::size_t meetings = p.buffers.size() <= kVeryFew ? 0 : p.stretches() * p.buffers.size();
    is_few_ = meetings <= kFewMeetings;
    if (meetings > kVeryFewMeetings) granule_ = granule_of(p, chunks);
  }

  int count() const { return kOrders * fits(); }
  bool is_many() const { return p_.buffers.size() > kMany; }
  bool is_enough(std::int64_t end) const { return end <= enough_ || (is_many() && end - p_.bound <= p_.bound / 50); }

  // Makes attempt number `number`. `space` lives on between attempts, so that its memory is reused.
  Attempt make(int number, const AttemptLimit& limit, std::optional<Space>* space) const {
    static constexpr PlaceOrder (*kMakers[kOrders])(const PlaceProblem&) = {order_by_size, order_by_start, order_by_duration,
                                                                            order_by_area, order_by_breadth};
    const PlaceOrder order = kMakers[number / fits()](p_);
    const Fit fit = number % fits() == 0 ? Fit::first : Fit::best;
    if (is_few_) {
      SmallSpace few(chunks_, granule_);
      return attempt(p_, order, fit, limit, few, given_);
    }
    if (*space)
      (*space)->clear();
    else
      space->emplace(p_, chunks_);
    return attempt(p_, order, fit, limit, **space, given_);
  }

 private:
  static constexpr int kOrders = 5;
  int fits() const { return is_many() || first_fit_only_ ? 1 : 2; }

  const PlaceProblem& p_;
  const Chunks& chunks_;
  const std::vector<std::int64_t>& given_;
  const std::int64_t enough_;
  const bool first_fit_only_;
  bool is_few_ = false;
  std::int64_t granule_ = 1;
};

}  // namespace

// On several threads, all attempts but the first run at once, and stop at the end of the first attempt: an attempt that ends
// higher would not be taken anyway. The attempts are taken in the order of their numbers, so the answer is that of one thread.
void each_greedy_attempt(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given,
                         const GreedyOptions& options, const std::function<std::int64_t(Attempt&&)>& take) {
  const GreedyAttempts attempts(p, chunks, given, options);
  const bool is_long = p.buffers.size() > kWorthThreads, at_once = options.threads > 1 && is_long;
  AttemptLimit limit;
  std::optional<Space> space;
  if (attempts.is_many() && chunks.is_one() &&
      std::all_of(given.begin(), given.end(), [](std::int64_t offset) { return offset < 0; })) {
    limit = {take(place_by_sweep(p)), kMostLookUps, &options.stop};
    if (attempts.is_enough(limit.end)) return;
  }
  limit.end = take(attempts.make(0, limit, &space));
  const std::int64_t look_ups = space ? space->look_ups() : 0;
  if (attempts.is_enough(limit.end)) return;
  if (is_long) limit.stop = &options.stop;
  int count = attempts.count();
  if (attempts.is_many()) {  // as many further attempts as the first one leaves time for
    count = static_cast<int>(std::min<std::int64_t>(count, kMostLookUps / std::max<std::int64_t>(look_ups, 1)));
    limit.look_ups = 2 * look_ups;
  }
  const auto goes_on = [&] { return !attempts.is_enough(limit.end) && !(is_long && options.stop.now()); };
  std::vector<Attempt> made(static_cast<std::size_t>(at_once && goes_on() ? std::max(count, 0) : 0));
  if (!made.empty())
    kernels::run_on_threads(options.threads, [&] {
      kernels::parallel_for(count - 1, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto n = static_cast<int>(begin) + 1; n <= end; ++n) {
          std::optional<Space> own;
          made[n] = attempts.make(n, limit, &own);
        }
      });
    });
  for (int n = 1; n < count && goes_on(); ++n)
    limit.end = take(made.empty() ? attempts.make(n, limit, &space) : std::move(made[n]));
}

bool has_hints(const PlaceProblem& p) {
  return std::any_of(p.buffers.begin(), p.buffers.end(), [](const Tenant& b) { return b.hint >= 0; });
}

Attempt place_at_hints(const PlaceProblem& p) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 61;  // larger sums could overflow
  Attempt result;
  result.at_hints = true;
  result.offsets.assign(p.buffers.size(), -1);
  Space space(p);
  const auto put = [&](std::int32_t i, std::int64_t offset) {
    result.offsets[i] = offset;
    result.end = std::max(result.end, offset + p.buffers[i].bytes);
    space.insert(i, p.buffers[i], offset);
  };
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].fixed >= 0) put(static_cast<std::int32_t>(i), p.buffers[i].fixed);
  // From the highest hint down. Two hints usually clash because the lower of the two buffers has grown. So the higher buffer
  // keeps its hint, and the grown buffer moves.
  for (std::int32_t i : sorted_by(p, [](const Tenant& b) { return std::tuple(-b.hint, -b.bytes); })) {
    const Tenant& b = p.buffers[i];
    if (result.offsets[i] < 0 && b.hint >= 0 && b.hint <= kFarthest && b.hint % b.alignment == 0 && space.is_free(b, b.hint))
      put(i, b.hint);
  }
  for (std::int32_t i : order_by_size(p))
    if (result.offsets[i] < 0) put(i, space.find(i, p.buffers[i], Fit::first));
  return result;
}

void move_few(const PlaceProblem& p, std::int64_t end, Attempt* kept, const SearchStop& stop) {
  constexpr std::int64_t kWeight = 16;  // moving one buffer from its hint counts as much as moving so many other buffers
  Climber climber(p, 1);
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].hint >= 0 && kept->offsets[i] == p.buffers[i].hint) climber.weigh(static_cast<std::int32_t>(i), kWeight);
  climber.reach(end, static_cast<std::int64_t>(p.buffers.size()) * 1000, kept, stop);
}

namespace {

// Returns a placement with as many buffers as possible at their hints. If it ends too high, returns another placement that is
// not at_hints. The comparison uses only one greedy order, because this function must be fast.
Attempt keep_hints(const PlaceProblem& p) {
  const std::int64_t more = p.bound / kHintsMayCost;
  Attempt kept = place_at_hints(p);
  if (kept.end <= p.bound + more) return kept;
  Space space(p);
  Attempt fresh = attempt(p, order_by_size(p), Fit::first, {}, space, fixed_offsets(p));
  if (kept.end > fresh.end + more) move_few(p, fresh.end + more, &kept);
  return kept.end <= fresh.end + more ? kept : fresh;
}

}  // namespace

Attempt place_greedily(const PlaceProblem& p, const GreedyOptions& options) {
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  if (options.hints && has_hints(p)) best = keep_hints(p);
  if (best.at_hints) return best;
  const auto take = [&](Attempt&& next) {
    if (next.end < best.end) best = std::move(next);
    return best.end;
  };
  each_greedy_attempt(p, {}, fixed_offsets(p), options, take);
  return best;
}

void place_with_first(const PlaceProblem& p, int attempts, Attempt* best) {
  // The bound divided by this: a best end that is further above the bound is worth more attempts.
  constexpr std::int64_t kWorthIt = 250;
  if (p.buffers.size() > kFew) return;
  PlaceOrder order = order_by_size(p);
  const std::vector<std::int64_t> given = fixed_offsets(p);
  for (int n = 0; n < attempts && best->end - p.bound > p.bound / kWorthIt; ++n) {
    SmallSpace space;
    Attempt next = attempt(p, order, Fit::first, {.end = best->end}, space, given);
    if (next.end < best->end) {
      *best = std::move(next);
      continue;
    }
    const auto too_high = [&](std::int32_t i) { return next.offsets[i] + p.buffers[i].bytes >= best->end; };
    const auto at = std::find_if(order.begin(), order.end(), too_high);
    if (at == order.end()) return;
    std::rotate(order.begin(), at, at + 1);
  }
}

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers) {
  Offsets result;
  result.offsets.assign(n_buffers, 0);
  for (const auto& [i, offset] : p.left_out) result.offsets[i] = offset;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) result.offsets[p.original[i]] = best.offsets[i];
  result.end = p.buffers.empty() ? 0 : best.end;
  result.bound = p.bound;
  result.at_hints = best.at_hints;
  return result;
}

}  // namespace tapedeck
