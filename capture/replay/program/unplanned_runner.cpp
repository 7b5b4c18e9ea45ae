// Runs a node whose regions have no plan, by the interpreter and on copies of its operands.
#include <tapedeck/capture/replay/program/control_runner.h>

#include <tapedeck/capture/replay/program/region_runner.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/eager/tensor.h>

#include <utility>
#include <vector>

namespace tapedeck::replay {

namespace {

class UnplannedRunner final : public ControlRunner {
 public:
  UnplannedRunner(const Graph& g, const Node& node) : op_(*node.op), attrs_(g.attributes(node)), types_(g.output_types(node)) {
    for (const Region& r : g.regions_of(node)) regions_.push_back(r);
  }

  void run(const KernelCall& call) override {
    const Unrecorded unrecorded;
    std::vector<Tensor> inputs;
    for (std::int32_t j = 0; j < call.n_inputs; ++j) {
      Type type{call.inputs[j].dtype, {}};
      for (int d = 0; d < call.inputs[j].rank; ++d) type.shape.sizes[type.shape.rank++] = call.inputs[j].sizes[d];
      inputs.push_back(from_bytes(type, call.inputs[j].data));
    }
    const std::vector<Tensor> results = op_.run(regions_, inputs, attrs_, types_, {});
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k].copy_to(call.outputs[k].data, byte_count(call.outputs[k]), dtype_size(results[k].dtype()));
  }

 private:
  const Op& op_;
  const void* attrs_;
  std::vector<Type> types_;
  std::vector<Region> regions_;
};

}  // namespace

std::unique_ptr<ControlRunner> make_unplanned_runner(const Plan& plan, const Node& node) {
  return std::make_unique<UnplannedRunner>(plan.graph, node);
}

}  // namespace tapedeck::replay
