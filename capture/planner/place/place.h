// Dynamic storage allocation: offsets for buffers whose lifetimes are known, so that no two that are alive at the same time
// overlap and the end of the highest is low. A library of its own: it knows nothing of graphs.
//
// NP-hard. place() is anytime: greedy orders first (XLA's, TFLite's and a run-time allocator's, each by first and by best fit),
// done if one meets the bound; else the instance is split where nothing is alive, and in each part exact searches
// (exact_search.h) are raced over a ladder of capacities from the bound up (exact_race.h), and where that wins nothing, or the
// part is too big for it, buffers are ejected (ejection_search.h). In several arenas the orders of greedy placement are changed
// instead (chunks.h). Whatever the limit, there is an answer, and `bound` says how far from the best it can be.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Steps first..last, both included.
struct Steps {
  std::int32_t first = 0, last = 0;
};

// Alive during steps birth..death, both included.
struct Tenant {
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;  // a power of two or any other positive number
  std::int32_t birth = 0;
  std::int32_t death = 0;
  std::int64_t fixed = -1;  // >= 0: it lies there, and others make way
  std::int64_t hint =
      -1;  // >= 0: all lie at theirs if that costs 1 % at most: a plan redone after a small change keeps its addresses
  std::vector<Steps> holes = {};  // within birth..death, ascending, disjoint: its bytes are not needed then
};

struct PlaceOptions {
  std::int64_t work = 0;  // steps of search beyond the greedy orders; equal work, equal answer, on any number of threads
  double seconds = 0;  // > 0: no more time than this, even if work (unless 0) is left; answers may then differ from run to run
  std::int64_t capacity = -1;            // >= 0: any end up to it will do, and nothing lower is looked for
  std::int64_t slack = 0;                // an end that is no further above the bound is as good as the bound
  int retries = 0;                       // greedy attempts with what ended too high in front, up to so many (greedy_orders.h)
  bool first_fit_only = false;           // of the greedy orders: half the time, and seldom a higher end
  std::int64_t chunk_bytes = -1;         // > 0: several arenas, none larger (but for a buffer that is larger itself); hints and
                                         // `start` are not looked at then
  std::vector<std::int64_t> start = {};  // by buffer, if not empty: a right placement to improve on instead of greedy ones
  std::int64_t most_pairs =
      std::int64_t{1} << 23;  // of buffers alive together in a part: beyond, it is climbed, not searched (each counts twice)
  int threads = 1;            // that search, as far as there are cores; more than 5,000 buffers are placed greedily on them too
  const std::atomic<bool>* cancel = nullptr;  // the best so far is the answer
  std::function<void(std::int64_t end, double seconds)> on_better =
      {};  // greedy's end, then each lower one; one call at a time, maybe from another thread
};

struct Offsets {
  std::vector<std::int64_t> offsets;  // by buffer, within its arena; of no bytes, or never alive: where it is fixed, or 0
  std::vector<std::int32_t> arena;    // by buffer; empty unless chunk_bytes is given
  std::int64_t end = 0;               // the highest offset + bytes; of several arenas the sum of these
  std::int64_t bound = 0;  // most bytes alive at once, or the end of a fixed buffer that ends higher: no placement ends lower
  bool optimal = false;    // no placement ends lower: it meets the bound, or all lower ends were searched
  bool at_hints = false;   // kept where the hints say, but for what was moved out of the way
  std::int64_t work = 0;   // steps of search that were taken
};

// What place() says of buffers that are no instance: "buffer 3 " or "buffer 3 and buffer 5 ", and what is wrong with them.
class PlaceError : public UsageError {
 public:
  PlaceError(std::vector<std::int32_t> buffers, const std::string& fault);
  const std::vector<std::int32_t>& buffers() const { return buffers_; }  // numbers in what place() was given; one or two
  const std::string& fault() const { return fault_; }                    // without them: "have ..."

 private:
  std::vector<std::int32_t> buffers_;
  std::string fault_;
};

// Deterministic unless `seconds` is given. Throws PlaceError for a negative size, an alignment below one, a death before the
// birth, holes that are not as said, fixed buffers that overlap while alive, fixed buffers with chunk_bytes (a fixed offset
// does not say in which arena), and sums beyond 2^62. Thread safe. Cost of the greedy part: O(n log n + pairs alive together)
// for each of ten attempts, n counting the stretches between holes, and a pair as many times as both have stretches; beyond
// 20,000 buffers about a second at most.
Offsets place(const std::vector<Tenant>& buffers, const PlaceOptions& options = {});

// PlaceOptions::work that takes about so many microseconds on a nominal core: a step of search looks at the buffers around one.
// `stretches`: of all lives, between holes.
std::int64_t place_steps(double us, std::size_t stretches);

// Who writes a buffer and who is done with it when, in a run on several threads: moments of the simulated run
// (capture/planner/segments/simulate_run.h).
struct Occupation {
  std::int32_t segment = -1;       // of the first writer
  std::int32_t began = 0;          // when that segment began
  std::int32_t last_segment = -1;  // of its users the one that ended last
  std::int32_t ended = -1;         // when that was
  std::int32_t others_ended = -1;  // the same of all other users
};

// Two buffers share bytes only if the second is born after the death of the first and, as the run has it, all segments that use
// the first have ended when the second's begins, or the last of them is the second's own. Holes, hints and fixed offsets are
// not looked at. Quadratic in the buffers that have bytes: nothing (end == -1) if these are more than kMostApart. chunk_bytes >
// 0: several arenas, as in PlaceOptions.
Offsets place_apart(const std::vector<Tenant>& buffers, const std::vector<Occupation>& when, std::int64_t chunk_bytes = -1);
inline constexpr std::size_t kMostApart = 12000;

}  // namespace TAPEDECK_API
