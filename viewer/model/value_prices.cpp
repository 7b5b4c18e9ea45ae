#include <tapedeck/viewer/model/value_prices.h>

#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

std::string signed_bytes(const ByteUnit& unit, std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + unit.readable_text(bytes < 0 ? -bytes : bytes);
}
std::string signed_us(double us) { return (us < 0 ? "-" : "+") + human_us(us < 0 ? -us : us); }

}  // namespace

std::string runs_text(const ValueEntry& entry) {
  constexpr std::size_t kMostShown = 6;
  if (entry.runs.empty()) return "given from outside";
  if (entry.runs.size() == 1) return fmt::format("once: node {}", entry.runs[0]);
  std::string text = fmt::format("{} times: nodes ", entry.runs.size());
  for (std::size_t i = 0; i < std::min(entry.runs.size(), kMostShown); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(entry.runs[i]);
  return entry.runs.size() > kMostShown ? text + ", ..." : text;
}

std::string price_text(const Plan& plan, const ValuePrice& price) {
  const ByteUnit unit = unit_of(plan);
  if (!price.obstacle.empty()) return "impossible: " + price.obstacle;
  if (!price.feasible && price.floor_bytes > 0)
    return fmt::format("the budget cannot be met then: the floor would be {}", unit.text(price.floor_bytes));
  std::string text =
      fmt::format("a step of {} ({}), peak {} ({})", human_us(price.cost_us), signed_us(price.cost_us - plan.cost_us),
                  unit.text(price.peak_bytes), signed_bytes(unit, price.peak_bytes - plan.peak_bytes));
  return price.feasible ? text : text + ", above the budget";
}

}  // namespace tapedeck::viewer
