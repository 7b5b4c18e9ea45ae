#include <tapedeck/capture/plan/plan.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <iterator>

namespace tapedeck {

const char* reason_name(Reason reason) {
  constexpr const char* names[] = {"input",    "state",    "constant", "output", "temporary", "saved", "recomputed",
                                   "gradient", "in_place", "part",     "alias",  "update",    "unread"};
  const auto index = static_cast<std::size_t>(reason);
  return index < std::size(names) ? names[index] : "unknown";
}

const char* segment_end_name(SegmentEnd end) {
  constexpr const char* names[] = {"last", "full", "alone", "phase", "read", "waits", "merged"};
  const auto index = static_cast<std::size_t>(end);
  return index < std::size(names) ? names[index] : "unknown";
}

std::vector<std::int64_t> live_bytes(const Plan& plan) {
  std::vector<std::int64_t> live = sum_alive(held_in_arena(plan), plan.graph.node_count());
  for (std::int64_t& bytes : live) bytes += plan.external_bytes;
  return live;
}

}  // namespace tapedeck
