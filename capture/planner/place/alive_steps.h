// The steps at which a buffer needs its bytes.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <algorithm>

namespace tapedeck {

// Calls visit(Steps) for every interval between the buffer's holes, in ascending order.
template <class Visit>
void each_alive(const Tenant& b, Visit&& visit) {
  std::int64_t from = b.birth;  // 64 bits, because a hole may end at the last possible step
  for (const Steps& hole : b.holes) {
    if (hole.first > from) visit(Steps{static_cast<std::int32_t>(from), hole.first - 1});
    from = std::max(from, std::int64_t{hole.last} + 1);
  }
  if (from <= b.death) visit(Steps{static_cast<std::int32_t>(from), b.death});
}

// An iterator over the intervals that each_alive() visits.
class Stretches {
 public:
  explicit Stretches(const Tenant& b) : b_(b), from_(b.birth) { next(); }

  bool is_over() const { return is_over_; }
  Steps now() const { return now_; }
  void next() {
    while (hole_ < b_.holes.size()) {
      const Steps hole = b_.holes[hole_++];
      const std::int64_t from = from_;
      from_ = std::max(from_, std::int64_t{hole.last} + 1);
      if (hole.first <= from) continue;
      now_ = {static_cast<std::int32_t>(from), hole.first - 1};
      return;
    }
    is_over_ = from_ > b_.death;
    if (!is_over_) now_ = {static_cast<std::int32_t>(from_), b_.death};
    from_ = std::int64_t{b_.death} + 1;
  }

 private:
  const Tenant& b_;
  std::int64_t from_;  // 64 bits, because a hole may end at the last possible step
  std::size_t hole_ = 0;
  Steps now_;
  bool is_over_ = false;
};

// True if both buffers need their bytes at some common step. O(holes of both buffers), and less if an early interval is common.
inline bool alive_together(const Tenant& a, const Tenant& b) {
  if (a.death < b.birth || b.death < a.birth) return false;
  if (a.holes.empty() && b.holes.empty()) return true;
  Stretches x(a), y(b);
  while (!x.is_over() && !y.is_over()) {
    if (x.now().last < y.now().first)
      x.next();
    else if (y.now().last < x.now().first)
      y.next();
    else
      return true;
  }
  return false;
}

}  // namespace tapedeck
