#include <tapedeck/capture/file/file_costs.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {

constexpr CostSource kSources[] = {CostSource::best, CostSource::estimate, CostSource::calibrated, CostSource::profile};

}  // namespace

const char* cost_source_name(CostSource source) {
  constexpr const char* kNames[] = {"best", "estimate", "calibrated", "profile"};
  return kNames[static_cast<int>(source)];
}

bool parse_cost_source(std::string_view text, CostSource* source) {
  for (const CostSource known : kSources)
    if (text == cost_source_name(known)) {
      *source = known;
      return true;
    }
  return false;
}

FileCosts costs_of_file(CostSource source, const std::optional<Profile>& profile) {
  FileCosts costs;
  if (source == CostSource::estimate) return costs;
  CostModel model;
  const std::string path = calibration_path();
  std::string why;
  model.calibration = load_calibration(path, &why);
  if (!why.empty()) costs.notes.push_back(why);
  if (source == CostSource::calibrated && !model.calibration)
    throw UsageError(
        path.empty()
            ? "--costs calibrated: there is no calibration, because TAPEDECK_CALIBRATION is off or there is no home folder"
            : fmt::format("--costs calibrated: there is no usable calibration in {}; `tapedeck calibrate` makes one", path));
  if (source == CostSource::profile && !profile)
    throw UsageError("--costs profile: the file has no profile; `tapedeck replay --profile --save FILE` writes one");
  if (source != CostSource::calibrated) model.profile = profile;
  if (model.profile && model.profile->machine != machine_name())
    costs.notes.push_back(fmt::format("the profile was measured on another machine ({})", model.profile->machine));
  if (model.calibration || model.profile) costs.model = std::make_shared<const CostModel>(std::move(model));
  return costs;
}

std::string describe_costs(const Plan& plan) {
  if (plan.costs != "profile") return plan.costs;
  return fmt::format("{}, {} of {} nodes measured", plan.costs, plan.measured_nodes, plan.nodes - plan.recomputed_nodes);
}

}  // namespace tapedeck
