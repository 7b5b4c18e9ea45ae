#include <tapedeck/capture/tool/files/costs.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck::tool {

std::shared_ptr<const CostModel> choose_costs(const std::string& choice, const TapeFile& file) {
  if (choice == "estimate") return nullptr;
  const bool any = choice.empty();
  CostModel model;
  const std::string path = calibration_path();
  std::string why;
  model.calibration = load_calibration(path, &why);
  if (!why.empty()) note(why);
  if (choice == "calibrated" && !model.calibration)
    throw UsageError(
        path.empty()
            ? "--costs calibrated: there is no calibration, because TAPEDECK_CALIBRATION is off or there is no home folder"
            : fmt::format("--costs calibrated: there is no usable calibration in {}; `tapedeck calibrate` makes one", path));
  if (choice == "profile" && !file.profile)
    throw UsageError("--costs profile: the file has no profile; `tapedeck replay --profile --save FILE` writes one");
  if (any || choice == "profile") model.profile = file.profile;
  if (model.profile && model.profile->machine != machine_name())
    note(fmt::format("the profile was measured on another machine ({})", model.profile->machine));
  if (!model.calibration && !model.profile) return nullptr;
  return std::make_shared<const CostModel>(std::move(model));
}

std::string describe_costs(const Plan& plan) {
  if (plan.costs != "profile") return plan.costs;
  return fmt::format("{}, {} of {} nodes measured", plan.costs, plan.measured_nodes, plan.nodes - plan.recomputed_nodes);
}

}  // namespace tapedeck::tool
