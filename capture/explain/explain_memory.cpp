// Counts the boxes of a plan: by role, by reason, by chunk of the arena, and by the sharing rule that spared a value its
// bytes.
#include <tapedeck/capture/explain/explain_memory.h>

#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/engine/ops/control.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tapedeck {

namespace {

void add_to(std::vector<MemoryTotal>* totals, const char* name, std::int64_t bytes, bool at_peak) {
  auto it = std::find_if(totals->begin(), totals->end(), [&](const MemoryTotal& t) { return t.name == name; });
  if (it == totals->end()) it = totals->insert(it, {name, 0, 0, 0});
  ++it->count;
  it->bytes += bytes;
  it->peak_bytes += at_peak ? bytes : 0;
}

template <class Name>
void sort_as(std::vector<MemoryTotal>* totals, int n, Name name) {
  const auto rank = [&](const MemoryTotal& t) {
    int i = 0;
    while (i < n && t.name != name(i)) ++i;
    return i;
  };
  std::sort(totals->begin(), totals->end(), [&](const MemoryTotal& a, const MemoryTotal& b) { return rank(a) < rank(b); });
}

std::vector<MemoryTotal> chunks_of(const Plan& plan, const MemoryMap& map, NodeId peak) {
  const ArenaChunks chunks(plan);
  std::vector<MemoryTotal> totals;
  if (plan.chunks.empty()) return totals;
  for (std::int32_t c = 0; c < chunks.count(); ++c) totals.push_back({fmt::format("chunk {}", c), 0, chunks.bytes(c), 0});
  std::vector<char> counted(static_cast<std::size_t>(map.buffers), 0);
  for (const MemoryBox& box : map.arena) {
    MemoryTotal& total = totals[chunks.of(box.offset)];
    total.count += !std::exchange(counted[box.buffer], 1);
    if (box.first <= peak && box.last >= peak) total.peak_bytes += box.bytes;
  }
  return totals;
}

std::vector<SharingUse> sharing_of(const Plan& plan) {
  std::vector<SharingUse> uses = {{"windows", 0, 0}, {"in_place", 0, 0}, {"parts", 0, 0}, {"updates", 0, 0}};
  const auto count = [&](int rule, std::int64_t bytes) {
    ++uses[rule].count;
    uses[rule].bytes += bytes;
  };
  for (ValueId v = plan.graph.n_inputs + plan.graph.n_state; v < plan.graph.value_count(); ++v) {
    const std::int64_t bytes = plan.graph.values[v].type.bytes();
    const Placement& p = plan.values[v];
    if (bytes == 0) continue;
    if (p.reason == Reason::alias)
      count(0, bytes);
    else if (p.reason == Reason::in_place)
      count(1, bytes);
    else if (p.reason == Reason::part)
      count(2, bytes);
    else if (p.where == Where::state)
      count(3, bytes);
  }
  return uses;
}

// Does the loop keep the value for its backward, a slice for each pass? Such values are the last results of the loop.
bool is_residual(const Graph& g, ValueId v) {
  const NodeId n = g.values[v].node;
  if (n == kNone || (g.nodes[n].op != &ops::scan && g.nodes[n].op != &ops::while_loop)) return false;
  const auto* attrs = static_cast<const LoopAttrs*>(g.attributes(g.nodes[n]));
  return v >= g.nodes[n].first_output + g.nodes[n].n_outputs - attrs->residuals;
}

std::vector<MemoryTotal> unruled_of(const Plan& plan, const MemoryMap& map, NodeId peak) {
  const Graph& g = plan.graph;
  std::vector<MemoryTotal> totals;
  for (const MemoryBox& box : map.arena) {
    const bool at_peak = box.first <= peak && box.last >= peak;
    if (box.value != kNone) {
      if (is_residual(g, box.value)) add_to(&totals, "loop residuals", box.bytes, at_peak);
      continue;
    }
    const Node& node = g.nodes[box.node];
    add_to(&totals, "workspace", box.bytes, at_peak);
    if (node.n_regions > 0) add_to(&totals, "loops", box.bytes, at_peak);
    if (node.op != &ops::loop_grad) continue;
    if (const std::int64_t tape = loop_tape(g, node).bytes(); tape > 0) add_to(&totals, "loop tapes", tape, at_peak);
  }
  constexpr const char* names[] = {"workspace", "loops", "loop tapes", "loop residuals"};
  sort_as(&totals, static_cast<int>(std::size(names)), [&](int i) { return names[i]; });
  return totals;
}

}  // namespace

MemoryExplanation explain_memory(const Plan& plan) {
  const PeakExplanation peak = explain_peak(plan, {});
  const MemoryMap map = map_memory(plan);
  MemoryExplanation e;
  e.peak_bytes = plan.peak_bytes;
  e.lower_bound_bytes = plan.lower_bound_bytes;
  e.external_bytes = plan.external_bytes;
  e.arena_bytes = plan.arena_bytes;
  e.chunk_bytes = plan.chunk_bytes;
  e.chunks = chunks_of(plan, map, peak.node);
  e.order = plan.order;
  e.alignment = plan.alignment;
  e.alignment_bytes = peak.alignment_bytes;
  e.gap_bytes = peak.gap_bytes;
  e.apart_bytes = peak.apart_bytes;
  e.threads = plan.threads;
  e.unshared_bytes = plan.external_bytes;
  e.arena_buffers = map.buffers;
  const auto add = [&](const MemoryBox& box, bool external) {
    const bool at_peak = external || (box.first <= peak.node && box.last >= peak.node);
    add_to(&e.roles, memory_role_name(box.role), box.bytes, at_peak);
    add_to(&e.reasons, box.value == kNone ? "workspace" : reason_name(plan.values[box.value].reason), box.bytes, at_peak);
    if (!external) e.unshared_bytes += box.bytes;
    if (!external && box.value != kNone) ++e.arena_values;
  };
  for (const MemoryBox& box : map.external) add(box, true);
  for (const MemoryBox& box : map.arena) add(box, false);
  sort_as(&e.roles, kMemoryRoleCount, [](int i) { return memory_role_name(static_cast<MemoryRole>(i)); });
  sort_as(&e.reasons, static_cast<int>(Reason::unread) + 1, [](int i) { return reason_name(static_cast<Reason>(i)); });
  e.sharing = sharing_of(plan);
  e.unruled = unruled_of(plan, map, peak.node);
  return e;
}

}  // namespace tapedeck
