#include <tapedeck/capture/replay/program/control_runner.h>

#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/fused.h>

namespace tapedeck::replay {

std::unique_ptr<ControlRunner> make_control_runner(const Plan& plan, const Node& node) {
  if (node.op == &ops::while_loop || node.op == &ops::scan) return make_loop_runner(plan, node);
  if (node.op == &ops::cond) return make_branch_runner(plan, node);
  if (node.op == &ops::loop_grad) return make_loop_grad_runner(plan, node);
  if (node.op == &ops::fused) return make_fused_runner(plan, node);
  return make_unplanned_runner(plan, node);
}

void run_control(const KernelCall& call) { static_cast<ControlRunner*>(const_cast<void*>(call.attrs))->run(call); }

}  // namespace tapedeck::replay
