#include <tapedeck/capture/step/freeze_session.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/tensor_impl.h>

#include <algorithm>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

// The bytes of the tensors that a step reads and that existed before it. A plan counts them in its peak.
std::int64_t bytes_from_outside(const Captured& captured) {
  std::set<const detail::Storage*> seen;
  std::int64_t bytes = 0;
  for (const auto* list : {&captured.state, &captured.inputs, &captured.constants})
    for (const Tensor& t : *list)
      if (t.defined() && t.impl()->storage && seen.insert(t.impl()->storage).second) bytes += t.impl()->storage->bytes;
  return bytes;
}

}  // namespace

FrozenStep freeze(const Session& session, const std::function<void(Capture&)>& step, PlanOptions options,
                  const std::string& name, Site site) {
  trim_memory();
  const std::int64_t held = Allocator::host().system_bytes();
  const SessionStats before = session.stats();
  FrozenStep frozen;
  {
    Capture capture(name, site);
    step(capture);
    frozen.eager_recomputed_us = session.stats().recomputed_cost - before.recomputed_cost;
    frozen.captured = capture.finish();
  }
  const std::int64_t beside = std::max<std::int64_t>(held - bytes_from_outside(frozen.captured), 0);
  options.budget = std::max<std::int64_t>(before.budget - beside, 0);
  options.budget_percent = -1;
  frozen.plan = make_plan(frozen.captured.graph, options);
  frozen.plan_recomputed_us = frozen.plan.cost_us - frozen.plan.keep_all_cost_us;
  return frozen;
}

}  // namespace tapedeck
