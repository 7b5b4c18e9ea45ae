#include <tapedeck/capture/planner/plan_search.h>

#include <tapedeck/capture/planner/check_options.h>
#include <tapedeck/capture/planner/plan_stages.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <chrono>
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

}  // namespace

// The stages keep references to the graph and the options, so all three stay where they are.
struct PlanSearch::Prepared {
  Prepared(const Graph& captured, const PlanOptions& how, SearchEffort effort)
      : options(checked(how, effort)),
        graph(captured),
        stages(graph, options, effort == SearchEffort::draft ? LookFor::draft : LookFor::budgets) {}

  const PlanOptions options;
  const Graph graph;
  PlanStages stages;
};

PlanSearch::PlanSearch(const Graph& graph, const PlanOptions& options, SearchEffort effort)
    : prepared_(std::make_unique<Prepared>(graph, options, effort)) {}
PlanSearch::~PlanSearch() = default;
PlanSearch::PlanSearch(PlanSearch&&) noexcept = default;
PlanSearch& PlanSearch::operator=(PlanSearch&&) noexcept = default;

Plan PlanSearch::plan(std::int64_t budget) { return plan(budget, prepared_->options.strategy); }

bool PlanSearch::answers_for(Strategy strategy) const { return prepared_->stages.answers_for(strategy); }

Plan PlanSearch::plan(std::int64_t budget, Strategy strategy) {
  const auto start = std::chrono::steady_clock::now();
  if (budget < -1) throw UsageError(fmt::format("a budget cannot be negative: {}", budget));
  if (!answers_for(strategy))
    throw UsageError(fmt::format("a PlanSearch by strategy {} does not plan by strategy {}",
                                 strategy_name(prepared_->options.strategy), strategy_name(strategy)));
  Plan plan = prepared_->stages.plan(budget, strategy);
  plan.solve_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

std::int64_t PlanSearch::bytes_of_percent(double percent) const {
  return budget_in_bytes({.budget_percent = percent}, prepared_->stages.limits());
}

std::int64_t PlanSearch::floor() const { return prepared_->stages.limits().floor; }
std::int64_t PlanSearch::keep_all_peak() const { return prepared_->stages.limits().keep_all_peak; }

}  // namespace tapedeck
