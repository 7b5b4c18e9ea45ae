#include <tapedeck/capture/planner/place/alive_steps.h>
#include <tapedeck/capture/planner/place/neighbours.h>

#include <algorithm>

namespace tapedeck {

namespace {

struct Stretch {
  std::int32_t first, last, buffer;
};

// By their first steps, ascending; of equal ones by buffer.
std::vector<Stretch> stretches_of(const PlaceProblem& p) {
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    each_alive(p.buffers[i], [&](Steps steps) { all.push_back({steps.first, steps.last, static_cast<std::int32_t>(i)}); });
  std::sort(all.begin(), all.end(),
            [](const Stretch& x, const Stretch& y) { return x.first != y.first ? x.first < y.first : x.buffer < y.buffer; });
  return all;
}

// How often each_meeting() calls meet(), without calling it: a stretch meets those that begin before it, but for those that end
// before it. O(stretches log stretches). REQUIRES: `all` ascends.
std::size_t count_meetings(const std::vector<Stretch>& all) {
  std::vector<std::int32_t> ends;
  for (const Stretch& s : all) ends.push_back(s.last);
  std::sort(ends.begin(), ends.end());
  std::size_t meetings = 0, ended = 0;
  for (std::size_t begun = 0; begun < all.size(); ++begun) {
    while (ends[ended] < all[begun].first) ++ended;
    meetings += begun - ended;
  }
  return meetings;
}

// Calls meet(i, k) for every two intervals of buffers i and k that share a step. Buffers with holes may meet several times.
// REQUIRES: `all` ascends.
template <class Meet>
void each_meeting(const std::vector<Stretch>& all, Meet&& meet) {
  std::vector<Stretch> alive;
  for (const Stretch& next : all) {
    std::size_t kept = 0;
    for (const Stretch& s : alive) {
      if (s.last < next.first) continue;
      alive[kept++] = s;
      if (s.buffer != next.buffer) meet(s.buffer, next.buffer);
    }
    alive.resize(kept);
    alive.push_back(next);
  }
}

}  // namespace

Neighbours::Neighbours(const PlaceProblem& p) {
  const std::size_t n = p.buffers.size();
  from_.assign(n + 1, 0);
  bool holes = false;
  for (const Tenant& b : p.buffers) holes = holes || !b.holes.empty();
  const std::vector<Stretch> all = stretches_of(p);
  const std::size_t pairs = 2 * count_meetings(all);
  complete_ = pairs <= kMostPairs;
  if (!complete_) return;
  each_meeting(all, [&](std::int32_t i, std::int32_t k) { ++from_[i + 1], ++from_[k + 1]; });
  for (std::size_t i = 0; i < n; ++i) from_[i + 1] += from_[i];
  all_.resize(pairs);
  std::vector<std::size_t> at(from_.begin(), from_.end() - 1);
  each_meeting(all, [&](std::int32_t i, std::int32_t k) {
    all_[at[i]++] = k;
    all_[at[k]++] = i;
  });
  if (!holes) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto first = all_.begin() + static_cast<std::ptrdiff_t>(from_[i]),
               last = all_.begin() + static_cast<std::ptrdiff_t>(from_[i + 1]);
    std::sort(first, last);
    const auto end = std::copy(first, std::unique(first, last), all_.begin() + static_cast<std::ptrdiff_t>(kept));
    from_[i] = kept;
    kept = static_cast<std::size_t>(end - all_.begin());
  }
  from_[n] = kept;
  all_.resize(kept);
}

}  // namespace tapedeck
