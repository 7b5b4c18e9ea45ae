#include <tapedeck/viewer/plan/workspace_parts.h>

#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/capture/plan/region_frames.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/viewer/plan/regions.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

namespace tapedeck::viewer {

namespace {

bool is_branch(const Node& node) { return node.op == &ops::cond; }

std::string index_sentence(const Node& node) {
  return is_branch(node) ? "A loop keeps the number of its pass here. A branch does not use it."
                         : "The number of the pass that runs. The region reads it as its first input.";
}

std::string frame_sentence(const Node& node, std::span<const std::shared_ptr<const Plan>> plans, int region,
                           const ByteUnit& unit) {
  std::string text = "The frame is the memory of one run of a region: its arena and its results. ";
  text += is_branch(node) ? "Only one of both branches runs." : "Each pass uses the frame of the pass before again.";
  if (plans.size() > 1) text += " The largest of the regions decides how large the frame is.";
  if (region == kNone || plans[at(region)] == nullptr) return text;
  const Plan& plan = *plans[at(region)];
  const std::int64_t own = frame_bytes(plan);
  text += " The region that is shown needs " + unit.exact_text(own) + " of it: " + unit.readable_text(plan.arena_bytes) +
          " of arena, " + unit.readable_text(result_bytes(plan)) + " of results";
  const bool returns_an_input = std::any_of(plan.graph.outputs.begin(), plan.graph.outputs.end(),
                                            [&](ValueId v) { return plan.values[at(v)].where == Where::input; });
  return text + (returns_an_input ? ", the rest for copies of inputs that it returns." : ".");
}

std::string tape_sentence(const Graph& graph, const Node& node, const LoopTape& tape, const ByteUnit& unit) {
  std::string text =
      "Backward walks over the passes from the last to the first. It needs the carried values at the start of each pass, and a "
      "checkpoint is a kept copy of them: the tape holds up to " +
      grouped(tape.entries) + ", each of " + unit.readable_text(tape.entry_bytes) + ".";
  const LoopGradAttrs& loop = *static_cast<const LoopGradAttrs*>(graph.attributes(node));
  const std::int64_t known = known_passes(graph, node), passes = known >= 0 ? known : loop.trips;
  if (passes < 0) return text;
  const std::int64_t again = std::llround(passes_run_again(passes, loop.checkpoint));
  if (again == 0) return text + " No pass has to run again, because each has its checkpoint.";
  const std::string up_to = known >= 0 ? "" : "up to ";
  return text + " A pass without one runs again, from the checkpoint before it: " + up_to + grouped(passes) + " passes need " +
         up_to + grouped(again) + (again == 1 ? " such rerun." : " such reruns.");
}

}  // namespace

std::int64_t result_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Type& type : plan.output_slots) bytes += type.bytes();
  return bytes;
}

std::vector<WorkspacePart> workspace_parts(const PlanModel& around, NodeId n, int region, const ByteUnit& unit) {
  const Plan& plan = around.plan();
  const Node& node = plan.graph.nodes[at(n)];
  if (node.n_regions == 0 || at(n) >= plan.workspace.size() || plan_of_region(plan, node, 0) == nullptr) return {};
  const auto plans = plan.region_plans_of(node);
  std::int64_t frame = 0;
  for (const auto& inside : plans)
    if (inside) frame = std::max(frame, frame_bytes(*inside));
  const LoopTape tape = loop_tape(plan.graph, node);
  std::vector<WorkspacePart> parts{{"index", index_sentence(node), kFrameAlignment},
                                   {"frame", frame_sentence(node, plans, region, unit), frame}};
  if (tape.bytes() > 0) parts.push_back({"tape", tape_sentence(plan.graph, node, tape, unit), tape.bytes()});
  const std::int64_t rest = plan.workspace[at(n)].bytes - kFrameAlignment - frame - tape.bytes();
  if (rest > 0) parts.push_back({"rest", "The plan gives the node these bytes, and nothing of it uses them.", rest});
  return parts;
}

}  // namespace tapedeck::viewer
