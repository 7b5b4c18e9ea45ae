// The source of the microseconds in plans of the tool: the source that --costs names, else the best one there is.
#pragma once

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/file/file.h>

#include <memory>
#include <string>

namespace tapedeck::tool {

// `choice`: estimate, calibrated, profile, or empty: the file's profile, else this machine's calibration, else estimates
// (null). A profile is completed by the calibration, if there is one. Prints to stderr the reason why a calibration is
// not used, and a warning if a profile is of another machine. Throws UsageError for a source that does not exist.
std::shared_ptr<const CostModel> choose_costs(const std::string& choice, const TapeFile& file);

// "profile, 118 of 130 nodes measured": of a plan.
std::string describe_costs(const Plan& plan);

}  // namespace tapedeck::tool
