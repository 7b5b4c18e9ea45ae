// Lifetimes: birth, death and last reader of each value, worked out again from the graph and compared with the plan; and the
// lower bound, summed from the intervals in which bytes are held.
//     %a = exp(%x)    node 0      birth 0
//     %b = neg(%a)    node 1      %a: reader 1, death 1
#include <tapedeck/capture/check/checks.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

struct Reads {
  NodeId last = kNone;
  bool by_reader = false;  // Placement::reader is one of them
};

std::vector<Reads> find_reads(const Plan& plan) {
  std::vector<Reads> reads(plan.values.size());
  for (NodeId n = 0; n < plan.graph.node_count(); ++n)
    for (const ValueId v : plan.graph.inputs(plan.graph.nodes[n])) {
      reads[v].last = n;
      reads[v].by_reader |= plan.values[v].reader == n;
    }
  return reads;
}

// By value: the node that first writes its bytes. A value that is joined from parts is there from its first part on.
std::vector<NodeId> find_births(const Plan& plan) {
  const Graph& g = plan.graph;
  std::vector<NodeId> births(plan.values.size());
  for (ValueId v = 0; v < g.value_count(); ++v) {
    const Placement& p = plan.values[v];
    const bool there_from_start = p.where == Where::constant && p.reason != Reason::alias;
    births[v] = there_from_start ? kNone : g.values[v].node;
  }
  const std::vector<ValueId> owner = bytes_owner(plan);
  for (ValueId v = 0; v < g.value_count(); ++v)
    if (plan.values[v].reason == Reason::part) births[owner[v]] = std::min(births[owner[v]], births[v]);
  return births;
}

// By value: the first value of a chain of takeovers. Each link is walked once, and circles end.
// somewhere.
std::vector<ValueId> first_holders(const Plan& plan) {
  const std::vector<ValueId> owner = bytes_owner(plan);
  std::vector<ValueId> holder(plan.values.size(), kNone), chain;
  for (ValueId v = 0; v < static_cast<ValueId>(holder.size()); ++v) {
    ValueId at = owner[v];
    for (; holder[at] == kNone && plan.values[at].reason == Reason::in_place; at = owner[plan.values[at].other]) {
      holder[at] = at;
      chain.push_back(at);
    }
    const ValueId first = holder[at] == kNone ? at : holder[at];
    for (const ValueId w : chain) holder[w] = first;
    chain.clear();
    holder[v] = holder[at] = first;
  }
  return holder;
}

// The most bytes alive at once in the arena if nodes run one by one, summed from the points where bytes come and go.
__int128 most_alive(const Plan& plan, const std::vector<Reads>& reads, const std::vector<NodeId>& births) {
  const Graph& g = plan.graph;
  const std::vector<ValueId> holder = first_holders(plan);
  std::vector<NodeId> last(plan.values.size(), kNone);  // by holder
  for (ValueId v = 0; v < g.value_count(); ++v) {
    NodeId& end = last[holder[v]];
    end = std::max({end, reads[v].last, g.values[v].node});
  }
  std::vector<__int128> change(g.nodes.size() + 1, 0);
  for (ValueId v = 0; v < g.value_count(); ++v) {
    if (plan.values[v].where != Where::arena || births[v] == kNone || holder[v] != v) continue;
    change[births[v]] += g.values[v].type.bytes();
    change[last[v] + 1] -= g.values[v].type.bytes();
  }
  __int128 alive = 0, most = 0;
  for (NodeId n = 0; n < g.node_count(); ++n) {
    alive += change[n];
    most = std::max(most, alive + plan.workspace[n].bytes);
  }
  return most;
}

}  // namespace

void check_lifetimes(const Plan& plan, Violations* out) {
  const Graph& g = plan.graph;
  const std::vector<Reads> reads = find_reads(plan);
  const std::vector<NodeId> births = find_births(plan);
  for (ValueId v = 0; v < g.value_count() && out->size() < kMostViolations; ++v) {
    const Placement& p = plan.values[v];
    const auto report = [&](const std::string& what) { out->push_back("%" + g.value_name(v) + " " + what); };
    if (p.birth != births[v]) report(fmt::format("is born at node {}, and first written by node {}", p.birth, births[v]));
    const bool to_the_end = p.death == g.node_count() && p.where != Where::arena;
    if (p.death > std::max(reads[v].last, g.values[v].node) && !to_the_end)
      report(fmt::format("dies at node {}, after its last use by node {}", p.death, std::max(reads[v].last, g.values[v].node)));
    if (p.death < std::max(reads[v].last, p.birth))
      report(fmt::format("dies at node {}, before node {} has read it", p.death, std::max(reads[v].last, p.birth)));
    if (p.reader != kNone && !reads[v].by_reader) report(fmt::format("is kept for node {}, which does not read it", p.reader));
    if (p.reader == kNone && reads[v].last != kNone) report(fmt::format("has no reader, and node {} reads it", reads[v].last));
  }
  if (plan.lower_bound_bytes - plan.external_bytes != most_alive(plan, reads, births))
    out->push_back(fmt::format("lower_bound_bytes is {}, but {} bytes of the arena are alive at once beside {} others",
                               plan.lower_bound_bytes, static_cast<std::int64_t>(most_alive(plan, reads, births)),
                               plan.external_bytes));
}

}  // namespace tapedeck
