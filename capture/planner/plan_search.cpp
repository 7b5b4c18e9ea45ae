#include <tapedeck/capture/planner/plan_search.h>

#include <tapedeck/capture/planner/plan_stages.h>
#include <tapedeck/capture/planner/requests/check_options.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

namespace tapedeck {

namespace {

PlanOptions checked(PlanOptions options, SearchEffort effort) {
  check_options(options);
  if (effort == SearchEffort::draft) {
    options.ordering = Ordering::recorded;
    options.place_work = 0;
  }
  if (options.budget >= 0 || options.budget_percent >= 0)
    throw UsageError("a PlanSearch takes each budget in plan(), and none in its options");
  options.find_floor = true;
  return options;
}

// Whether the draft of a graph begins with the plan that keeps everything, because its choices take seconds.
bool has_to_wait(const Graph& graph, const PlanOptions& options, SearchEffort effort) {
  constexpr NodeId kManyNodes = 20'000;
  return effort == SearchEffort::draft && graph.node_count() > kManyNodes && options.strategy == Strategy::automatic;
}

PlanOptions without_floor(PlanOptions options) {
  options.find_floor = false;
  return options;
}

}  // namespace

// The stages keep references to the graph and the options, so all of them stay where they are.
struct PlanSearch::Prepared {
  Prepared(const Graph& captured, const PlanOptions& how, SearchEffort effort)
      : options(checked(how, effort)),
        options_of_first(without_floor(options)),
        graph(captured),
        look_for(effort == SearchEffort::draft ? LookFor::draft : LookFor::budgets) {
    if (has_to_wait(graph, options, effort))
      first.emplace(graph, options_of_first, look_for);
    else
      for_budgets();
  }

  // The stages that answer for any budget.
  PlanStages& for_budgets() {
    if (!stages) stages.emplace(graph, options, look_for);
    return *stages;
  }

  PlanStages& for_budget(std::int64_t budget) { return budget < 0 && first ? *first : for_budgets(); }
  const PlanStages& known() const { return first ? *first : *stages; }

  const PlanOptions options, options_of_first;
  const Graph graph;
  const LookFor look_for;
  std::optional<PlanStages> first;   // of the draft of a large graph: they keep everything, and know no floor
  std::optional<PlanStages> stages;  // where there is `first`, made for the first budget
};

PlanSearch::PlanSearch(const Graph& graph, const PlanOptions& options, SearchEffort effort)
    : prepared_(std::make_unique<Prepared>(graph, options, effort)) {}
PlanSearch::~PlanSearch() = default;
PlanSearch::PlanSearch(PlanSearch&&) noexcept = default;
PlanSearch& PlanSearch::operator=(PlanSearch&&) noexcept = default;

Plan PlanSearch::plan(std::int64_t budget) { return plan(budget, prepared_->options.strategy); }

bool PlanSearch::answers_for(Strategy strategy) const { return prepared_->known().answers_for(strategy); }

Plan PlanSearch::plan(std::int64_t budget, Strategy strategy) {
  const auto start = std::chrono::steady_clock::now();
  if (budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", budget));
  if (!answers_for(strategy))
    throw UsageError(fmt::format("a PlanSearch by strategy {} does not plan by strategy {}",
                                 strategy_name(prepared_->options.strategy), strategy_name(strategy)));
  Plan plan = prepared_->for_budget(budget).plan(budget, strategy);
  if (budget < 0 && prepared_->first) plan.floor_bytes = 0;
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

std::int64_t PlanSearch::bytes_of_percent(double percent) const {
  return budget_in_bytes({.budget_percent = percent}, prepared_->known().limits());
}

std::int64_t PlanSearch::floor() const { return prepared_->for_budgets().limits().floor; }
std::int64_t PlanSearch::keep_all_peak() const { return prepared_->known().limits().keep_all_peak; }

}  // namespace tapedeck
