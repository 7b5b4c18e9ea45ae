#include <tapedeck/kernels/cpu/elementwise/half_tiles.h>

#include <tapedeck/kernels/cpu/elementwise/tiles.h>
#include <tapedeck/kernels/half.h>

#include <numeric>

namespace tapedeck::kernels::cpu {

void run_elementwise_in_f32(const KernelCall& call) {
  TileProgram program;
  program.n_operands = call.n_inputs;
  TileProgram::Step step;
  step.kernel = &run_in_f32;
  step.f32_kernel = call.f32_kernel;
  step.attrs = call.attrs;
  step.operands.resize(static_cast<std::size_t>(call.n_inputs));
  std::iota(step.operands.begin(), step.operands.end(), 0);
  step.dtype = call.outputs[0].dtype;
  program.steps.push_back(std::move(step));
  program.results = {call.n_inputs};
  program.ns_per_element = 2;
  prepare_tiles(&program);
  run_tiles(program, call);
}

}  // namespace tapedeck::kernels::cpu
