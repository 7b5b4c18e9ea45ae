// Where the microseconds of the tool's plans come from: what --costs says, else the best there is.
#pragma once

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/file/file.h>

#include <memory>
#include <string>

namespace tapedeck::tool {

// `choice`: estimate, calibrated, profile, or empty: the file's profile, else this machine's calibration, else estimates
// (null). A profile is completed by the calibration, if there is one. Says on stderr why a calibration is not used, and if a
// profile is of another machine. Throws UsageError for a choice that is not there.
std::shared_ptr<const CostModel> choose_costs(const std::string& choice, const TapeFile& file);

// "profile, 118 of 130 nodes measured": of a plan.
std::string describe_costs(const Plan& plan);

}  // namespace tapedeck::tool
