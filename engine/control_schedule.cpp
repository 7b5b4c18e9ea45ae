// Which carried values of a loop are kept while it is walked back, and what is computed again.
#include <tapedeck/engine/control.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

using Advance = std::function<Carry(const Carry&, std::int64_t)>;
using Back = std::function<void(const Carry&, std::int64_t)>;

std::int64_t floor_sqrt(std::int64_t n) {
  auto r = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (r * r > n) --r;
  while ((r + 1) * (r + 1) <= n) ++r;
  return r;
}

std::int64_t block_length(std::int64_t trips, std::int64_t checkpoint) {
  if (checkpoint == 0) return std::max<std::int64_t>(trips, 1);
  if (checkpoint > 0) return checkpoint;
  const std::int64_t root = floor_sqrt(trips);
  return std::max<std::int64_t>(root * root < trips ? root + 1 : root, 1);
}

std::int64_t snapshots(std::int64_t trips) {
  std::int64_t s = 0;
  while ((std::int64_t{1} << s) < trips && s < 62) ++s;
  return s;
}

// Passes lo ... hi - 1 from their first carried values, keeping all.
void walk_block(std::int64_t lo, std::int64_t hi, Carry first, const Advance& advance, const Back& back) {
  std::vector<Carry> kept{std::move(first)};
  for (std::int64_t i = lo; i + 1 < hi; ++i) kept.push_back(advance(kept.back(), i));
  for (std::int64_t i = hi; i-- > lo;) {
    back(kept.back(), i);
    kept.pop_back();
  }
}

void walk_blocks(std::int64_t trips, std::int64_t length, Carry c, const Advance& advance, const Back& back) {
  std::vector<Carry> starts;
  for (std::int64_t lo = 0; lo < trips; lo += length) {
    starts.push_back(c);
    if (lo + length < trips)
      for (std::int64_t i = lo; i < lo + length; ++i) c = advance(c, i);
  }
  c.clear();
  while (!starts.empty()) {
    const std::int64_t lo = static_cast<std::int64_t>(starts.size() - 1) * length;
    Carry first = std::move(starts.back());
    starts.pop_back();
    walk_block(lo, std::min(lo + length, trips), std::move(first), advance, back);
  }
}

// How many passes can be walked back with s snapshots when none is run forward more than r times: (s + r) choose s.
std::int64_t reach(std::int64_t s, std::int64_t r, std::int64_t at_most) {
  std::int64_t n = 1;
  for (std::int64_t k = 1; k <= s; ++k) {
    if (n > at_most * k / (r + k) + 1) return at_most;
    n = n * (r + k) / k;   // exact: a binomial coefficient at each step
  }
  return std::min(n, at_most);
}

void walk_binomial(std::int64_t lo, std::int64_t hi, const Carry& first, std::int64_t s, const Advance& advance, const Back& back) {
  const std::int64_t trips = hi - lo;
  if (trips == 0) return;
  if (trips == 1) return back(first, lo);
  std::int64_t r = 1;
  while (reach(s, r, trips) < trips) ++r;
  // The right part is as long as it may be with one snapshot less; the left one then needs no more runs than r - 1.
  const std::int64_t middle = lo + std::max<std::int64_t>(trips - reach(s - 1, r, trips - 1), 1);
  {
    Carry c = first;
    for (std::int64_t i = lo; i < middle; ++i) c = advance(c, i);
    walk_binomial(middle, hi, c, s - 1, advance, back);
  }
  walk_binomial(lo, middle, first, s, advance, back);
}

}  // namespace

void walk_back(std::int64_t trips, std::int64_t checkpoint, Carry first, const Advance& advance, const Back& back) {
  if (trips <= 0) return;
  if (checkpoint == kCheckpointLog) return walk_binomial(0, trips, first, std::max<std::int64_t>(snapshots(trips), 1), advance, back);
  walk_blocks(trips, block_length(trips, checkpoint), std::move(first), advance, back);
}

std::int64_t tape_entries(std::int64_t trips, std::int64_t checkpoint) {
  if (trips <= 0) return 0;
  if (checkpoint == kCheckpointLog) return snapshots(trips) + 2;
  const std::int64_t length = block_length(trips, checkpoint);
  return (trips + length - 1) / length - 1 + std::min(length, trips);
}

}  // namespace tapedeck
