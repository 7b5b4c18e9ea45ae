// The ejection search; see ejection_search.h. One target is tried like this:
//
//   take out every buffer that ends above the target
//   while some buffer is out:
//     choose the offset where the buffers in the way weigh least; take them out; put the buffer there
//     if buffers were in the way: the weight of the buffer that was put back grows by 1
//   found: the placement ends at the target or below
#include <tapedeck/capture/planner/place/ejection_search.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tapedeck {

namespace {

constexpr std::int64_t kFixed = std::int64_t{1} << 40;  // the weight of a fixed buffer: no other weight exceeds it
constexpr std::int64_t kNoOffset = std::numeric_limits<std::int64_t>::max();
// Sorting the edges of a buffer that is near this one takes as long as looking at the edges of so many buffers.
constexpr std::size_t kMostPerNear = 20;

void insert_edge(std::int64_t at, std::int32_t i, std::vector<std::pair<std::int64_t, std::int32_t>>* all) {
  const std::pair edge(at, i);
  all->insert(std::lower_bound(all->begin(), all->end(), edge), edge);
}

void erase_edge(std::int64_t at, std::int32_t i, std::vector<std::pair<std::int64_t, std::int32_t>>* all) {
  all->erase(std::lower_bound(all->begin(), all->end(), std::pair(at, i)));
}

}  // namespace

Climber::Climber(const PlaceProblem& p, std::uint64_t seed)
    : p_(p),
      near_(p),
      random_(seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u),
      lowest_(p.bound),
      weight_(p.buffers.size(), 1),
      near_at_(p.buffers.size(), 0) {
  for (Edges* edges : {&starts_, &ends_}) edges->list.resize(p.buffers.size());
  keeps_edges_ = near_.pairs() * kMostPerNear >= p.buffers.size() * p.buffers.size();
  if (random_ == 0) random_ = 1;
  patience_ = static_cast<std::int64_t>(near_.pairs()) + 1000;
  for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
    if (p_.buffers[i].fixed < 0) continue;
    weight_[i] = kFixed;
    lowest_ = std::max(lowest_, p_.buffers[i].fixed + p_.buffers[i].bytes);
  }
}

// The generator xorshift64*: small, and equal on every machine.
std::uint32_t Climber::random_below(std::uint32_t n) {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<std::uint32_t>(((random_ * 0x2545F4914F6CDD1Du >> 32) * n) >> 32);
}

std::int64_t Climber::first_step(const Attempt& best) const { return std::max<std::int64_t>((best.end - lowest_) / 2, 1); }

// The first target lies half of the way to the bound. A failure halves the distance to the target. When the distance is too
// small, the search begins again with half of the way, and twice the patience. A small distance costs about as much as a large
// one that succeeds, because the time goes into learning which buffers are hard to place.
bool Climber::climb(std::int64_t work, Attempt* best, const SearchStop& stop) {
  const std::int64_t before = best->end;
  if (!is_able()) return false;
  while (work > 0 && best->end > lowest_) {
    if (step_ == 0) step_ = first_step(*best);
    if (!has_target_ || target_ >= best->end) set_target(std::max(best->end - step_, lowest_), *best);
    const Outcome outcome = reach_target(&work, stop);
    if (outcome == Outcome::paused) break;
    has_target_ = false;
    if (outcome == Outcome::found) {
      keep(best);
      step_ = first_step(*best);
    } else if ((step_ /= 2) <= (best->end - lowest_) / 256) {
      step_ = first_step(*best);
      patience_ = std::min(patience_ * 2, std::int64_t{1} << 60);
    }
  }
  return best->end < before;
}

bool Climber::reach(std::int64_t target, std::int64_t work, Attempt* best, const SearchStop& stop) {
  if (best->end <= target) return true;
  if (!is_able() || target < lowest_) return false;
  set_target(target, *best);
  left_ = work;
  if (reach_target(&work, stop) == Outcome::found) keep(best);
  has_target_ = false;
  return best->end <= target;
}

