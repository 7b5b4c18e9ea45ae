// Plans of one graph for many budgets: the orders of its nodes and the choices of the strategies are worked out once, and each
// budget then picks from them.
//
//     PlanSearch search(step.captured().graph);
//     for (std::int64_t budget = search.floor(); budget < search.keep_all_peak(); budget += 1 << 20)
//       draw(budget, search.plan(budget).recompute_cost_ratio());
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>

namespace tapedeck TAPEDECK_API {

// How much a PlanSearch works out before it can be asked for a budget.
enum class SearchEffort : std::uint8_t {
  full,   // all that make_plan does, so that the plans are equal
  draft,  // the recorded order, the choices of the strategies as they are, and greedy offsets: plans that hold their budgets,
          // in about a twentieth of the time, at a higher cost and above a higher floor than those of `full`. Beyond 20,000
          // nodes, the choices of strategy `auto` wait for the first budget, or the first question for the floor. A plan
          // without a budget does not wait for them; its floor_bytes are 0, because the floor is not known.
};

class PlanSearch {
 public:
  // Copies the graph. `options` name no budget; the floor is always looked for. options.cancel and options.progress serve this
  // constructor and every plan(). Throws as make_plan.
  explicit PlanSearch(const Graph& graph, const PlanOptions& options = {}, SearchEffort effort = SearchEffort::full);
  ~PlanSearch();
  PlanSearch(PlanSearch&&) noexcept;
  PlanSearch& operator=(PlanSearch&&) noexcept;

  // The plan that make_plan gives for this budget in bytes (-1: without a budget), but for solve_ms, which is the time of this
  // call; a search of less than full effort gives other plans. It does not depend on earlier calls. Not thread safe. Throws as
  // make_plan; after Cancelled the search can be asked again.
  Plan plan(std::int64_t budget);
  // The same for another strategy: one that `auto` asks in this graph, or `none`, where the options name `auto`. Throws
  // UsageError for others.
  Plan plan(std::int64_t budget, Strategy strategy);
  bool answers_for(Strategy strategy) const;

  // The budget in bytes that PlanOptions::budget_percent means.
  std::int64_t bytes_of_percent(double percent) const;

  // As Plan::floor_bytes and Plan::keep_all_peak_bytes of a plan on one thread.
  std::int64_t floor() const;
  std::int64_t keep_all_peak() const;

 private:
  struct Prepared;
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace TAPEDECK_API
