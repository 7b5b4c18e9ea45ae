// What is lost at the joints of arenas depends on how their size and those of the large buffers divide, so smaller arenas are
// often better than the largest that are allowed. Beyond that, the order in which buffers are placed is changed at random and
// kept if it does no harm: a whole placement for each step, which one arena's climbing (ejection_search.h) does without, but
// nothing need be known about what gives way at a joint.
#include <tapedeck/capture/planner/place/chunks.h>
#include <tapedeck/capture/planner/place/free_space.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <chrono>
#include <limits>
#include <numeric>

namespace tapedeck {

namespace {

using PlaceClock = std::chrono::steady_clock;

constexpr double kShares[] = {1,   0.85, 0.75, 0.6,  0.97, 0.94,
                              0.9, 0.8,  0.7,  0.66, 0.58, 0.55};  // of the largest arena; the best ones first
constexpr std::size_t kSharesWithoutSearch = 4;
constexpr std::int64_t kMayLose = 100;  // without search: the bound by this
constexpr std::int64_t kPatience =
    1000;  // placements in vain, and one for each two buffers, are enough unless there is time to spend
constexpr std::size_t kFew = 1500;  // buffers, of which a placement is cheap

class ChunkSearch {
 public:
  ChunkSearch(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers)
      : p_(p), options_(options), n_buffers_(n_buffers), begun_(PlaceClock::now()) {
    best_.end = std::numeric_limits<std::int64_t>::max();
    stop_ = stop_for(options, begun_);
  }

  Offsets run() {
    const bool searches = options_.work > 0 || options_.seconds > 0;
    for (std::size_t s = 0; s < std::size(kShares) && !is_done(); ++s) {
      const bool is_enough = s > 0 && (is_good() || s >= kSharesWithoutSearch);
      if (is_enough && !(searches && has_time())) break;
      place_greedily(s == 0 ? options_.chunk_bytes
                            : std::max<std::int64_t>(
                                  static_cast<std::int64_t>(static_cast<double>(options_.chunk_bytes) * kShares[s]), 1));
    }
    if (searches && p_.buffers.size() > 2) change_orders();
    best_.work = work_;
    return std::move(best_);
  }

 private:
  bool is_done() const { return best_.end <= std::max(p_.bound, options_.capacity); }
  bool is_good() const { return best_.end - p_.bound <= p_.bound / kMayLose || p_.buffers.size() > kFew; }
  double seconds() const { return std::chrono::duration<double>(PlaceClock::now() - begun_).count(); }
  bool has_time() const {
    if (options_.cancel && *options_.cancel) return false;
    if (options_.seconds > 0 && seconds() >= options_.seconds) return false;
    return work_ < options_.work || (options_.seconds > 0 && options_.work == 0);
  }

  // About as many of the steps that the search in one arena counts as take the time of one placement.
  std::int64_t work_of_one() const { return static_cast<std::int64_t>(p_.buffers.size()) / 2 + 8; }

  void place_greedily(std::int64_t chunk) {
    const Oversized large = place_oversized(p_, chunk);
    const Chunks chunks(large.sizes, chunk);
    GreedyOptions how{.threads = options_.threads};
    how.stop = stop_;
    each_greedy_attempt(p_, chunks, large.offsets, how, [&](Attempt&& next) {
      work_ += work_of_one();
      if (next.end < std::numeric_limits<std::int64_t>::max()) take(next, chunks, large);  // else it gave up
      return is_done() ? p_.bound
                       : std::numeric_limits<std::int64_t>::max();  // an attempt that ends higher may hold less in sum
    });
  }

  bool take(const Attempt& next, const Chunks& chunks, const Oversized& large) {
    Offsets split = split_up(p_, chunks, next, n_buffers_);
    if (split.end >= best_.end) return false;
    best_ = std::move(split);
    attempt_ = next;
    chunks_ = chunks;
    large_ = large;
    if (options_.on_better) options_.on_better(best_.end, seconds());
    return true;
  }

  // In the order of offsets each buffer comes to lie where it did, or lower.
  PlaceOrder order_of_best() const {
    PlaceOrder order(p_.buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
      return attempt_.offsets[x] != attempt_.offsets[y] ? attempt_.offsets[x] < attempt_.offsets[y] : x < y;
    });
    return order;
  }

  // One buffer at a time is placed earlier or later.
  void change_orders() {
    PlaceOrder order = order_of_best();
    const Chunks chunks = chunks_;
    const Oversized large = large_;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const auto n = static_cast<std::uint32_t>(order.size());
    const std::int64_t patience = options_.work == 0 ? std::numeric_limits<std::int64_t>::max() : kPatience + n / 2;
    for (std::int64_t vain = 0; vain < patience && !is_done() && has_time(); ++vain) {
      PlaceOrder next = order;
      if (end < std::numeric_limits<std::int64_t>::max()) {
        const std::uint32_t from = random_below(n), to = random_below(n);
        next.erase(next.begin() + from);
        next.insert(next.begin() + to, order[from]);
      }
      work_ += work_of_one();
      const Attempt made = place_in_order(next, chunks, large);
      if (made.end == std::numeric_limits<std::int64_t>::max()) break;  // it gave up
      const std::int64_t sum = split_up(p_, chunks, made, n_buffers_).end;
      if (sum > end) continue;
      if (sum < end) vain = 0;
      end = sum;
      order = std::move(next);
      take(made, chunks, large);
    }
  }

  Attempt place_in_order(const PlaceOrder& order, const Chunks& chunks, const Oversized& large) const {
    if (p_.buffers.size() <= kFew) {
      SmallSpace space(chunks);
      return attempt(p_, order, Fit::first, {.stop = &stop_}, space, large.offsets);
    }
    Space space(p_, chunks);
    return attempt(p_, order, Fit::first, {.stop = &stop_}, space, large.offsets);
  }

  // xorshift64*: small, and the same on every machine.
  std::uint32_t random_below(std::uint32_t n) {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return static_cast<std::uint32_t>(((random_ * 0x2545F4914F6CDD1Du >> 32) * n) >> 32);
  }

  const PlaceProblem& p_;
  const PlaceOptions& options_;
  const std::size_t n_buffers_;
  const PlaceClock::time_point begun_;
  SearchStop stop_;
  std::uint64_t random_ = 0xD1B54A32D192ED03u;
  std::int64_t work_ = 0;
  Offsets best_;
  Attempt attempt_;  // what best_ was split from, and how
  Chunks chunks_;
  Oversized large_;
};

}  // namespace

Offsets place_in_chunks(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers) {
  if (p.buffers.empty()) return split_up(p, {}, {}, n_buffers);
  return ChunkSearch(p, options, n_buffers).run();
}

}  // namespace tapedeck
