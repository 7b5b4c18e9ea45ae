#include <tapedeck/viewer/planning/same_addresses.h>

#include <tapedeck/capture/analysis/same_program.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

// Whether the nodes compute the same, the same ones are clones, and the values have the same names.
bool is_same_program(const Graph& a, const Graph& b) {
  const Graph* graphs[] = {&a, &b};
  const auto same_role = [](const Node& n, const Node& m) { return n.origin.clone == m.origin.clone; };
  const auto same_name = [](const Value& v, const Value& w) { return v.name == w.name; };
  return same_program(graphs, [](const ProgramDifference&) { return false; }) &&
         std::ranges::equal(a.nodes, b.nodes, same_role) && std::ranges::equal(a.values, b.values, same_name);
}

bool differs_in_address_at_most(const Placement& p, const Placement& q) {
  return p.where == q.where && p.reason == q.reason && p.slot == q.slot && p.other == q.other && p.reader == q.reader &&
         p.birth == q.birth && p.death == q.death && p.dense == q.dense && (p.where == Where::arena || p.offset == q.offset);
}

// The numbers that a layout has as a whole.
bool is_same_size(const Plan& a, const Plan& b) {
  return a.peak_bytes == b.peak_bytes && a.arena_bytes == b.arena_bytes && a.external_bytes == b.external_bytes &&
         a.chunks == b.chunks && a.alignment == b.alignment && a.threads == b.threads;
}

bool has_same_segments(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.segments, b.segments, [](const Segment& s, const Segment& t) { return s.nodes == t.nodes; });
}

// The workspace of a node with regions depends on their plans.
bool runs_regions(const Plan& plan) {
  return std::ranges::any_of(plan.region_plans, [](const auto& region) { return region != nullptr; });
}

bool differs_in_addresses(const Plan& a, const Plan& b) {
  const auto same_value = [](const Placement& p, const Placement& q) { return p.offset == q.offset; };
  const auto same_scratch = [](const Scratch& s, const Scratch& t) { return s.offset == t.offset; };
  return !std::ranges::equal(a.values, b.values, same_value) || !std::ranges::equal(a.workspace, b.workspace, same_scratch);
}

}  // namespace

std::optional<Plan> with_addresses_of(const Plan& before, const Plan& next) {
  const auto same_bytes = [](const Scratch& s, const Scratch& t) { return s.bytes == t.bytes; };
  if (!is_same_size(before, next) || !has_same_segments(before, next) || runs_regions(before) || runs_regions(next) ||
      !is_same_program(before.graph, next.graph) ||
      !std::ranges::equal(before.values, next.values, differs_in_address_at_most) ||
      !std::ranges::equal(before.workspace, next.workspace, same_bytes) || !differs_in_addresses(before, next))
    return std::nullopt;
  Plan moved = next;
  moved.values = before.values;
  moved.workspace = before.workspace;
  // The addresses decide which bytes are used again, and so which segment waits for which.
  moved.reuse_edges = before.reuse_edges;
  moved.segments = before.segments;
  moved.segment_rule = before.segment_rule;
  moved.intra_op = before.intra_op;
  return moved;
}

}  // namespace tapedeck::viewer
