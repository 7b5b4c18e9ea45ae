#include <tapedeck/capture/plan/byte_owners.h>

#include <algorithm>

namespace tapedeck {

namespace {

// Windows and takeovers refer to earlier values, parts to later ones.
ValueId shares_with(const Plan& plan, ValueId v, bool takeovers) {
  const Placement& p = plan.values[v];
  const bool down = p.reason == Reason::alias || (takeovers && p.reason == Reason::in_place);
  if (down && p.other >= 0 && p.other < v) return p.other;
  if (p.reason == Reason::part && p.other > v && p.other < static_cast<ValueId>(plan.values.size())) return p.other;
  return kNone;
}

// Each value is walked over once; a later walk takes the answer that it finds.
std::vector<ValueId> follow(const Plan& plan, bool takeovers) {
  std::vector<ValueId> end(plan.values.size(), kNone), path;
  for (ValueId v = 0; v < static_cast<ValueId>(end.size()); ++v) {
    ValueId at = v;
    for (ValueId next; end[at] == kNone && (next = shares_with(plan, at, takeovers)) != kNone; at = next) {
      end[at] = at;  // where a circle ends
      path.push_back(at);
    }
    if (end[at] == kNone) end[at] = at;
    for (const ValueId w : path) end[w] = end[at];
    path.clear();
  }
  return end;
}

}  // namespace

std::vector<ValueId> byte_owners(const Plan& plan) { return follow(plan, false); }
std::vector<ValueId> byte_holders(const Plan& plan) { return follow(plan, true); }

std::vector<Interval> held_in_arena(const Plan& plan) {
  const NodeId n_nodes = plan.graph.node_count();
  const std::vector<ValueId> holder = byte_holders(plan);
  std::vector<NodeId> last(plan.values.size(), kNone);
  for (ValueId v = 0; v < static_cast<ValueId>(plan.values.size()); ++v)
    last[holder[v]] = std::max({last[holder[v]], plan.values[v].death, plan.values[v].birth});
  std::vector<Interval> held;
  const auto add = [&](NodeId first, NodeId final, std::int64_t bytes) {
    if (first >= 0 && first < n_nodes && final >= first) held.push_back({bytes, first, std::min(final, n_nodes - 1)});
  };
  for (ValueId v = 0; v < static_cast<ValueId>(plan.values.size()); ++v)
    if (plan.values[v].where == Where::arena && holder[v] == v)
      add(plan.values[v].birth, last[v], plan.graph.values[v].type.bytes());
  for (NodeId n = 0; n < n_nodes && n < static_cast<NodeId>(plan.workspace.size()); ++n) add(n, n, plan.workspace[n].bytes);
  return held;
}

}  // namespace tapedeck
