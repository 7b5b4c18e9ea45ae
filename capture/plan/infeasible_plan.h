// The error for a plan that does not fit its budget: the budget, the floor, and the node where the most bytes are alive.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tapedeck TAPEDECK_API {

// op() is the call that needs the plan. file() and line() are the place of the user's call that recorded the node. An error can
// be copied without an exception.
class InfeasiblePlanError : public InfeasibleError {
 public:
  // `op` may be empty. `what` stands before the reason that the plan gives. REQUIRES: the plan keeps its invariants.
  InfeasiblePlanError(const char* op, const Plan& plan, const std::string& what = {});

  const char* kind() const noexcept override { return "InfeasiblePlanError"; }
  std::int64_t keep_all_peak_bytes() const noexcept { return at_peak_->keep_all_peak_bytes; }  // of the plan that keeps all

  // The node at which the lowest plan has most bytes alive, so that no smaller budget can be met: the name of its first result,
  // its op, and those bytes, external bytes included. Empty and 0 if the graph has no nodes.
  const std::string& node() const noexcept { return at_peak_->node; }
  const std::string& node_op() const noexcept { return at_peak_->op; }
  std::int64_t node_bytes() const noexcept { return at_peak_->bytes; }

 private:
  struct AtPeak {
    std::string node, op;
    std::int64_t bytes = 0, keep_all_peak_bytes = 0;
    ErrorText text;  // of the error; its place is the place of the node
  };
  explicit InfeasiblePlanError(const Plan& plan, AtPeak at_peak);
  static AtPeak at_peak_of(const char* op, const Plan& plan, const std::string& what);

  std::shared_ptr<const AtPeak> at_peak_;
};

}  // namespace TAPEDECK_API
