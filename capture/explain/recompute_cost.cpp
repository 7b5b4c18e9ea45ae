// Walks up from a value through the nodes whose results are gone when its reader runs; these nodes have to run again. Then it
// counts the live bytes of the schedule with these nodes in it.
#include <tapedeck/capture/explain/recompute_cost.h>

#include <tapedeck/capture/plan/byte_owners.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace tapedeck {

namespace {

constexpr std::size_t kMostNodes = 64;  // run again for one value; a value that needs more is not considered
constexpr std::size_t kMostPlaces = 8;

}  // namespace

Reruns::Reruns(const Plan& plan)
    : plan_(plan),
      g_(plan.graph),
      owner_(byte_owners(plan)),
      live_(live_bytes(plan)),
      held_(held_in_arena(plan)),
      readers_(plan.values.size()),
      taken_over_(plan.values.size(), kNone) {
  for (NodeId n = 0; n < g_.node_count(); ++n)
    for (const ValueId v : g_.inputs(g_.nodes[n]))
      if (std::vector<NodeId>& list = readers_[owner_[v]]; list.empty() || list.back() != n) list.push_back(n);
  for (ValueId v = 0; v < g_.value_count(); ++v)
    if (plan.values[v].reason == Reason::in_place) taken_over_[owner_[plan.values[v].other]] = g_.values[v].node;
}

Rerun Reruns::find(ValueId v, NodeId kept_until, NodeId before) const {
  Rerun rerun;
  rerun.before = before;
  if (!collect(g_.values[v].node, before, &rerun)) {
    rerun.nodes.clear();
    return rerun;
  }
  std::sort(rerun.nodes.begin(), rerun.nodes.end());
  const std::int64_t bytes = g_.values[v].type.bytes();
  for (NodeId n = 0; n < g_.node_count(); ++n)
    rerun.peak_bytes = std::max(rerun.peak_bytes, live_[n] - (n > kept_until && n < before ? bytes : 0));
  rerun.peak_bytes = std::max(rerun.peak_bytes, held_across(before) - bytes + most_while_running(rerun.nodes, v));
  return rerun;
}

// Walks up from v through the values that are gone when `reader` runs.
std::vector<NodeId> Reruns::places(ValueId v, NodeId after, NodeId reader) const {
  std::vector<NodeId> places;
  std::vector<NodeId> makers = {g_.values[v].node};
  for (std::size_t i = 0; i < makers.size() && makers.size() <= kMostNodes; ++i)
    for (const ValueId operand : g_.inputs(g_.nodes[makers[i]])) {
      const NodeId until = there_until(owner_[operand]), maker = g_.values[seen_by(operand)].node;
      if (until >= reader) continue;
      if (until > after) places.push_back(until);
      if (maker != kNone && std::find(makers.begin(), makers.end(), maker) == makers.end()) makers.push_back(maker);
    }
  std::sort(places.begin(), places.end(), std::greater<>());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  places.insert(places.begin(), reader);
  if (places.size() > kMostPlaces) places.resize(kMostPlaces);
  return places;
}

// n, and the makers of its operands that are not there just before the node `before`. False, and the reason, if that is
// impossible.
bool Reruns::collect(NodeId n, NodeId before, Rerun* rerun) const {
  const auto fail = [&](const std::string& why) { return rerun->obstacle = why, false; };
  if (std::find(rerun->nodes.begin(), rerun->nodes.end(), n) != rerun->nodes.end()) return true;
  if (joins_parts(n)) return fail(fmt::format("`{}` joins parts that were written in place", g_.node_text(n)));
  if (rerun->nodes.size() >= kMostNodes) return fail("too much would have to run with it");
  if (g_.nodes[n].op->is(kEffect)) return fail(fmt::format("`{}` has an effect", g_.node_text(n)));
  rerun->nodes.push_back(n);
  for (const ValueId v : g_.inputs(g_.nodes[n])) {
    if (is_there(owner_[v], before)) continue;
    const NodeId maker = g_.values[seen_by(v)].node;
    if (maker == kNone) return fail(fmt::format("%{} has been updated by then", g_.value_name(owner_[v])));
    if (!collect(maker, before, rerun)) return false;
  }
  return true;
}

// The last node before which its bytes are there, and still its own.
NodeId Reruns::there_until(ValueId owner) const {
  NodeId until = g_.node_count();
  if (taken_over_[owner] != kNone) until = taken_over_[owner];
  if (plan_.values[owner].where == Where::arena)
    return readers_[owner].empty() ? kNone : std::min(until, readers_[owner].back());
  if (!g_.is_state(owner)) return until;
  for (const Update& u : g_.updates)
    if (u.state == owner && u.value != owner && g_.values[u.value].node != kNone)
      until = std::min(until, g_.values[u.value].node);
  return until;
}

bool Reruns::joins_parts(NodeId n) const {
  const auto lies_in_result = [&](ValueId v) {
    return plan_.values[v].reason == Reason::part && owner_[v] == owner_[g_.nodes[n].first_output];
  };
  return std::any_of(g_.inputs(g_.nodes[n]).begin(), g_.inputs(g_.nodes[n]).end(), lies_in_result);
}

// The value behind a window (of a window ...). A part is a value like others, wherever it lies.
ValueId Reruns::seen_by(ValueId v) const {
  while (plan_.values[v].reason == Reason::alias) v = plan_.values[v].other;
  return v;
}

// Bytes that must stay untouched just before the node `before`, because this node or a later one reads them.
std::int64_t Reruns::held_across(NodeId before) const {
  std::int64_t bytes = plan_.external_bytes;
  for (const Interval& i : held_)
    if (i.birth < before && i.death >= before) bytes += i.bytes;
  return bytes;
}

// Most bytes that these nodes' results and workspaces take while they run one after the other; `wanted` stays.
std::int64_t Reruns::most_while_running(const std::vector<NodeId>& nodes, ValueId wanted) const {
  struct Life {
    std::size_t first, last;
  };
  std::map<ValueId, Life> made;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Node& node = g_.nodes[nodes[k]];
    for (const ValueId v : g_.inputs(node))
      if (const auto it = made.find(seen_by(v)); it != made.end()) it->second.last = k;
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (plan_.values[v].reason != Reason::alias) made.emplace(v, Life{k, k});
  }
  made.at(wanted).last = nodes.size();
  std::vector<std::int64_t> bytes;  // by place in `nodes`
  for (const NodeId n : nodes) bytes.push_back(plan_.workspace[n].bytes);
  for (const auto& [v, life] : made) {
    const Placement& p = plan_.values[v];
    const bool takes_over = p.reason == Reason::in_place && made.contains(seen_by(p.other));
    const std::size_t first = takes_over ? life.first + 1 : life.first;  // the operand's bytes, counted for it then
    for (std::size_t k = first; k <= life.last && k < nodes.size(); ++k) bytes[k] += g_.values[v].type.bytes();
  }
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace tapedeck
