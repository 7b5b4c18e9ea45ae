// Runs the ops of ops/control.h by interpreting their regions. Each function is the ControlRun of one op.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/op.h>

namespace tapedeck {

std::vector<Tensor> run_while(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                              std::span<const Type> outputs, Site site);
std::vector<Tensor> run_scan(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                             std::span<const Type> outputs, Site site);
std::vector<Tensor> run_cond(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                             std::span<const Type> outputs, Site site);
std::vector<Tensor> run_loop_grad(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                                  std::span<const Type> outputs, Site site);

}  // namespace tapedeck
