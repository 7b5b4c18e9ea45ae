#include <tapedeck/capture/plan/placement_reasons.h>

#include <tapedeck/capture/analysis/phases.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::size_t kTensorsNamed = 5;

Reason reason_of(const Plan& plan, ValueId v, const std::vector<Phase>& phases, const std::vector<char>& read_after_forward) {
  const Graph& graph = plan.graph;
  const Placement& p = plan.values[v];
  if (graph.is_input(v)) return Reason::input;
  if (graph.is_state(v)) return Reason::state;
  if (p.reason == Reason::alias || p.reason == Reason::in_place || p.reason == Reason::part) return p.reason;
  if (p.where == Where::constant) return Reason::constant;
  if (p.where == Where::output) return Reason::output;
  if (p.where == Where::state) return Reason::update;
  const Origin& origin = graph.nodes[graph.values[v].node].origin;
  if (origin.clone) return Reason::recomputed;
  if (p.reader == kNone) return Reason::unread;
  if (phases[graph.values[v].node] == Phase::forward && read_after_forward[v]) return Reason::saved;
  return origin.phase == Phase::backward ? Reason::gradient : Reason::temporary;
}

}  // namespace

void give_reasons(Plan* plan) {
  const Graph& graph = plan->graph;
  const std::vector<Phase> phases = run_phases(graph);  // a value that is made when it is needed was not saved
  std::vector<char> read_after_forward(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    if (node.origin.phase == Phase::forward) continue;
    for (ValueId v : graph.inputs(node)) read_after_forward[v] = 1;
  }
  for (ValueId v = 0; v < graph.value_count(); ++v) plan->values[v].reason = reason_of(*plan, v, phases, read_after_forward);
}

PeakNode peak_node(const Plan& plan) {
  const std::vector<std::int64_t> live = live_bytes(plan);
  if (live.empty()) return {};
  const auto most = std::max_element(live.begin(), live.end());
  return {static_cast<NodeId>(most - live.begin()), *most};
}

std::string describe_peak(const Plan& plan) {
  const PeakNode peak = peak_node(plan);
  if (peak.node == kNone) return "the graph has no nodes";
  const NodeId at = peak.node;
  std::vector<ValueId> alive;
  for (ValueId v = 0; v < plan.graph.value_count(); ++v) {
    const Placement& p = plan.values[v];
    if (p.where == Where::arena && p.reason != Reason::alias && p.reason != Reason::part && p.birth <= at && p.death >= at)
      alive.push_back(v);
  }
  const auto bytes = [&](ValueId v) { return plan.graph.values[v].type.bytes(); };
  std::stable_sort(alive.begin(), alive.end(), [&](ValueId a, ValueId b) { return bytes(a) > bytes(b); });
  std::string text = fmt::format("at `{}`, {} bytes are alive: inputs, state, constants and outputs {} bytes",
                                 plan.graph.node_text(at), peak.live_bytes, plan.external_bytes);
  for (std::size_t i = 0; i < std::min(alive.size(), kTensorsNamed); ++i)
    text += fmt::format(", %{} {} bytes", plan.graph.value_name(alive[i]), bytes(alive[i]));
  if (alive.size() > kTensorsNamed) text += fmt::format(", and {} more", alive.size() - kTensorsNamed);
  if (plan.workspace[at].bytes > 0) text += fmt::format(", workspace {} bytes", plan.workspace[at].bytes);
  return text;
}

}  // namespace tapedeck
