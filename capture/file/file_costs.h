// Where the microseconds of a plan of a file come from: the replays that the file has measured, the measurements of this
// machine, or the library's estimates.
#pragma once

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct Plan;

enum class CostSource : std::uint8_t {
  best,        // the file's profile, completed by the calibration of this machine; else the calibration; else estimates
  estimate,    // numbers that come with the library
  calibrated,  // measured on this machine by `tapedeck calibrate`
  profile,     // measured in replays of the file, completed by the calibration if there is one
};
const char* cost_source_name(CostSource source);  // "best" "estimate" "calibrated" "profile"
bool parse_cost_source(std::string_view text, CostSource* source);

struct FileCosts {
  std::shared_ptr<const CostModel> model;  // for PlanOptions::costs; null: estimates
  std::vector<std::string> notes;  // for people: why a calibration is not used, and that a profile is of another machine
};

// `profile` is that of the file. Throws UsageError for a source that does not exist here.
FileCosts costs_of_file(CostSource source, const std::optional<Profile>& profile);

// "profile, 118 of 130 nodes measured": where the microseconds of a plan come from.
std::string describe_costs(const Plan& plan);

}  // namespace TAPEDECK_API
