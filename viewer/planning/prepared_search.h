// A full search of one problem, with the plan that was asked of it first. The thread that made it may hand it over: the price
// of a wish takes a search, and a person who then makes the wish gets the plan of the same search (PlanWorker::adopt).
#pragma once

#include <tapedeck/viewer/planning/plan_source.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace tapedeck::viewer {

struct PreparedSearch {
  std::shared_ptr<const PlanProblem> problem;
  std::shared_ptr<std::atomic<bool>> cancel = std::make_shared<std::atomic<bool>>(false);  // which the source looks at
  std::unique_ptr<PlanSource> source;
  std::int64_t budget = -1;  // of the plan
  std::optional<Plan> plan;
};

}  // namespace tapedeck::viewer
