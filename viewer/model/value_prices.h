// The prices of the other choice for one value, as `tapedeck plan --explain VALUE` prints them. A price takes long for large
// graphs, so a thread in the background works it out.
#pragma once

#include <tapedeck/capture/explain/value_prices.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tapedeck::viewer {

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
