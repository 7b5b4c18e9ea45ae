// What became of the wishes for single values (plan/wishes.h): how many values each of them names and how many it is honoured
// for, why not for the others, and on demand what the wish costs.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct WishRefusal {
  std::string value;  // name in the planned graph
  std::string why;
};

// The plan of the same graph and options, with the same budget in bytes, but without one of the wishes.
struct WithoutWish {
  bool feasible = true;
  std::int64_t peak_bytes = 0;
  std::int64_t floor_bytes = 0;
  double cost_us = 0;
};

struct WishOutcome {
  Wish wish;
  std::int32_t values = 0;     // that the pattern names
  std::int32_t overruled = 0;  // of these: a later wish names them too, and counts
  std::int32_t honoured = 0;
  std::int32_t refused = 0;
  std::vector<WishRefusal> refusals;  // the first of them
  std::vector<WithoutWish> without;   // one entry once add_wish_costs() has run
};

// One outcome for each wish. The wishes of the program come first. A wish to keep a value is refused only if the captured graph
// itself computes the value again. Throws the errors of make_plan().
std::vector<WishOutcome> wish_outcomes(const Graph& captured, const PlanOptions& options);

// Plans again without each of the wishes. `plan` is make_plan(captured, options).
void add_wish_costs(const Graph& captured, const PlanOptions& options, const Plan& plan, std::vector<WishOutcome>* outcomes);

// A few lines for each wish; with its costs where they are there.
std::string wishes_text(const std::vector<WishOutcome>& outcomes, const Plan& plan);

}  // namespace TAPEDECK_API
