#include <tapedeck/viewer/plan/regions.h>

#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <tapedeck/capture/cost/control_cost.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tapedeck::viewer {

namespace {

std::string counted_passes(std::int64_t passes) { return grouped(passes) + (passes == 1 ? " pass" : " passes"); }

std::string runs_of(const Graph& graph, const Node& node) {
  if (node.op == &ops::cond) return "one of both branches";
  if (node.op == &ops::while_loop) {
    const std::int64_t most = static_cast<const LoopAttrs*>(graph.attributes(node))->trips;
    return "as many passes as the condition allows" + (most < 0 ? std::string() : ", at most " + grouped(most));
  }
  if (node.op != &ops::scan && node.op != &ops::loop_grad) return "";
  const std::int64_t passes = known_passes(graph, node);
  return passes < 0 ? "as many passes as the loop made" : counted_passes(passes);
}

std::string interval_text(std::int64_t checkpoint) {
  if (checkpoint == kCheckpointSqrt) return "the carried values of about the square root of all passes";
  if (checkpoint == kCheckpointLog) return "the carried values of about the logarithm of all passes";
  return checkpoint <= 1 ? "the carried values of every pass"
                         : "the carried values of every " + grouped(checkpoint) + " passes";
}

std::string keeps_of(const Graph& graph, const Node& node) {
  if (node.op == &ops::loop_grad)
    return "Keeps " + interval_text(static_cast<const LoopGradAttrs*>(graph.attributes(node))->checkpoint) +
           ", and runs the passes between them again.";
  if (node.op != &ops::scan) return "";
  const std::int64_t residuals = static_cast<const LoopAttrs*>(graph.attributes(node))->residuals;
  if (residuals == 0) return "";
  return "Keeps " + grouped(residuals) + (residuals == 1 ? " value" : " values") + " of each pass for backward, as results.";
}

// The rates of the machine alone: a profile is of the nodes of the step, whose names nodes of a region may have, too.
CostModel costs_inside(const PlanModel& model) {
  CostModel costs;
  if (model.costs() != nullptr) costs.calibration = model.costs()->calibration;
  return costs;
}

double sum_of(const std::vector<double>& us) { return std::accumulate(us.begin(), us.end(), 0.0); }

RegionFacts facts_of(const PlanModel& model, const Node& node, int region) {
  RegionFacts facts;
  const Plan* const plan = plan_of_region(model.plan(), node, region);
  const Graph& graph = plan != nullptr ? plan->graph : *model.graph().regions_of(node)[at(region)];
  facts.title = region_title(node, region);
  facts.is_planned = plan != nullptr;
  facts.nodes = graph.node_count();
  const CostModel costs = costs_inside(model);
  facts.us = sum_of(cost_nodes(graph, &costs).us);
  if (plan == nullptr) return facts;
  facts.recomputed = plan->recomputed_nodes;
  facts.arena_bytes = plan->arena_bytes;
  return facts;
}

// A plan in which no value has bytes, for a region that does not run by plan.
std::shared_ptr<const Plan> bare_plan(const Graph& region) {
  auto plan = std::make_shared<Plan>();
  plan->graph = region;
  plan->values.resize(region.values.size());
  plan->workspace.resize(region.nodes.size());
  plan->region_plans.resize(region.regions.size());
  for (ValueId v = 0; v < region.value_count(); ++v) {
    plan->values[at(v)].birth = region.values[at(v)].node;
    plan->values[at(v)].reason = region.is_input(v) ? Reason::input : Reason::temporary;
  }
  plan->nodes = region.node_count();
  return plan;
}

// The name of the first result; empty for a node without results.
std::string name_of_maker(const Graph& graph, const Node& node) {
  return node.n_outputs > 0 ? graph.value_name(node.first_output) : std::string();
}

NodeId node_that_makes(const PlanModel& model, const std::string& value) {
  const Graph& graph = model.graph();
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (const Node& node = graph.nodes[at(n)]; node.n_regions > 0 && name_of_maker(graph, node) == value) return n;
  return kNone;
}

}  // namespace

