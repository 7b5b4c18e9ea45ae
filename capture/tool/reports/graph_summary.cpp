#include <tapedeck/capture/tool/reports/graph_flops.h>
#include <tapedeck/capture/tool/reports/graph_summary.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tapedeck::tool {

double GraphSummary::flops_of(Phase phase) const {
  for (const PhaseCount& count : phases)
    if (count.phase == phase) return count.flops;
  return 0;
}

GraphSummary summarize(const Graph& g) {
  GraphSummary s;
  for (const Value& v : g.values) {
    if (v.role != Role::parameter) continue;
    ++s.parameter_tensors;
    s.parameters += v.type.numel();
    s.parameter_bytes += v.type.bytes();
  }
  std::map<Phase, PhaseCount> phases;
  std::map<const Op*, OpCount> ops;
  for (const Node& n : g.nodes) {
    const auto [flops, per_pass] = flops_of(g, n);
    s.flops += flops;
    s.flops_per_pass += per_pass;
    PhaseCount& phase = phases[n.origin.phase];
    phase.phase = n.origin.phase;
    ++phase.nodes;
    phase.flops += flops;
    OpCount& op = ops[n.op];
    op.name = n.op->name;
    op.version = n.op->version;
    ++op.nodes;
    op.flops += flops;
  }
  for (const auto& [phase, count] : phases) s.phases.push_back(count);
  for (const auto& [op, count] : ops) s.ops.push_back(count);
  std::sort(s.ops.begin(), s.ops.end(),
            [](const OpCount& a, const OpCount& b) { return std::tie(b.nodes, a.name) < std::tie(a.nodes, b.name); });
  return s;
}

std::string flops_text(double flops) {
  const char* names[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  int k = 0;
  for (; flops >= 1000 && k < 5; ++k) flops /= 1000;
  return k == 0 ? fmt::format("{:.0f} {}", flops, names[k]) : fmt::format("{:.2f} {}", flops, names[k]);
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(digits.begin() + at, ',');
  return digits;
}

}  // namespace tapedeck::tool
