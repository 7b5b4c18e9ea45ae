// Dynamic storage allocation: finds offsets for buffers whose lifetimes are known, so that no two buffers alive at the same
// time overlap, and the end of the highest buffer is low. The room is a library of its own: it knows nothing of graphs.
//
// The problem is NP-hard. place() is anytime; it works in stages and stops as soon as a placement ends at the bound:
//   1. Greedy orders: those of XLA, TFLite and a run-time allocator, each by first and by best fit (greedy_orders.h).
//   2. The instance is split at the times when no buffer is alive (split_problem.h).
//   3. In each part, exact searches (exact_search.h) race over a ladder of capacities from the bound up (exact_race.h).
//   4. Where the race wins nothing, or the part is too large for it, buffers are ejected (ejection_search.h).
// With several arenas, stages 2 to 4 are replaced by random changes of the greedy orders (chunks.h). Every limit on work or
// time gives an answer, and Offsets::bound says how far the answer can be from the best one.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The steps first..last, both included.
struct Steps {
  std::int32_t first = 0, last = 0;
};

// A buffer. It is alive during the steps birth..death, both included.
struct Tenant {
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;  // a power of two or any other positive number
  std::int32_t birth = 0;
  std::int32_t death = 0;
  std::int64_t fixed = -1;  // >= 0: the buffer must lie at this offset
  // >= 0: the offset that the buffer had in an earlier placement. If that costs at most 1 % of the bound, every buffer lies at
  // its hint, except for the few that do not fit there any more or must move to keep the end low. So a plan that is made again
  // after a small change keeps most of its addresses. Hints are ignored with several arenas, and if PlaceOptions::start is
  // given.
  std::int64_t hint = -1;
  std::vector<Steps> holes = {};  // steps inside birth..death at which the bytes are not needed; ascending and disjoint
};

// Limits and wishes for place(). All sizes are bytes.
struct PlaceOptions {
  // The number of steps of search after the greedy orders. Equal work gives equal answers on any number of threads.
  std::int64_t work = 0;
  // > 0: a limit of time, in seconds, that holds even if `work` is left; 0 work then means no limit of work. The answers of two
  // runs may differ.
  double seconds = 0;
  std::int64_t capacity = -1;  // >= 0: an end up to this capacity is good enough, and the search looks for nothing lower
  std::int64_t slack = 0;      // an end up to `slack` bytes above the bound counts as good as the bound
  // The largest number of extra greedy attempts, each with the buffers that ended too high placed first (greedy_orders.h).
  int retries = 0;
  bool first_fit_only = false;  // use first fit only in the greedy orders: half the time, and seldom a higher end
  // > 0: several arenas, none larger than this, except for a buffer that is itself larger. Hints and `start` are then ignored.
  std::int64_t chunk_bytes = -1;
  // If not empty: a valid placement, by buffer, that the search improves on instead of the greedy ones.
  std::vector<std::int64_t> start = {};
  // A part with more pairs of buffers alive together gets the ejection search only, no exact search. Each pair counts twice.
  std::int64_t most_pairs = std::int64_t{1} << 23;
  // The number of search threads, at most the number of cores. More than 5,000 buffers are also placed greedily on them. 0: the
  // search runs its loops on the threads of the caller (kernels/parallel.h), and greedy placement uses one.
  int threads = 1;
  const std::atomic<bool>* cancel = nullptr;  // set to true: place() stops and returns the best placement so far
  // Called with the end of the greedy placement, then with each lower end, and the seconds since the start. One call at a time,
  // perhaps from another thread.
  std::function<void(std::int64_t end, double seconds)> on_better = {};
};

// The result of place(). All sizes are bytes.
struct Offsets {
  // By buffer: the offset inside its arena. A buffer without bytes, or never alive, has its fixed offset, or 0.
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> arena;  // by buffer: the number of its arena; empty unless chunk_bytes is given
  std::int64_t end = 0;             // the highest offset + bytes; with several arenas, the sum over the arenas
  // No placement ends lower: the most bytes alive at one step, or the end of a fixed buffer if that is higher.
  std::int64_t bound = 0;
  bool optimal = false;   // no placement ends lower: the end meets the bound, or the search has excluded all lower ends
  bool at_hints = false;  // the buffers lie at their hints, except for the few that were moved
  std::int64_t work = 0;  // the steps of search that were taken
};

// The error of place() for buffers that are not a valid instance. The message begins with "buffer 3 " or
// "buffer 3 and buffer 5 ", followed by the fault.
class PlaceError : public UsageError {
 public:
  PlaceError(std::vector<std::int32_t> buffers, const std::string& fault);
  const std::vector<std::int32_t>& buffers() const { return buffers_; }  // one or two indices into the list given to place()
  const std::string& fault() const { return fault_; }                    // the message without the buffers: "have ..."

 private:
  std::vector<std::int32_t> buffers_;
  std::string fault_;
};

// Places all buffers. Deterministic unless `seconds` is given. Thread safe.
//
// Throws PlaceError for a negative size, an alignment below one, a death before the birth, holes that are not ascending,
// disjoint and inside the lifetime, fixed buffers that overlap while alive, fixed buffers together with chunk_bytes (a fixed
// offset does not name its arena), and sums above 2^62.
//
// The greedy part costs O(n log n + pairs) for each of ten attempts. n counts the intervals between holes, and a pair of
// buffers counts once for each pair of their intervals that meet. Beyond 20,000 buffers the greedy part takes about one second
// at most.
Offsets place(const std::vector<Tenant>& buffers, const PlaceOptions& options = {});

// The value of PlaceOptions::work that takes about `us` microseconds on a nominal core. A step of search looks at the buffers
// around one buffer. `stretches` is the number of intervals between holes, over all buffers.
std::int64_t place_steps(double us, std::size_t stretches);

// When a buffer is in use, in a run on several threads. The times are moments of the simulated run
// (capture/planner/segments/simulate_run.h).
struct Occupation {
  std::int32_t segment = -1;       // the segment of the first writer
  std::int32_t began = 0;          // the moment at which this segment began
  std::int32_t last_segment = -1;  // the segment that ended last among the users of the buffer
  std::int32_t ended = -1;         // the moment at which that segment ended
  std::int32_t others_ended = -1;  // the latest end of all other segments that use the buffer
};

// Places buffers for a run on several threads. Two buffers share bytes only if the second is born after the death of the first,
// and every segment that uses the first buffer ends before the segment begins that writes the second buffer first, or is that
// segment. The holes, hints and fixed offsets of the Tenants are ignored. Cost: quadratic in the number of buffers with bytes;
// beyond kMostApart of them the result is empty (end == -1). chunk_bytes > 0 asks for several arenas, as in PlaceOptions.
Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when, std::int64_t chunk_bytes = -1);
inline constexpr std::size_t kMostApart = 12000;

}  // namespace TAPEDECK_API
