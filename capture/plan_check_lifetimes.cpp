#include <tapedeck/capture/plan_check_parts.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

struct Reads {
  NodeId last = kNone;
  bool by_reader = false;   // Placement::reader is one of them
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

// By value: the node that first writes its bytes. What is joined from parts is there from the first of them on.
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

}  // namespace

void check_lifetimes(const Plan& plan, Violations* out) {
  const Graph& g = plan.graph;
  const std::vector<Reads> reads = find_reads(plan);
  const std::vector<NodeId> births = find_births(plan);
  for (ValueId v = 0; v < g.value_count() && out->size() < kMostViolations; ++v) {
    const Placement& p = plan.values[v];
    const auto report = [&](const std::string& what) { out->push_back("%" + g.value_name(v) + " " + what); };
    if (p.birth != births[v]) report(fmt::format("is born at node {}, and first written by node {}", p.birth, births[v]));
    if (p.death < std::max(reads[v].last, p.birth)) report(fmt::format("dies at node {}, before node {} has read it", p.death, std::max(reads[v].last, p.birth)));
    if (p.reader != kNone && !reads[v].by_reader) report(fmt::format("is kept for node {}, which does not read it", p.reader));
    if (p.reader == kNone && reads[v].last != kNone) report(fmt::format("has no reader, and node {} reads it", reads[v].last));
  }
}

}  // namespace tapedeck
