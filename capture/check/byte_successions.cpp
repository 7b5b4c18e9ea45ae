#include <tapedeck/capture/check/byte_successions.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tapedeck {

namespace {

struct Held {
  std::int64_t end = 0;
  std::int32_t by = 0;
};

// The bytes as the stretches so far hold them: from each key to its end, the last stretch that took them.
class Holders {
 public:
  // Gives [first, end) to `by`; calls each(holder) for every piece that a stretch held.
  template <class Each>
  void give(std::int64_t first, std::int64_t end, std::int32_t by, Each each) {
    auto it = held_.upper_bound(first);
    if (it != held_.begin() && std::prev(it)->second.end > first) --it;
    while (it != held_.end() && it->first < end) {
      const std::int64_t start = it->first;
      const Held old = it->second;
      each(old.by);
      it = held_.erase(it);
      if (start < first) held_[start] = {first, old.by};
      if (old.end > end) it = held_.emplace(end, old).first;
    }
    held_[first] = {end, by};
  }

 private:
  std::map<std::int64_t, Held> held_;
};

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> successions(const std::vector<Stretch>& stretches) {
  std::vector<std::int32_t> order(stretches.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return stretches[a].since < stretches[b].since; });
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  Holders holders;
  for (const std::int32_t s : order) {
    if (stretches[s].first >= stretches[s].end) continue;
    holders.give(stretches[s].first, stretches[s].end, s, [&](std::int32_t before) { pairs.push_back({before, s}); });
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace tapedeck
