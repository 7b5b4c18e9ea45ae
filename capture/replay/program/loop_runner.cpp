// Runs a while_loop or a scan. The carried values live in the bytes of the node's results, so that one pass finds them where
// the pass before left them:
//
//     operands   carried, scanned, captured
//     pass i     body(i, carried, slice i of scanned, captured) -> carried, slice i of the stacked results
#include <tapedeck/capture/replay/program/control_runner.h>
#include <tapedeck/capture/replay/program/region_runner.h>
#include <tapedeck/engine/ops/control.h>

namespace tapedeck::replay {

namespace {

class LoopRunner final : public ControlRunner {
 public:
  LoopRunner(const Plan& plan, const Node& node)
      : attrs_(*static_cast<const LoopAttrs*>(plan.graph.attributes(node))),
        is_while_(node.op == &ops::while_loop),
        body_(plan.region_plans_of(node).back()),
        operands_(static_cast<std::size_t>(node.n_inputs)) {
    if (is_while_) condition_ = std::make_unique<RegionRunner>(plan.region_plans_of(node)[0]);
  }

  void run(const KernelCall& call) override {
    const auto carried = static_cast<std::size_t>(attrs_.carried);
    const std::size_t first = is_while_ ? 1 : 0;  // of the carried results
    for (std::size_t j = 0; j < carried; ++j)
      copy_bytes(call.outputs[first + j].data, call.inputs[j].data, byte_count(call.inputs[j]));
    for (std::int32_t k = static_cast<std::int32_t>(first + carried); k < call.n_outputs; ++k)
      if (is_while_) clear(call.outputs[k]);
    const std::int64_t most = attrs_.scanned > 0 ? call.inputs[carried].sizes[0] : attrs_.trips;
    std::int64_t i = 0;
    for (; most < 0 || i < most; ++i) {
      const std::int64_t at = attrs_.reverse ? most - 1 - i : i;
      if (is_while_) {
        if (!give(*condition_, call, first, at)) return;
        if (!condition_->truth()) break;
      }
      if (!give(body_, call, first, at)) return;
      for (std::size_t k = 0; k < body_.n_outputs(); ++k) {
        const View& to = call.outputs[first + k];
        body_.copy_output(k, k < carried ? bytes_of(to) : bytes_of(to) + static_cast<std::size_t>(at) * slice_bytes(to));
      }
    }
    if (is_while_) *static_cast<std::int64_t*>(call.outputs[0].data) = i;
  }

 private:
  // The carried values live in the bytes of the node's results.
  bool give(RegionRunner& region, const KernelCall& call, std::size_t first, std::int64_t at) {
    const auto carried = static_cast<std::size_t>(attrs_.carried);
    give_pass(region, call, 0, carried, static_cast<std::size_t>(attrs_.scanned), operands_, at);
    for (std::size_t j = 0; j < carried; ++j) region.input(1 + j, call.outputs[first + j].data);
    return region.run(frame_in(call), call.fault);
  }

  const LoopAttrs attrs_;
  const bool is_while_;
  std::unique_ptr<RegionRunner> condition_;
  RegionRunner body_;
  const std::size_t operands_;
};

}  // namespace

std::unique_ptr<ControlRunner> make_loop_runner(const Plan& plan, const Node& node) {
  return std::make_unique<LoopRunner>(plan, node);
}

}  // namespace tapedeck::replay
