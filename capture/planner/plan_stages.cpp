// Each stage is a file of this folder, and Planning (planning.h) is all that they share.
//
//     captured graph --> prepare --> wish --> order --> rematerialize --> limits --> close    budget --> choose --> place -->
//                        1 graph     1 graph  orders    candidates        floor      candidates          1          offsets
//     segment --> check
//     tasks       Plan
#include <tapedeck/capture/planner/plan_stages.h>

#include <tapedeck/capture/check/check_plan.h>
#include <tapedeck/capture/planner/close_candidates.h>
#include <tapedeck/capture/planner/finish_plan.h>
#include <tapedeck/capture/planner/honour_wishes.h>
#include <tapedeck/capture/planner/lean_regions.h>
#include <tapedeck/capture/planner/loop_intervals.h>
#include <tapedeck/capture/planner/prepare.h>
#include <tapedeck/capture/planner/requests/asked_options.h>
#include <tapedeck/capture/planner/solve_for_budget.h>

#include <tapedeck/engine/eager/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

namespace {

// Always where assertions are on; else when asked.
bool checks_plans() {
#ifndef NDEBUG
  return true;
#else
  const Settings now = settings_from_environment();
  return now.check_plans || now.debug >= 2;
#endif
}

// The same options with the wishes that marks in the graph state.
PlanOptions with_marks(PlanOptions options, const Graph& graph) {
  options.wishes = with_program_wishes(graph, options.wishes);
  return options;
}

// The same options with the budget in bytes.
PlanOptions in_bytes(PlanOptions options, std::int64_t budget) {
  options.budget = budget;
  options.budget_percent = -1;
  return options;
}

// The names of the state values that the captured graph updates and the planned graph does not: passes leave out an update
// whose value is the state itself.
std::vector<std::string> unchanged_state(const Graph& captured, const Graph& planned) {
  std::vector<bool> is_stored(planned.values.size());
  for (const Update& u : planned.updates) is_stored[u.state] = true;
  std::vector<std::string> names;
  for (const Update& u : captured.updates)
    if (!is_stored[u.state]) names.push_back(captured.value_name(u.state));
  return names;
}

// The graph with the clones that wishes ask for, or the same graph.
Recomputed write_wishes(Graph graph, Planning* planning) {
  const PlanOptions& how = planning->options;
  Recomputed wished;
  if (!wishes_to_recompute(how.wishes)) {
    wished.graph = std::move(graph);
    return wished;
  }
  wished = wished_clones(graph, how);
  wished.graph = planning->passes.run(
      "wishes", std::move(graph), [&](Graph) { return std::move(wished.graph); }, PassRunner::Need::always);
  return wished;
}

// What the user wished for is a choice that was made first; its price is over the cost of keeping everything.
void note_wished(const Recomputed& wished, Plan* plan) {
  plan->keep_all_cost_us -= wished.cost_us;
  plan->decisions.insert(plan->decisions.begin(), wished.decisions.begin(), wished.decisions.end());
}

// The last stage. Clones that stand in the captured graph are not the planner's, so they are not judged.
void check_made_plan(const Graph& captured, const Plan& plan) {
  std::vector<std::string> violations = check_plan(plan);
  if (violations.empty() &&
      std::none_of(captured.nodes.begin(), captured.nodes.end(), [](const Node& n) { return n.origin.clone; }))
    violations = check_clones(plan);
  if (!violations.empty())
    throw InvalidGraphError(fmt::format("the planner made a plan that breaks its rules: {}", fmt::join(violations, "; ")));
}

}  // namespace

PlanStages::PlanStages(const Graph& captured, const PlanOptions& options, LookFor look_for)
    : PlanStages(captured, options, look_for, checks_plans() ? Looks::at_each : Looks::at_none) {}

PlanStages::PlanStages(const Graph& captured, const PlanOptions& options, LookFor look_for, Looks looks)
    : captured_(captured),
      asked_(request_of(options)),
      options_(with_marks(options, captured)),
      planning_(options_, look_for, looks),
      bounds_(planning_) {
  // Prepare: verify the graph, name its values, run the passes, add the copies that updates and outputs need.
  Graph graph = prepare(captured, &planning_.passes, options_.sharing);
  check_wishes_name_something(options_.wishes, captured, graph);

  // Wish: the values that the user wants computed again are, before any choice is made.
  wished_ = write_wishes(std::move(graph), &planning_);

  // Order: look for orders of the nodes that keep few bytes alive, and for joins whose parts can lie in place.
  find_orders(std::exchange(wished_.graph, {}), &planning_);

  // Loops: the same orders, with loops that keep fewer bytes for backward.
  if (planning_.effort.looks_for_floor()) add_loop_intervals(&planning_);

  // Regions: the same orders, with bodies of loops and branches that take fewer bytes.
  if (planning_.effort.looks_for_floor()) add_lean_regions(&planning_);

  // Rematerialize: in each order every strategy chooses values to compute again; each point on its way is a candidate.
  rematerialize(&planning_);

  // Limits: the peak with everything kept, and the least peak of all candidates.
  limits_ = find_limits(&planning_);

  // Close: add candidates that lack a repeated run of another candidate.
  close_candidates(limits_, &planning_);
}

Plan PlanStages::plan_in_stages(std::int64_t budget, Strategy strategy) {
  // Solve: a strategy that looks at one budget adds its candidate.
  solve_for_budget(budget, strategy, &planning_);

  // Choose: the cheapest candidate whose placed peak fits the budget.
  const Choice choice = choose(limits_, budget, strategy, &planning_);
  const Candidate& chosen = *choice.candidate;

  // Place: every value and every workspace of the candidate gets its offset.
  PlacedCandidate placed = planning_.layouts.place(chosen, budget, choice.searched);

  // Segment: cut the nodes into tasks for the threads asked for, and write down the plan.
  Plan plan = finish_plan(chosen.order->facts, std::move(placed.cloned), chosen.cost, in_bytes(options_, budget),
                          &planning_.passes, std::move(placed.layout));
  planning_.watch.check();  // a search that was cancelled ends with the best it has, which is no plan to hand out
  note_choice(choice, &plan);
  note_wished(wished_, &plan);
  plan.unchanged_state = unchanged_state(captured_, plan.graph);
  plan.level = options_.level;
  plan.asked = asked_;
  plan.asked.strategy = strategy_name(strategy);

  // Bound: say how much less another plan that fits could cost.
  bounds_.note(&plan);
  note_proof(chosen, planning_, &plan);

  // Check: judge the plan, where checks are on.
  if (checks_plans()) check_made_plan(captured_, plan);
  planning_.watch.report(1.0);
  return plan;
}

bool PlanStages::answers_for(Strategy strategy) const {
  if (strategy == options_.strategy) return true;
  const StrategyEntry* entry = find_strategy(strategy);
  return options_.strategy == Strategy::automatic && (!entry || planning_.is_in_auto(*entry));
}

// The passes must not break what the verifier has proven of the captured graph. Verifying takes as long as some of the passes,
// so only the planned graph is verified. If it does not verify, the graph is planned again, and verified after each pass, to
// find the pass at fault.
Plan PlanStages::plan(std::int64_t budget, Strategy strategy) {
  Plan plan = plan_in_stages(budget, strategy);
  if (checks_plans()) return plan;
  try {
    verify(plan.graph);
  } catch (const InvalidGraphError&) {
    PlanStages(captured_, options_, planning_.look_for, Looks::at_each).plan_in_stages(budget, strategy);
    throw;
  }
  return plan;
}

}  // namespace tapedeck