const Plan* plan_of_region(const Plan& plan, const Node& node, int region) {
  if (plan.region_plans.size() != plan.graph.regions.size()) return nullptr;
  return plan.region_plans_of(node)[at(region)].get();
}

std::string region_title(const Node& node, int region) {
  if (node.op == &ops::while_loop) return region == 0 ? "condition" : "body";
  if (node.op == &ops::cond) return region == 0 ? "if true" : "if false";
  if (node.op == &ops::loop_grad) return region == 0 ? "pass" : "gradient of a pass";
  if (node.op == &ops::scan) return "body";
  return node.n_regions == 1 ? "inside" : "part " + std::to_string(region + 1);
}

std::string region_text(const NodeRegions& facts, int region, const ByteUnit& unit) {
  const RegionFacts& shown = facts.regions[at(region)];
  std::string text = facts.runs.empty() ? "" : facts.runs + " · ";
  text += "here " + grouped(shown.nodes) + (shown.nodes == 1 ? " node, " : " nodes, ") + human_us(shown.us) + " a run";
  if (shown.recomputed > 0) text += ", " + grouped(shown.recomputed) + " computed again";
  if (!shown.is_planned) return text + " · its values take no bytes of the plan";
  return text + " · arena " + unit.readable_text(shown.arena_bytes) + ", workspace " + unit.readable_text(facts.workspace);
}

NodeRegions regions_of(const PlanModel& model, NodeId n) {
  NodeRegions all;
  const Plan& plan = model.plan();
  const Node& node = plan.graph.nodes[at(n)];
  for (int region = 0; region < node.n_regions; ++region) all.regions.push_back(facts_of(model, node, region));
  if (all.regions.empty()) return all;
  all.runs = runs_of(plan.graph, node);
  all.keeps = keeps_of(plan.graph, node);
  all.workspace = at(n) < plan.workspace.size() ? plan.workspace[at(n)].bytes : 0;
  return all;
}

std::shared_ptr<const PlanModel> region_model(const PlanModel& around, NodeId n, int region) {
  const Node& node = around.graph().nodes[at(n)];
  std::shared_ptr<const Plan> plan;
  if (plan_of_region(around.plan(), node, region) != nullptr) plan = around.plan().region_plans_of(node)[at(region)];
  std::vector<std::int64_t> curve(at(around.graph().regions_of(node)[at(region)]->node_count()), 0);
  if (plan)
    curve = live_bytes(*plan);
  else
    plan = bare_plan(*around.graph().regions_of(node)[at(region)]);
  return released_later(std::make_unique<const PlanModel>(std::move(plan), std::move(curve),
                                                          std::make_shared<const CostModel>(costs_inside(around))));
}

RegionStep step_into(const PlanModel& model, NodeId n, int region) {
  return {name_of_maker(model.graph(), model.graph().nodes[at(n)]), region};
}

RegionPlace place_inside(std::shared_ptr<const PlanModel> step, const RegionPath& path) {
  RegionPlace place;
  place.model = std::move(step);
  for (const RegionStep& into : path) {
    const NodeId n = node_that_makes(*place.model, into.value);
    if (n == kNone || into.region >= place.model->graph().nodes[at(n)].n_regions) break;
    const Node& node = place.model->graph().nodes[at(n)];
    place.names.push_back(std::string(node.op->name) + (into.value.empty() ? "" : " %" + into.value) + ", " +
                          region_title(node, into.region));
    place.path.push_back(into);
    place.around = std::exchange(place.model, region_model(*place.model, n, into.region));
    place.node = n;
  }
  return place;
}

int first_shown_region(const Node& node) { return node.op == &ops::cond ? 0 : node.n_regions - 1; }

}  // namespace tapedeck::viewer
