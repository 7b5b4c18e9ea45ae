// The steps at which a buffer needs its bytes.
#pragma once

#include <tapedeck/capture/place/place.h>

#include <algorithm>

namespace tapedeck {

// Calls visit(Steps) for every stretch of steps between the buffer's holes, ascending.
template <class Visit>
void each_alive(const Tenant& b, Visit&& visit) {
  std::int64_t from = b.birth;   // a hole may end with the last step there is
  for (const Steps& hole : b.holes) {
    if (hole.first > from) visit(Steps{static_cast<std::int32_t>(from), hole.first - 1});
    from = std::max(from, std::int64_t{hole.last} + 1);
  }
  if (from <= b.death) visit(Steps{static_cast<std::int32_t>(from), b.death});
}

// Whether both need their bytes at some step. O(holes of both).
inline bool alive_together(const Tenant& a, const Tenant& b) {
  if (a.death < b.birth || b.death < a.birth) return false;
  bool meet = false;
  each_alive(a, [&](Steps x) {
    each_alive(b, [&](Steps y) { meet = meet || (x.first <= y.last && y.first <= x.last); });
  });
  return meet;
}

}  // namespace tapedeck
