// A plan at the addresses of another one, so that nothing moves in the picture where a draft and the final plan hold the same
// peak.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <optional>

namespace tapedeck::viewer {

// `next` with the addresses of `before`. Nothing if the plans differ in more than addresses, or if the addresses are equal
// already. Both plans must be valid; the result then is valid, too. O(nodes and values).
std::optional<Plan> with_addresses_of(const Plan& before, const Plan& next);

}  // namespace tapedeck::viewer
