// The text of `plan --explain`: one function for each topic.
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/reports/plan_explain.h>

#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/planner/loop_intervals.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::tool {

namespace {

std::string list_of(const std::vector<std::int32_t>& numbers) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(numbers.size(), kMost); ++i) text += fmt::format("{}{}", i ? "," : "", numbers[i]);
  return numbers.size() > kMost ? fmt::format("{},... ({})", text, numbers.size()) : text;
}

// "3..7,12": runs of neighbours.
std::string runs_of(const std::vector<NodeId>& nodes) {
  constexpr int kMost = 6;
  std::string text;
  int runs = 0;
  for (std::size_t i = 0; i < nodes.size(); ++runs) {
    std::size_t end = i + 1;
    while (end < nodes.size() && nodes[end] == nodes[end - 1] + 1) ++end;
    if (runs < kMost) text += fmt::format("{}{}", runs ? "," : "", nodes[i]);
    if (runs < kMost && end > i + 1) text += fmt::format("..{}", nodes[end - 1]);
    i = end;
  }
  return runs > kMost ? text + ",..." : text;
}

// The rule, its inputs and its results; then a line for each segment.
std::string segments_explained(const Plan& p) {
  const SegmentRule& r = p.segment_rule;
  const double n = static_cast<double>(std::max<std::size_t>(p.segments.size(), 1));
  std::string text = fmt::format("segments for {} thread{}, costs: {}\n", p.threads, p.threads == 1 ? "" : "s", p.costs);
  text += fmt::format(
      "  rule: dispatch {:.3g} us is to be at most 2 % of a segment, so it costs {:.3g} us or more, and {:.3g} us or less "
      "unless one node does{}\n",
      r.dispatch_us, r.least_us, r.most_us, r.split_phases ? "; no segment holds two phases" : "");
  text += fmt::format("  cut: {}, grain {:.3g} us\n",
                      r.shape == "graph"   ? "along the dependences"
                      : r.shape == "lanes" ? "in a lane for each thread"
                                           : "in the order of nodes",
                      r.grain_us);
  text += fmt::format(
      "  nodes {:.1f} us one after the other, critical path {:.1f} us, {} segments take {:.1f} us (x{:.2f}), dispatch {:.2f} % "
      "of the work\n",
      r.serial_us, r.critical_path_us, p.segments.size(), r.makespan_us, r.makespan_us > 0 ? r.serial_us / r.makespan_us : 1.0,
      r.serial_us > 0 ? 100.0 * r.dispatch_us * n / r.serial_us : 0.0);
  if (p.threads > 1)
    text += fmt::format("  bytes placed {}: peak {}; tightly {:.1f} us and {}\n",
                        r.placement == "apart" ? "apart, so that branches do not wait for each other's" : "tightly",
                        human_size(p.peak_bytes), r.tight_makespan_us, human_size(r.tight_peak_bytes));
  text += "  segment        us  nodes  waits for  before        intra-op  ends   which\n";
  for (std::size_t s = 0; s < p.segments.size(); ++s) {
    const Segment& g = p.segments[s];
    const auto intra =
        std::count_if(g.nodes.begin(), g.nodes.end(), [&](NodeId node) { return p.intra_op.empty() || p.intra_op[node]; });
    text += fmt::format("  {:>7} {:>9.1f} {:>6} {:>10}  {:<12} {:>9}  {:<6} {}\n", s, g.cost_us, g.nodes.size(),
                        g.n_predecessors, list_of(g.successors), intra, segment_end_name(g.end), runs_of(g.nodes));
  }
  return text;
}

// The loops that no decision is about and whose backward cannot keep fewer carried values, each with the reason.
std::string fixed_intervals(const Plan& p) {
  std::string text;
  for (NodeId n = 0; n < p.graph.node_count(); ++n) {
    const Node& node = p.graph.nodes[n];
    if (node.n_outputs == 0) continue;
    const std::string name = p.graph.value_name(node.first_output);
    const bool chosen = std::any_of(p.decisions.begin(), p.decisions.end(), [&](const Decision& d) { return d.value == name; });
    const std::string why = chosen ? "" : why_interval_stays(p.graph, n);
    if (!why.empty()) text += fmt::format("loop of %{} {}\n", name, why);
  }
  return text;
}

std::string choices_explained(const Plan& p) {
  std::string text = "choices, in order:\n";
  for (const Decision& d : p.decisions)
    text += fmt::format("  {:<28} {:>12} bytes off {:>5} steps for {:>9.1f} us, {} clones -> live peak {}\n      {}\n", d.value,
                        d.bytes, d.span, d.cost_us, d.clones, d.live_peak_bytes, d.reason);
  return (p.decisions.empty() ? "nothing is recomputed\n" : text) + fixed_intervals(p);
}

// The first row is the explained plan, unless that plan recomputes. A rule earns the bytes that would be more without it.
std::string rules_explained(const Plan& p, const std::vector<SharingBound>& bounds) {
  if (bounds.empty()) return "";
  const bool has_least = bounds.size() > 1 && bounds[1].rules == "least found", is_parallel = p.threads > 1;
  const SharingBound& least = bounds[has_least ? 1 : 0];
  std::string text = fmt::format("{:<18} {:>16} {:>16}", "with sharing rules", "lower bound",
                                 is_parallel ? fmt::format("on {} threads", p.threads) : "peak");
  if (is_parallel) text += fmt::format(" {:>16}", "placed tightly");
  text += fmt::format(" {:>16} {:>16}\n", "earned: bound", "peak");
  for (const SharingBound& b : bounds) {
    text += fmt::format("  {:<16} {:>16} {:>16}", b.rules, b.lower_bound_bytes, b.peak_bytes);
    if (is_parallel) text += fmt::format(" {:>16}", b.tight_peak_bytes);
    if (&b > &least)
      text += fmt::format(" {:>16} {:>16}", b.lower_bound_bytes - least.lower_bound_bytes,
                          b.tight_peak_bytes - least.tight_peak_bytes);
    text += "\n";
  }
  text += "  each row is a plan of its own; with --order auto it is the least of the orders found for all of them\n";
  if (is_parallel) text += "  earned is of what is placed tightly: how far bytes are kept apart differs from row to row\n";
  if (has_least)
    text +=
        "  least found: so much would do, where a rule costs bytes (a window keeps all that it looks at), or in another order, "
        "or at other offsets\n";
  if (p.recomputed_nodes > 0)
    text += fmt::format("  in this table nothing is recomputed; the plan above makes {} node{} again\n", p.recomputed_nodes,
                        p.recomputed_nodes == 1 ? "" : "s");
  return text;
}

}  // namespace

std::string explained(const std::string& what, const Plan& plan, const PlanBackground& background) {
  if (what == "choices") return choices_explained(plan);
  if (what == "segments")
    return segments_explained(plan) + (background.device == "cpu" ? std::string() : device_explained(plan, background.device));
  if (what == "peak") return to_text(explain_peak(plan, background.node_us));
  if (what == "wishes" && background.wishes.empty()) return wishes_text({}, plan);  // else the answer has them anyway
  if (what == "memory") return to_text(explain_memory(plan)) + rules_explained(plan, background.sharing);
  return "";
}

}  // namespace tapedeck::tool
