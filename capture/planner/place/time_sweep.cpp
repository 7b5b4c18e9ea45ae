#include <tapedeck/capture/planner/place/time_sweep.h>

#include <tapedeck/capture/planner/place/greedy_orders.h>

#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

// The free bytes below the highest end so far, as gaps, sorted by offset and by size. Bytes that are
// given back join the gaps that they touch. The gap that alignment leaves at the top does not join a gap right below it.
class Gaps {
 public:
  std::int64_t take(const Tenant& b) {
    auto at = by_size_.lower_bound({b.bytes, 0});
    for (int looked = 0; at != by_size_.end(); ++at) {  // the tightest gap may not hold an aligned offset
      if (align_up(at->second, b.alignment) + b.bytes <= at->second + at->first) return take_from(at->second, at->first, b);
      constexpr int kMostLooks = 4;
      if (++looked == kMostLooks) break;
    }
    at = by_size_.lower_bound({b.bytes + b.alignment - 1, 0});
    if (at != by_size_.end()) return take_from(at->second, at->first, b);
    const std::int64_t offset = align_up(top_, b.alignment);
    if (offset > top_) add(top_, offset);
    top_ = offset + b.bytes;
    return offset;
  }

  // Frees the bytes first..end-1.
  void give_back(std::int64_t first, std::int64_t end) {
    auto above = by_offset_.lower_bound(first);
    if (above != by_offset_.begin() && std::prev(above)->second == first) {
      --above;
      first = above->first;
      above = drop(above);
    }
    if (above != by_offset_.end() && above->first == end) {
      end = above->second;
      drop(above);
    }
    add(first, end);
  }

 private:
  using ByOffset = std::map<std::int64_t, std::int64_t>;

  void add(std::int64_t first, std::int64_t end) {
    by_offset_.emplace(first, end);
    by_size_.emplace(end - first, first);
  }
  ByOffset::iterator drop(ByOffset::iterator gap) {
    by_size_.erase({gap->second - gap->first, gap->first});
    return by_offset_.erase(gap);
  }
  std::int64_t take_from(std::int64_t first, std::int64_t bytes, const Tenant& b) {
    const std::int64_t offset = align_up(first, b.alignment), end = first + bytes;
    drop(by_offset_.find(first));
    if (offset > first) add(first, offset);
    if (offset + b.bytes < end) add(offset + b.bytes, end);
    return offset;
  }

  ByOffset by_offset_;                                       // from the first byte to the end
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // size, first
  std::int64_t top_ = 0;
};

}  // namespace

Attempt place_by_sweep(const PlaceProblem& p) {
  using Death = std::pair<std::int32_t, std::int32_t>;  // step, buffer
  std::priority_queue<Death, std::vector<Death>, std::greater<>> alive;
  Gaps gaps;
  Attempt result;
  result.offsets.assign(p.buffers.size(), 0);
  for (std::int32_t i : order_by_start(p)) {
    const Tenant& b = p.buffers[i];
    for (; !alive.empty() && alive.top().first < b.birth; alive.pop()) {
      const std::int32_t dead = alive.top().second;
      gaps.give_back(result.offsets[dead], result.offsets[dead] + p.buffers[dead].bytes);
    }
    result.offsets[i] = gaps.take(b);
    result.end = std::max(result.end, result.offsets[i] + b.bytes);
    alive.emplace(b.death, i);
  }
  return result;
}

}  // namespace tapedeck