void Climber::set_target(std::int64_t target, const Attempt& best) {
  target_ = target;
  has_target_ = true;
  left_ = patience_;
  offset_ = best.offsets;
  out_.clear();
  all_starts_.clear();
  all_ends_.clear();
  for (std::size_t k = 0; k < offset_.size(); ++k) {
    const auto i = static_cast<std::int32_t>(k);
    const std::int64_t end = offset_[k] + p_.buffers[k].bytes;
    if (end > target) {
      offset_[k] = -1;
      out_.push_back(i);
    } else if (keeps_edges_) {
      all_starts_.emplace_back(offset_[k], i);
      all_ends_.emplace_back(end, i);
    }
  }
  std::sort(all_starts_.begin(), all_starts_.end());
  std::sort(all_ends_.begin(), all_ends_.end());
  std::sort(out_.begin(), out_.end(), [&](std::int32_t x, std::int32_t y) {  // the largest is put back first
    return p_.buffers[x].bytes != p_.buffers[y].bytes ? p_.buffers[x].bytes < p_.buffers[y].bytes : x < y;
  });
}

Climber::Outcome Climber::reach_target(std::int64_t* work, const SearchStop& stop) {
  constexpr unsigned kLookEvery = 16;  // buffers put back between two looks at the clock
  for (unsigned n = 0; !out_.empty(); ++n) {
    if (left_ <= 0) return Outcome::failed;
    if (*work <= 0 || (n % kLookEvery == 0 && stop.now())) return Outcome::paused;
    const std::int32_t i = out_.back();
    out_.pop_back();
    const std::int64_t cost = static_cast<std::int64_t>(near_.of(i).size()) + 8;
    left_ -= cost;
    *work -= cost;
    if (!put_back(i)) return Outcome::failed;
  }
  return Outcome::found;
}

void Climber::take_out(std::int32_t i) {
  if (keeps_edges_) {
    erase_edge(offset_[i], i, &all_starts_);
    erase_edge(offset_[i] + p_.buffers[i].bytes, i, &all_ends_);
  }
  offset_[i] = -1;
  out_.push_back(i);
}

void Climber::lay(std::int32_t i, std::int64_t offset) {
  offset_[i] = offset;
  if (!keeps_edges_) return;
  insert_edge(offset, i, &all_starts_);
  insert_edge(offset + p_.buffers[i].bytes, i, &all_ends_);
}

// Puts buffer i back. Returns false if only a fixed buffer could give way.
bool Climber::put_back(std::int32_t i) {
  const Tenant& b = p_.buffers[i];
  gather_edges(i);
  const std::int64_t offset = find_cheapest(b);
  if (offset < 0 || cheapest_ >= kFixed) return false;
  if (cheapest_ > 0) {
    ++weight_[i];
    for (std::int32_t k : near_.of(i))
      if (offset_[k] >= 0 && offset_[k] < offset + b.bytes && offset < offset_[k] + p_.buffers[k].bytes) take_out(k);
  }
  lay(i, offset);
  return true;
}

void Climber::gather_edges(std::int32_t i) {
  if (keeps_edges_) {
    ++asked_;
    for (std::int32_t k : near_.of(i)) near_at_[k] = asked_;
    pick_near(all_starts_, &starts_);
    pick_near(all_ends_, &ends_);
    return;
  }
  std::size_t count = 0;
  for (std::int32_t k : near_.of(i)) {
    if (offset_[k] < 0) continue;
    starts_.list[count] = {offset_[k], weight_[k]};
    ends_.list[count++] = {offset_[k] + p_.buffers[k].bytes, weight_[k]};
  }
  starts_.count = ends_.count = count;
  sort_edges(&starts_);
  sort_edges(&ends_);
}

// The body of the loop has no branch, because the processor would often guess its direction wrongly.
void Climber::pick_near(const AllEdges& all, Edges* near) const {
  std::size_t count = 0;
  for (const auto& [at, k] : all) {
    near->list[count] = {at, weight_[k]};
    count += near_at_[k] == asked_;
  }
  near->count = count;
}

