#include <tapedeck/capture/plan/infeasible_plan.h>

#include <tapedeck/capture/plan/placement_reasons.h>

#include <charconv>
#include <string_view>
#include <utility>

namespace tapedeck {

namespace {

// Sets the place of the text from a site, "train.cpp:12". A site of another form, which a file may hold, gives no place.
void set_place(std::string_view site, ErrorText* text) {
  const std::size_t colon = site.rfind(':');
  if (colon == site.npos) return;
  int line = 0;
  const char* end = site.data() + site.size();
  const auto [rest, error] = std::from_chars(site.data() + colon + 1, end, line);
  if (error != std::errc() || rest != end || line <= 0) return;
  text->file = site.substr(0, colon);
  text->line = line;
}

}  // namespace

InfeasiblePlanError::AtPeak InfeasiblePlanError::at_peak_of(const char* op, const Plan& plan, const std::string& what) {
  AtPeak found;
  found.keep_all_peak_bytes = plan.keep_all_peak_bytes;
  found.text = error_text(op, what + plan.infeasible_reason, {});
  const PeakNode peak = peak_node(plan);
  if (peak.node == kNone) return found;
  const Node& node = plan.graph.nodes[peak.node];
  if (node.n_outputs > 0) found.node = plan.graph.value_name(node.first_output);
  found.op = node.op->name;
  found.bytes = peak.live_bytes;
  set_place(node.origin.site.view(), &found.text);
  return found;
}

InfeasiblePlanError::InfeasiblePlanError(const Plan& plan, AtPeak at_peak)
    : InfeasibleError(at_peak.text, plan.budget_bytes, plan.floor_bytes),
      at_peak_(std::make_shared<const AtPeak>(std::move(at_peak))) {}

InfeasiblePlanError::InfeasiblePlanError(const char* op, const Plan& plan, const std::string& what)
    : InfeasiblePlanError(plan, at_peak_of(op, plan, what)) {}

}  // namespace tapedeck
