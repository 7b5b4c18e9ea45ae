#include <tapedeck/capture/plan.h>

#include <tapedeck/capture/analysis/liveness.h>

#include <algorithm>

namespace tapedeck {

const char* reason_name(Reason reason) {
  constexpr const char* names[] = {"input",      "state",    "constant", "output", "temporary", "saved",
                                   "recomputed", "gradient", "in_place", "part",     "alias",  "update",    "unread"};
  const auto index = static_cast<std::size_t>(reason);
  return index < std::size(names) ? names[index] : "unknown";
}

const char* segment_end_name(SegmentEnd end) {
  constexpr const char* names[] = {"last", "full", "alone", "phase", "read", "waits", "merged"};
  const auto index = static_cast<std::size_t>(end);
  return index < std::size(names) ? names[index] : "unknown";
}

namespace {

// The value whose bytes v is a window on, is a part of, or has taken over, all the way. Windows and takeovers refer to earlier values, parts to
// later ones, whose own bytes they are or part of one later still.
ValueId holder_of(const Plan& plan, ValueId v) {
  for (std::size_t steps = 0; steps <= plan.values.size(); ++steps) {
    const Placement& p = plan.values[v];
    const bool shares = p.reason == Reason::alias || p.reason == Reason::in_place;
    const bool down = shares && p.other >= 0 && p.other < v;
    const bool up = p.reason == Reason::part && p.other > v && p.other < static_cast<ValueId>(plan.values.size());
    if (!down && !up) return v;
    v = p.other;
  }
  return v;
}

}  // namespace

std::vector<std::int64_t> live_bytes(const Plan& plan) {
  const NodeId n_nodes = plan.graph.node_count();
  std::vector<NodeId> last(plan.values.size(), kNone);  // by holder
  for (ValueId v = 0; v < static_cast<ValueId>(plan.values.size()); ++v) {
    const ValueId holder = holder_of(plan, v);
    last[holder] = std::max({last[holder], plan.values[v].death, plan.values[v].birth});
  }
  std::vector<Interval> alive;
  const auto add = [&](NodeId first, NodeId final, std::int64_t bytes) {
    if (first >= 0 && first < n_nodes && final >= first) alive.push_back({bytes, first, std::min(final, n_nodes - 1)});
  };
  for (ValueId v = 0; v < static_cast<ValueId>(plan.values.size()); ++v)
    if (plan.values[v].where == Where::arena && holder_of(plan, v) == v)
      add(plan.values[v].birth, last[v], plan.graph.values[v].type.bytes());
  for (NodeId n = 0; n < n_nodes && n < static_cast<NodeId>(plan.workspace.size()); ++n) add(n, n, plan.workspace[n].bytes);

  std::vector<std::int64_t> live = sum_alive(alive, n_nodes);
  for (std::int64_t& bytes : live) bytes += plan.external_bytes;
  return live;
}

}  // namespace tapedeck
