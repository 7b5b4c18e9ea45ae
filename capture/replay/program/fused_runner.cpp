// Runs a fused node: its region becomes a chain of kernels that goes over the operands tile by tile.
#include <tapedeck/capture/replay/program/control_runner.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/cpu/elementwise/tiles.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <numeric>

namespace tapedeck::replay {

namespace {

using kernels::cpu::TileProgram;

// Microseconds of all nodes, by the model, for one element in nanoseconds.
double ns_per_element(const Graph& region) {
  const std::vector<double> us = node_costs(region);
  const auto n = static_cast<double>(region.values[region.outputs[0]].type.numel());
  return n > 0 ? std::accumulate(us.begin(), us.end(), 0.0) * 1000 / n : 1;
}

class FusedRunner final : public ControlRunner {
 public:
  explicit FusedRunner(Region region) : region_(std::move(region)) {
    const Graph& g = *region_;
    program_.n_operands = g.n_inputs;
    for (NodeId n = 0; n < g.node_count(); ++n) program_.steps.push_back(step_of(n));
    program_.results.assign(g.outputs.begin(), g.outputs.end());
    program_.ns_per_element = ns_per_element(g);
    kernels::cpu::prepare_tiles(&program_);
  }

  void run(const KernelCall& call) override { kernels::cpu::run_tiles(program_, call); }

 private:
  TileProgram::Step step_of(NodeId n) const {
    const Graph& g = *region_;
    const Node& node = g.nodes[n];
    const Kernel kernel = node.op->kernels[static_cast<int>(DeviceType::cpu)];
    if (!kernel) throw DeviceError(error_text(node.op->name, fmt::format("has no CPU kernel: {}", g.node_text(n)), {}));
    TileProgram::Step step;
    step.attrs = g.attributes(node);
    step.operands.assign(g.inputs(node).begin(), g.inputs(node).end());
    step.dtype = g.values[node.first_output].type.dtype;
    const bool in_f32 = runs_in_f32(*node.op, g.input_types(node), g.output_types(node));
    step.kernel = in_f32 ? kernels::run_in_f32 : kernel;
    step.f32_kernel = in_f32 ? kernel : nullptr;
    return step;
  }

  const Region region_;
  TileProgram program_;
};

}  // namespace

std::unique_ptr<ControlRunner> make_fused_runner(const Plan& plan, const Node& node) {
  return std::make_unique<FusedRunner>(plan.graph.regions_of(node)[0]);
}

}  // namespace tapedeck::replay
