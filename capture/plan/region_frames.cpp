#include <tapedeck/capture/plan/region_frames.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/kernels/checked_math.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

bool runs_regions_by_plan(const Node& node) { return node.n_regions > 0 && !node.op->is(kSampleTypes | kTiled); }

std::int64_t frame_bytes(const Plan& plan) {
  std::int64_t bytes = framed(plan.arena_bytes);
  const auto add = [&bytes](const Type& type) { bytes = limited_sum({bytes, framed(type.bytes())}); };
  for (const Type& t : plan.output_slots) add(t);
  for (ValueId v : plan.graph.outputs)
    if (plan.values[v].where == Where::input) add(plan.graph.values[v].type);
  return bytes;
}

LoopTape loop_tape(const Graph& g, const Node& node) {
  LoopTape tape;
  if (node.op != &ops::loop_grad) return tape;
  const auto& a = *static_cast<const LoopGradAttrs*>(g.attributes(node));
  const auto operands = g.inputs(node);
  for (std::int64_t j = 0; j < a.carried; ++j) tape.entry_bytes += framed(g.values[operands[j + 1]].type.bytes());
  const std::int64_t trips = most_passes(a, g.input_types(node));
  tape.entries = trips < 0 ? -1 : tape_entries(trips, a.checkpoint);
  if (tape.entries > 0 && tape.entry_bytes > (std::int64_t{1} << 50) / tape.entries)
    throw InvalidGraphError(fmt::format("the tape of `{}` would hold more than 2^50 bytes",
                                        g.node_text(static_cast<NodeId>(&node - g.nodes.data()))));
  return tape;
}

std::int64_t region_workspace(const Graph& g, const Node& node, std::span<const std::shared_ptr<const Plan>> region_plans) {
  if (!runs_regions_by_plan(node)) return 0;
  std::int64_t frame = 0;
  for (const auto& plan : region_plans) frame = std::max(frame, frame_bytes(*plan));
  return limited_sum({kFrameAlignment, frame, loop_tape(g, node).bytes()});
}

std::int64_t needed_workspace(const Plan& plan, NodeId n) {
  const Node& node = plan.graph.nodes[n];
  return node.n_regions > 0 ? region_workspace(plan.graph, node, plan.region_plans_of(node))
                            : kernel_workspace(plan.graph, node);
}

}  // namespace tapedeck
