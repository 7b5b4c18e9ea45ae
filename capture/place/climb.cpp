#include <tapedeck/capture/place/climb.h>
#include <tapedeck/capture/place/neighbours.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tapedeck {

namespace {

// xorshift64*: small, and the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u) {
    if (state_ == 0) state_ = 1;
  }
  std::uint32_t below(std::uint32_t n) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>(((state_ * 0x2545F4914F6CDD1Du >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

class Climb {
 public:
  Climb(const PlaceProblem& p, const Neighbours& near, std::int64_t work, std::uint64_t seed, Attempt* best)
      : p_(p), near_(near), work_(work), random_(seed), best_(best), weight_(p.buffers.size(), 1) {}

  bool run() {
    const std::int64_t before = best_->end;
    std::int64_t lowest = p_.bound;
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      if (p_.buffers[i].fixed < 0) continue;
      weight_[i] = kFixed;
      lowest = std::max(lowest, p_.buffers[i].fixed + p_.buffers[i].bytes);
    }
    // Small steps first, since each that succeeds leaves a better place to go on from; after a failure smaller ones, and when these have got
    // too small the old ones again with more patience.
    std::int64_t step = first_step(lowest);
    std::int64_t patience = static_cast<std::int64_t>(near_.pairs()) * 4 + 1000;
    while (work_ > 0 && best_->end > lowest) {
      if (reach(std::max(best_->end - step, lowest), patience)) {
        step = std::max(step, first_step(lowest) / 2);
      } else if ((step /= 2) * 256 <= best_->end - lowest) {
        step = first_step(lowest);
        patience *= 2;
      }
    }
    return best_->end < before;
  }

 private:
  struct Edge {
    std::int64_t at;
    std::int64_t weight;
  };

  static constexpr std::int64_t kFixed = std::int64_t{1} << 40;

  std::int64_t first_step(std::int64_t lowest) const { return std::max<std::int64_t>((best_->end - lowest) / 20, 1); }

  // Whether a placement was found that ends at `target` or lower, within `patience` examined buffers. It is then the best.
  bool reach(std::int64_t target, std::int64_t patience) {
    target_ = target;
    offset_ = best_->offsets;
    out_.clear();
    for (std::size_t i = 0; i < offset_.size(); ++i)
      if (offset_[i] + p_.buffers[i].bytes > target) take_out(static_cast<std::int32_t>(i));
    std::sort(out_.begin(), out_.end(), [&](std::int32_t x, std::int32_t y) { return p_.buffers[x].bytes != p_.buffers[y].bytes ? p_.buffers[x].bytes < p_.buffers[y].bytes : x < y; });
    const std::int64_t until = std::max<std::int64_t>(work_ - patience, 0);
    while (!out_.empty()) {
      const std::int32_t i = out_.back();
      out_.pop_back();
      if (work_ <= until || !put_back(i)) return false;
    }
    keep();
    return true;
  }

  void take_out(std::int32_t i) {
    offset_[i] = -1;
    out_.push_back(i);
  }

  bool put_back(std::int32_t i) {
    const Tenant& b = p_.buffers[i];
    starts_.clear();
    ends_.clear();
    const auto near = near_.of(i);
    work_ -= static_cast<std::int64_t>(near.size()) + 8;
    for (std::int32_t k : near) {
      if (offset_[k] < 0) continue;
      starts_.push_back({offset_[k], weight_[k]});
      ends_.push_back({offset_[k] + p_.buffers[k].bytes, weight_[k]});
    }
    const auto by_place = [](const Edge& x, const Edge& y) { return x.at < y.at; };
    std::sort(starts_.begin(), starts_.end(), by_place);
    std::sort(ends_.begin(), ends_.end(), by_place);
    const std::int64_t offset = cheapest(b);
    if (offset < 0 || lowest_ >= kFixed) return false;
    if (lowest_ > 0) {
      ++weight_[i];
      for (std::int32_t k : near)
        if (offset_[k] >= 0 && offset_[k] < offset + b.bytes && offset < offset_[k] + p_.buffers[k].bytes) take_out(k);
    }
    offset_[i] = offset;
    return true;
  }

  // Where the least weight is in the way: on the floor, right above something, or right below something.
  std::int64_t cheapest(const Tenant& b) {
    lowest_ = std::numeric_limits<std::int64_t>::max();
    chosen_ = -1;
    ties_ = 0;
    const std::int64_t highest = target_ - b.bytes;
    if (highest < 0) return -1;
    std::size_t s = 0, e = 0;
    std::int64_t begun = 0, done = 0;  // weight of what starts below the candidate's end, of what ends at or below its offset
    const auto consider = [&](std::int64_t offset) {
      if (offset < 0 || offset > highest) return;
      while (s < starts_.size() && starts_[s].at < offset + b.bytes) begun += starts_[s++].weight;
      while (e < ends_.size() && ends_[e].at <= offset) done += ends_[e++].weight;
      const std::int64_t cost = begun - done;
      if (cost < lowest_) {
        lowest_ = cost;
        chosen_ = offset;
        ties_ = 1;
      } else if (cost == lowest_ && cost > 0 && random_.below(static_cast<std::uint32_t>(++ties_)) == 0) {
        chosen_ = offset;
      }
    };
    consider(0);
    for (std::size_t x = 0, y = 0; x < ends_.size() || y < starts_.size();) {  // ascending offsets
      const std::int64_t above = x < ends_.size() ? align_up(ends_[x].at, b.alignment) : std::numeric_limits<std::int64_t>::max();
      std::int64_t below = y < starts_.size() ? starts_[y].at - b.bytes : std::numeric_limits<std::int64_t>::max();
      if (below < 0) {
        ++y;
        continue;
      }
      if (y < starts_.size()) below = below / b.alignment * b.alignment;
      if (above <= below) {
        consider(above);
        ++x;
      } else {
        consider(below);
        ++y;
      }
      if (lowest_ == 0) break;
    }
    return chosen_;
  }

  // All are in.
  void keep() {
    best_->offsets = offset_;
    best_->end = 0;
    for (std::size_t i = 0; i < offset_.size(); ++i) best_->end = std::max(best_->end, offset_[i] + p_.buffers[i].bytes);
  }

  const PlaceProblem& p_;
  const Neighbours& near_;
  std::int64_t work_;
  Random random_;
  Attempt* best_;
  std::vector<std::int64_t> offset_;   // -1: out
  std::vector<std::int32_t> out_;
  std::vector<std::int64_t> weight_;
  std::vector<Edge> starts_, ends_;    // of what stands in the way of one buffer
  std::int64_t target_ = 0, lowest_ = 0, chosen_ = 0;
  std::int64_t ties_ = 0;
};

}  // namespace

bool climb(const PlaceProblem& p, std::int64_t work, std::uint64_t seed, Attempt* best) {
  if (best->end <= p.bound || work <= 0) return false;
  const Neighbours near(p);
  if (!near.complete()) return false;
  return Climb(p, near, work, seed, best).run();
}

}  // namespace tapedeck
