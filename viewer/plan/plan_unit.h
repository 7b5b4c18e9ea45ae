// The unit of all bytes that the window shows of one plan.
#pragma once

#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/plan/plan.h>

#include <algorithm>

namespace tapedeck::viewer {

// It does not change with the budget.
inline ByteUnit unit_of(const Plan& plan) { return ByteUnit::of(std::max(plan.peak_bytes, plan.keep_all_peak_bytes)); }

}  // namespace tapedeck::viewer
