// Where plans of one problem come from. A problem is everything that a plan is asked for but the budget.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/viewer/words/format.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace tapedeck::viewer {

struct PlanProblem {
  std::shared_ptr<const Graph> graph;
  PlanOptions options;  // without a budget
};

// Plans of one problem for one budget after another. Only one thread may use it.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  // -1: without a budget. Throws as make_plan; after Cancelled it may be asked again.
  virtual Plan plan(std::int64_t budget) = 0;
  virtual std::int64_t bytes_of_percent(double percent) const = 0;
  virtual std::int64_t floor() const = 0;
  virtual std::int64_t keep_all_peak() const = 0;

  std::int64_t bytes_of(const Budget& budget) const {
    return budget.percent < 0 ? budget.bytes : bytes_of_percent(budget.percent);
  }
};

// How a source works: how much it works out before it can be asked, and how it is watched meanwhile and in every plan().
struct SourceWork {
  SearchEffort effort = SearchEffort::full;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double)> progress;
};

// Makes a source; this is where most of the time goes. Throws as make_plan.
using MakeSource = std::function<std::unique_ptr<PlanSource>(const PlanProblem&, const SourceWork&)>;

// A source that is a PlanSearch.
std::unique_ptr<PlanSource> search_plans(const PlanProblem& problem, const SourceWork& work);

}  // namespace tapedeck::viewer
