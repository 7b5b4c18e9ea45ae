#include <tapedeck/capture/place/greedy.h>

#include <tapedeck/capture/place/space.h>

#include <limits>
#include <numeric>
#include <tuple>

namespace tapedeck {

namespace {

template <class Key>
PlaceOrder sorted_by(const PlaceProblem& p, Key key) {
  PlaceOrder order(p.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
    const auto kx = key(p.buffers[x]), ky = key(p.buffers[y]);
    return kx != ky ? kx < ky : x < y;
  });
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

// Each buffer belongs to the busiest step of its life.
PlaceOrder order_by_breadth(const PlaceProblem& p) {
  // Busiest step of a range by a sparse table of maxima.
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

Attempt place_at_hints(const PlaceProblem& p) {
  std::vector<std::int64_t> given = fixed_offsets(p);
  const PlaceOrder order = order_by_size(p);
  Space space(p);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] >= 0) space.insert(static_cast<std::int32_t>(i), p.buffers[i], given[i]);
  for (std::int32_t i : order) {
    const Tenant& b = p.buffers[i];
    if (given[i] >= 0 || b.hint < 0 || b.hint % b.alignment != 0 || !space.is_free(b, b.hint)) continue;
    given[i] = b.hint;
    space.insert(i, b, b.hint);
  }
  Space again(p);
  return attempt(p, order, Fit::first, std::numeric_limits<std::int64_t>::max(), again, given);
}

void each_greedy_attempt(const PlaceProblem& p, const Chunks& chunks, const std::vector<std::int64_t>& given, const std::function<std::int64_t(Attempt&&)>& take) {
  constexpr std::size_t kFew = 1500;     // up to so many are best walked one by one
  constexpr std::size_t kMany = 20000;   // beyond so many there is no time for all: first fit only, until it is close to the bound
  PlaceOrder (*const orders[])(const PlaceProblem&) = {order_by_size, order_by_start, order_by_duration, order_by_area, order_by_breadth};
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  for (auto* make_order : orders) {
    const bool many = p.buffers.size() > kMany;
    if (many && limit - p.bound <= p.bound / 50) break;
    const PlaceOrder order = make_order(p);
    for (Fit fit : {Fit::first, Fit::best}) {
      if (limit <= p.bound || (many && fit == Fit::best)) break;
      if (p.buffers.size() <= kFew) {
        SmallSpace space(chunks);
        limit = take(attempt(p, order, fit, limit, space, given));
      } else {
        Space space(p, chunks);
        limit = take(attempt(p, order, fit, limit, space, given));
      }
    }
  }
}

Attempt place_greedily(const PlaceProblem& p) {
  Attempt best;
  best.end = std::numeric_limits<std::int64_t>::max();
  if (std::any_of(p.buffers.begin(), p.buffers.end(), [](const Tenant& b) { return b.hint >= 0; })) best = place_at_hints(p);
  if (best.end <= p.bound) return best;
  each_greedy_attempt(p, {}, fixed_offsets(p), [&](Attempt&& next) {
    if (next.end < best.end) best = std::move(next);
    return best.end;
  });
  return best;
}

Offsets to_offsets(const PlaceProblem& p, const Attempt& best, std::size_t n_buffers) {
  Offsets result;
  result.offsets.assign(n_buffers, 0);
  for (std::size_t i = 0; i < p.buffers.size(); ++i) result.offsets[p.original[i]] = best.offsets[i];
  result.end = p.buffers.empty() ? 0 : best.end;
  result.bound = p.bound;
  return result;
}

}  // namespace tapedeck
