#include <tapedeck/capture/planner/pass_steps.h>

#include <tapedeck/capture/analysis/live_peak.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/planner/prepare.h>

namespace tapedeck {

void watch_pass_steps(const Graph& captured, OptimizationLevel level, Sharing sharing, const std::atomic<bool>* cancel,
                      const std::function<void(const PassStep&)>& seen) {
  PassRecord start;
  start.name = "captured";
  start.nodes_before = start.nodes_after = nodes_with_regions(captured);
  start.bytes_before = start.bytes_after = live_peak(captured);
  seen({start, captured});
  PassRunner passes({.level = level}, Looks::at_each);
  passes.cancel_by(cancel);
  passes.watch([&](const std::string&, const Graph& graph) { seen({passes.records().back(), graph}); });
  prepare(captured, &passes, sharing);
}

PassRecord planned_step(const PassRecord& last, const Plan& plan) {
  PassRecord record;
  record.name = "plan";
  record.ms = plan.solve_ms;
  record.nodes_before = last.nodes_after;
  record.bytes_before = last.bytes_after;
  record.nodes_after = nodes_with_regions(plan.graph);
  record.bytes_after = live_peak(plan.graph);
  return record;
}

std::string step_doc(const std::string& name) {
  if (name == "captured") return "the graph as it was recorded";
  if (name == "name_values") return "gives every value a name: %12 becomes %v12";
  if (name == "plan") return "puts the nodes in the order of the plan, and adds clones that compute values again";
  const Pass* pass = find_pass(name);
  return pass != nullptr ? pass->doc : "a step of the pipeline";
}

}  // namespace tapedeck
