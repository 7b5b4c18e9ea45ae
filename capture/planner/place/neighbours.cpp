#include <tapedeck/capture/planner/place/alive_steps.h>
#include <tapedeck/capture/planner/place/neighbours.h>

#include <algorithm>

namespace tapedeck {

namespace {

struct Stretch {
  std::int32_t first, last, buffer;
};

// Calls meet(i, k) for every two intervals of buffers i and k that share a step. Buffers with holes may meet several times.
// Stops as soon as meet returns false.
template <class Meet>
void each_meeting(const PlaceProblem& p, Meet&& meet) {
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    each_alive(p.buffers[i], [&](Steps steps) { all.push_back({steps.first, steps.last, static_cast<std::int32_t>(i)}); });
  std::sort(all.begin(), all.end(),
            [](const Stretch& x, const Stretch& y) { return x.first != y.first ? x.first < y.first : x.buffer < y.buffer; });
  std::vector<Stretch> alive;
  for (const Stretch& next : all) {
    std::size_t kept = 0;
    for (const Stretch& s : alive) {
      if (s.last < next.first) continue;
      alive[kept++] = s;
      if (s.buffer != next.buffer && !meet(s.buffer, next.buffer)) return;
    }
    alive.resize(kept);
    alive.push_back(next);
  }
}

}  // namespace

Neighbours::Neighbours(const PlaceProblem& p) {
  const std::size_t n = p.buffers.size();
  from_.assign(n + 1, 0);
  std::size_t pairs = 0;
  bool holes = false;
  for (const Tenant& b : p.buffers) holes = holes || !b.holes.empty();
  each_meeting(p, [&](std::int32_t i, std::int32_t k) {
    ++from_[i + 1], ++from_[k + 1];
    return complete_ = (pairs += 2) <= kMostPairs;
  });
  if (!complete_) return;
  for (std::size_t i = 0; i < n; ++i) from_[i + 1] += from_[i];
  all_.resize(pairs);
  std::vector<std::size_t> at(from_.begin(), from_.end() - 1);
  each_meeting(p, [&](std::int32_t i, std::int32_t k) {
    all_[at[i]++] = k;
    all_[at[k]++] = i;
    return true;
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
