#include <tapedeck/viewer/plan/shared_bytes.h>
#include <tapedeck/viewer/words/index.h>

namespace tapedeck::viewer {

namespace {

bool shares(Reason reason) {
  return reason == Reason::in_place || reason == Reason::alias || reason == Reason::part || reason == Reason::update;
}

}  // namespace

ValueId source_of_bytes(const Plan& plan, ValueId v) {
  const Placement& p = plan.values[at(v)];
  if (!shares(p.reason)) return kNone;
  if (p.other != kNone) return at(p.other) < plan.values.size() ? p.other : kNone;
  return p.reason == Reason::update && p.where == Where::state && p.slot >= 0 && p.slot < plan.graph.n_state
             ? plan.graph.n_inputs + p.slot
             : kNone;
}

// The values are counted for each source, and then sorted into the places that the counts give.
SharedBytes::SharedBytes(const Plan& plan) : first_(plan.values.size() + 1, 0) {
  const auto n = static_cast<ValueId>(plan.values.size());
  for (ValueId v = 0; v < n; ++v)
    if (const ValueId source = source_of_bytes(plan, v); source != kNone) ++first_[at(source) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  values_.resize(at(first_.back()));
  std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
  for (ValueId v = 0; v < n; ++v)
    if (const ValueId source = source_of_bytes(plan, v); source != kNone) values_[at(next[at(source)]++)] = v;
}

std::span<const ValueId> SharedBytes::inside(ValueId v) const {
  return {values_.data() + first_[at(v)], values_.data() + first_[at(v) + 1]};
}

}  // namespace tapedeck::viewer
