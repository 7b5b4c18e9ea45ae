#include <tapedeck/capture/sharing_bounds.h>

namespace tapedeck {

namespace {

constexpr Sharing kRules[] = {Sharing::windows, Sharing::in_place, Sharing::add_to, Sharing::parts, Sharing::updates};

SharingBound bound(std::string rules, Sharing sharing, const Graph& captured, PlanOptions options) {
  options.sharing = sharing;
  options.strategy = Strategy::none;
  options.budget = -1;
  options.budget_percent = -1;
  options.find_floor = false;
  options.threads = 1;  // bytes for several threads are another question
  options.progress = {};
  const Plan plan = make_plan(captured, options);
  return {std::move(rules), sharing, plan.lower_bound_bytes, plan.peak_bytes};
}

}  // namespace

const char* sharing_name(Sharing rule) {
  constexpr const char* names[] = {"windows", "in_place", "add_to", "parts", "updates"};
  for (std::size_t i = 0; i < std::size(kRules); ++i)
    if (rule == kRules[i]) return names[i];
  return rule == Sharing::all ? "all" : rule == Sharing::none ? "none" : "";
}

std::vector<SharingBound> sharing_bounds(const Graph& captured, const PlanOptions& options) {
  std::vector<SharingBound> bounds = {bound("all", options.sharing, captured, options)};
  for (Sharing rule : kRules)
    if (has(options.sharing, rule)) bounds.push_back(bound(std::string("without ") + sharing_name(rule), options.sharing & ~rule, captured, options));
  bounds.push_back(bound("none", Sharing::none, captured, options));
  return bounds;
}

}  // namespace tapedeck