// Sorts the edges by place. A long list is sorted digit by digit, the least digit first.
void Climber::sort_edges(Edges* edges) {
  constexpr std::size_t kFew = 200;
  constexpr std::size_t kFewForBits = 1000;
  constexpr int kMostBits = 11;
  const std::size_t count = edges->count;
  std::vector<Edge>& list = edges->list;
  if (count < kFew) {
    std::sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count),
              [](const Edge& x, const Edge& y) { return x.at < y.at; });
    return;
  }
  const int most_bits = count < kFewForBits ? 8 : kMostBits;
  const int bits = std::bit_width(static_cast<std::uint64_t>(target_));  // no edge lies above the target
  const int digits = (bits + most_bits - 1) / most_bits, bits_of_digit = (bits + digits - 1) / digits;
  const std::int64_t mask = (std::int64_t{1} << bits_of_digit) - 1;
  sorted_.resize(list.size());
  for (int shift = 0; shift < bits; shift += bits_of_digit) {
    buckets_.assign(static_cast<std::size_t>(mask) + 2, 0);
    for (std::size_t k = 0; k < count; ++k) ++buckets_[static_cast<std::size_t>(list[k].at >> shift & mask) + 1];
    for (std::size_t k = 1; k < buckets_.size(); ++k) buckets_[k] += buckets_[k - 1];
    for (std::size_t k = 0; k < count; ++k) sorted_[static_cast<std::size_t>(buckets_[list[k].at >> shift & mask]++)] = list[k];
    list.swap(sorted_);
  }
}

// The offset at which the buffers in the way weigh least: offset 0, or directly above a buffer, or directly below one. If no
// buffer is in the way at several offsets, the lowest of these is chosen. -1: the buffer does not fit below the target.
std::int64_t Climber::find_cheapest(const Tenant& b) {
  cheapest_ = kNoOffset;
  std::int64_t chosen = -1;
  const std::int64_t highest = target_ - b.bytes;
  std::uint32_t ties = 0;
  std::size_t s = 0, e = 0, above = 0, below = 0;
  // The weight of the buffers that start below the end of b at the offset considered, and of those that end at or below this
  // offset. The difference of the two is the weight in the way.
  std::int64_t begun = 0, done = 0;
  // The next offset directly above a buffer, and the next one directly below.
  const auto next_on = [&] { return above < ends_.count ? align_up(ends_.list[above].at, b.alignment) : kNoOffset; };
  const auto next_under = [&] {
    if (below == starts_.count) return kNoOffset;
    const std::int64_t room = starts_.list[below].at - b.bytes;
    return room >= 0 ? align_down(room, b.alignment) : room;
  };
  std::int64_t on = next_on(), under = next_under();
  for (std::int64_t offset = 0; offset <= highest && cheapest_ > 0;) {  // ascending offsets
    if (offset >= 0) {
      while (s < starts_.count && starts_.list[s].at < offset + b.bytes) begun += starts_.list[s++].weight;
      while (e < ends_.count && ends_.list[e].at <= offset) done += ends_.list[e++].weight;
      const std::int64_t cost = begun - done;
      if (cost < cheapest_) {
        cheapest_ = cost;
        chosen = offset;
        ties = 1;
      } else if (cost == cheapest_ && random_below(++ties) == 0) {
        chosen = offset;
      }
    }
    if (on <= under) {
      offset = on;
      ++above;
      on = next_on();
    } else {
      offset = under;
      ++below;
      under = next_under();
    }
  }
  return chosen;
}

void Climber::keep(Attempt* best) const {
  best->offsets = offset_;
  best->end = 0;
  for (std::size_t i = 0; i < offset_.size(); ++i) best->end = std::max(best->end, offset_[i] + p_.buffers[i].bytes);
}

bool climb(const PlaceProblem& p, std::int64_t work, std::uint64_t seed, Attempt* best) {
  if (best->end <= p.bound || work <= 0) return false;
  return Climber(p, seed).climb(work, best);
}

}  // namespace tapedeck
