// What is known of the values of a plan beyond the plan itself: the decision log, and the prices of the other choice for one
// value. Both are those of `tapedeck plan --explain`. Working them out takes long for large graphs, so it runs in the
// background.
#pragma once

#include <tapedeck/capture/explain/value_log.h>
#include <tapedeck/capture/explain/value_prices.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/viewer/model/plan_model.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The log of one plan.
struct PlanLog {
  std::shared_ptr<const PlanModel> model;
  std::vector<ValueEntry> entries;
  std::vector<std::int32_t> entry_of;  // by value of the plan's graph; kNone: none

  const ValueEntry* find(ValueId v) const;
};

// `options`: those that the plan was made with, wishes included.
std::shared_ptr<const PlanLog> make_log(std::shared_ptr<const PlanModel> model, const Graph& captured,
                                        const PlanOptions& options);

// The prices of the other choice for one value.
struct ValuePrices {
  std::string name;                 // of the value
  std::uint64_t model = 0;          // serial number of the plan
  std::optional<ValuePrice> alone;  // with all other choices fixed
  std::optional<ValuePrice> anew;   // planned again with that wish
  std::string error;                // why a price could not be worked out
};

// "2 times: nodes 3 and 41", "once: node 3", "given from outside".
std::string runs_text(const ValueEntry& entry);
// "+1.2 MiB peak, -3.4 ms": how a price differs from the plan; or why there is none.
std::string price_text(const Plan& plan, const ValuePrice& price);

}  // namespace tapedeck::viewer
