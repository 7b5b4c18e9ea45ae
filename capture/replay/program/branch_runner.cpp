// Runs a cond: the region that the first operand chooses.
#include <tapedeck/capture/replay/program/control_runner.h>
#include <tapedeck/capture/replay/program/region_runner.h>

namespace tapedeck::replay {

namespace {

class BranchRunner final : public ControlRunner {
 public:
  BranchRunner(const Plan& plan, const Node& node)
      : branches_{RegionRunner(plan.region_plans_of(node)[0]), RegionRunner(plan.region_plans_of(node)[1])} {}

  void run(const KernelCall& call) override {
    RegionRunner& region = branches_[*static_cast<const bool*>(call.inputs[0].data) ? 0 : 1];
    for (std::int32_t j = 1; j < call.n_inputs; ++j) region.input(static_cast<std::size_t>(j - 1), call.inputs[j].data);
    if (!region.run(frame_in(call), call.fault)) return;
    for (std::int32_t k = 0; k < call.n_outputs; ++k) region.copy_output(static_cast<std::size_t>(k), call.outputs[k].data);
  }

 private:
  RegionRunner branches_[2];
};

}  // namespace

std::unique_ptr<ControlRunner> make_branch_runner(const Plan& plan, const Node& node) {
  return std::make_unique<BranchRunner>(plan, node);
}

}  // namespace tapedeck::replay
