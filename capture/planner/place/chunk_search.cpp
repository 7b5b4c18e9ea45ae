// Placement into several arenas. The bytes lost at the joints depend on how the size of the arenas and the sizes of the large
// buffers divide, so smaller arenas are often better than the largest allowed ones. The search has two stages:
//
//   1. greedy placements into arenas of several sizes (1, 0.85, 0.75, ... of the largest)
//   2. random changes of the order of the best placement; a change is kept if the result is no worse
//
// Stage 2 makes a whole placement for every step. The ejection search (ejection_search.h) avoids this for one arena, but it
// would have to know which buffers give way at a joint.
#include <tapedeck/capture/planner/place/chunks.h>
#include <tapedeck/capture/planner/place/free_space.h>
#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <chrono>
#include <limits>
#include <numeric>

namespace tapedeck {

namespace {

using PlaceClock = std::chrono::steady_clock;

constexpr double kShares[] = {1,   0.85, 0.75, 0.6,  0.97, 0.94, 0.9,
                              0.8, 0.7,  0.66, 0.58, 0.55};  // sizes of arenas, as shares of the largest; good shares first
constexpr std::size_t kSharesWithoutSearch = 4;
constexpr std::int64_t kMayLose = 100;  // without a search, a loss of the bound divided by this is accepted
// The search gives up after so many placements without a win, plus one for each two buffers, unless only time limits it.
constexpr std::int64_t kPatience = 1000;
constexpr std::size_t kFewBuffers = 1500;  // instances of at most so many buffers are placed quickly

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
  bool is_good() const { return best_.end - p_.bound <= p_.bound / kMayLose || p_.buffers.size() > kFewBuffers; }
  double seconds() const { return std::chrono::duration<double>(PlaceClock::now() - begun_).count(); }
  bool has_time() const {
    if (options_.cancel && *options_.cancel) return false;
    if (options_.seconds > 0 && seconds() >= options_.seconds) return false;
    return work_ < options_.work || (options_.seconds > 0 && options_.work == 0);
  }

  // The work of one placement: the steps of the search in one arena that take about as long.
  std::int64_t work_of_one() const { return static_cast<std::int64_t>(p_.buffers.size()) / 2 + 8; }

  void place_greedily(std::int64_t chunk) {
    const Oversized large = place_oversized(p_, chunk);
    const Chunks chunks(large.sizes, chunk);
    GreedyOptions how{.threads = options_.threads};
    how.stop = stop_;
    each_greedy_attempt(p_, chunks, large.offsets, how, [&](Attempt&& next) {
      work_ += work_of_one();
      if (next.end < std::numeric_limits<std::int64_t>::max()) take(next, chunks, large);  // otherwise the attempt gave up
      return is_done() ? p_.bound
                       : std::numeric_limits<std::int64_t>::max();  // an attempt that ends higher may use fewer bytes in sum
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

  // The order of the offsets of the best placement. In this order each buffer lies where it did, or lower.
  PlaceOrder order_of_best() const {
    PlaceOrder order(p_.buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
      return attempt_.offsets[x] != attempt_.offsets[y] ? attempt_.offsets[x] < attempt_.offsets[y] : x < y;
    });
    return order;
  }

  // Moves one buffer at a time to an earlier or a later place in the order.
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
      if (made.end == std::numeric_limits<std::int64_t>::max()) break;  // the attempt gave up
      const std::int64_t sum = split_up(p_, chunks, made, n_buffers_).end;
      if (sum > end) continue;
      if (sum < end) vain = 0;
      end = sum;
      order = std::move(next);
      take(made, chunks, large);
    }
  }

  Attempt place_in_order(const PlaceOrder& order, const Chunks& chunks, const Oversized& large) const {
    if (p_.buffers.size() <= kFewBuffers) {
      SmallSpace space(chunks);
      return attempt(p_, order, Fit::first, {.stop = &stop_}, space, large.offsets);
    }
    Space space(p_, chunks);
    return attempt(p_, order, Fit::first, {.stop = &stop_}, space, large.offsets);
  }

  // The generator xorshift64*: small, and equal on every machine.
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
  Attempt attempt_;  // the placement in one range of offsets from which best_ was split
  Chunks chunks_;
  Oversized large_;
};

}  // namespace

Offsets place_in_chunks(const PlaceProblem& p, const PlaceOptions& options, std::size_t n_buffers) {
  if (p.buffers.empty()) return split_up(p, {}, {}, n_buffers);
  return ChunkSearch(p, options, n_buffers).run();
}

}  // namespace tapedeck
