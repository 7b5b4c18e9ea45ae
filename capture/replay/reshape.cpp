// One executor becomes a family: the same graph at other sizes on the same memory.
//
//     reshape({{"x", f32[32,784]}})
//       the types of the other inputs follow              implied_inputs()
//       the graph before recomputation gets these types   without_clones(), retype()
//       the old plan is fitted, or a new one made         plan_at()
//       an executor of that plan on the parent's memory   Buffers::share(), StateSlots::share()
#include <tapedeck/capture/replay/executor_impl.h>

#include <tapedeck/capture/analysis/shapes.h>
#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/planner/fit_plan_to_sizes.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/sizes/retype.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck {

// ---- the graph and its plan at other sizes ----

namespace {

// The planned graph as it was before recomputation was chosen: readers of a clone read the original.
Graph without_clones(const Graph& planned) {
  std::unordered_map<std::string, ValueId> by_name;
  for (const Node& node : planned.nodes)
    if (node.n_outputs > 0 && !node.origin.clone) by_name.emplace(planned.value_name(node.first_output), node.first_output);
  Rewriter rewriter(planned);
  for (NodeId n = 0; n < planned.node_count(); ++n) {
    const Node& node = planned.nodes[n];
    const auto it = node.origin.clone ? by_name.find(node.origin.of.str()) : by_name.end();
    if (it == by_name.end() || it->second >= node.first_output) {
      rewriter.copy(n);
      continue;
    }
    for (std::int32_t i = 0; i < node.n_outputs; ++i) rewriter.replace(node.first_output + i, rewriter.at(it->second + i));
  }
  return rewriter.finish();
}

std::map<std::string, Type> input_types(const Graph& g) {
  std::map<std::string, Type> types;
  for (ValueId v = 0; v < g.n_inputs; ++v) types[g.value_name(v)] = g.values[v].type;
  return types;
}

// The types of all inputs once the named inputs have the types that were asked for. The other inputs follow.
std::map<std::string, Type> implied_inputs(const Graph& g, const std::map<std::string, Type>& named, const DimTable* dims) {
  if (dims && !dims->empty()) return input_types(retype(g, *dims, sizes_of(g, *dims, named)));
  std::map<std::string, PartialShape> known;
  for (const auto& [name, type] : named) known[name] = PartialShape(type.shape.begin(), type.shape.end());
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
    const Shape& s = g.values[v].type.shape;
    known[g.value_name(v)] = PartialShape(s.begin(), s.end());
  }
  std::map<std::string, Type> types = input_types(g);
  const std::map<std::string, PartialShape> found = infer_shapes(g, known);
  for (auto& [name, type] : types)
    for (int i = 0; i < type.shape.rank; ++i)
      if (found.at(name)[i] != kUnknownSize) type.shape[i] = found.at(name)[i];
  return types;
}

void check_named(const Graph& g, const std::map<std::string, Type>& named, const std::map<std::string, Type>& implied,
                 const ReshapeOptions& options) {
  const std::map<std::string, Type> before = input_types(g);
  for (const auto& [name, type] : named) {
    const auto it = before.find(name);
    if (it == before.end()) throw TypeError(fmt::format("reshape: the graph has no input '{}'", name));
    if (it->second.dtype != type.dtype || it->second.shape.rank != type.shape.rank)
      throw TypeError(fmt::format("reshape: input '{}' is {}: {} changes more than its sizes", name, to_string(it->second),
                                  to_string(type)));
  }
  for (const auto& [name, type] : implied) {
    if (named.count(name) || type == before.at(name) || options.partial_shaping) continue;
    throw TypeError(
        fmt::format("reshape: input '{}' would change from {} to {} and was not named; name it, or allow partial_shaping", name,
                    to_string(before.at(name)), to_string(type)));
  }
  for (const auto& [name, type] : implied)
    if (type.bytes() > before.at(name).bytes() && !options.allow_up_sizing)
      throw TypeError(fmt::format("reshape: input '{}' would grow from {} to {}; allow_up_sizing gives it fresh memory", name,
                                  to_string(before.at(name)), to_string(type)));
}

Plan plan_at(const Plan& plan, const Graph& before, const Graph& after, bool may_grow) {
  const Refit refit(before, {}, before, plan);
  std::string why = refit.obstacle();
  if (why.empty())
    if (std::optional<Plan> fitted = fit_plan(plan, refit.planned_graph(after), &why); fitted && check_plan(*fitted).empty())
      return std::move(*fitted);
  PlanOptions options;
  options.alignment = plan.alignment;
  options.chunk_bytes = plan.chunk_bytes;
  options.budget = plan.budget_bytes;
  options.threads = plan.threads;
  options.level = plan.level;
  options.ordering = plan.order == "recorded" ? Ordering::recorded : Ordering::automatic;
  options.find_floor = false;
  options.near = std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(),
                                             &plan);  // not owned; values of the same size stay where they were
  if (!parse_strategy(plan.strategy, &options.strategy)) options.strategy = Strategy::automatic;
  Plan fresh = make_plan(after, options);
  options.near = nullptr;
  if (!may_grow && fresh.arena_bytes > plan.arena_bytes)
    fresh = make_plan(after, options);  // keeping addresses may need more bytes than there are
  if (!fresh.feasible) throw InfeasiblePlanError("reshape", fresh);
  return fresh;
}

}  // namespace

Executor Executor::reshape(Plan plan, const ReshapeOptions& options) const {
  const replay::Busy busy(*impl_->memory, "reshape", impl_->name);
  impl_->refuse_on_device("reshape");
  const Graph &g = impl_->plan.graph, &to = plan.graph;
  const auto names = [](const Graph& graph) {
    std::vector<std::string> all;
    for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) all.push_back(graph.value_name(v));
    return all;
  };
  if (g.n_inputs != to.n_inputs || g.n_state != to.n_state || names(g) != names(to))
    throw UsageError("reshape: the plan is of another graph: its inputs and state are others");
  return Executor(std::make_unique<Impl>(std::move(plan), *impl_, options.allow_up_sizing));
}

Executor Executor::reshape(const std::map<std::string, Type>& inputs, const ReshapeOptions& options) const {
  const Graph before = without_clones(impl_->plan.graph);
  check_named(before, inputs, input_types(before), {.partial_shaping = true, .allow_up_sizing = true});
  const std::map<std::string, Type> implied = implied_inputs(before, inputs, options.dims);
  check_named(before, inputs, implied, options);
  const bool named_dims = options.dims && !options.dims->empty();
  const Graph after =
      named_dims ? retype(before, *options.dims, sizes_of(before, *options.dims, inputs)) : retype(before, implied);
  return reshape(plan_at(impl_->plan, before, after, options.allow_up_sizing), options);
}

}  // namespace tapedeck
