// Loops and branches, as authors write them.
//
// In eager code these functions run as ordinary loops and branches. In a capture, and on abstract tensors, each call becomes
// one node with regions (ops/control.h). Both ways give the same bits, gradients included.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tapedeck TAPEDECK_API {

using Tensors = std::vector<Tensor>;

struct LoopOptions {
  // while_loop makes at most this many passes, and needs the number if results are stacked. A scan without xs makes exactly
  // this many.
  std::int64_t max_trips = -1;
  // Backward keeps the carried values of every pass if this is 0, and of every n-th pass if it is n. kCheckpointSqrt and
  // kCheckpointLog choose the passes by a schedule. Carried values that are not kept are computed again.
  std::int64_t checkpoint_every = 0;
  std::int64_t axis = 0;  // scan and map slice xs along this axis, and stack results along it
  bool reverse = false;   // scan begins with the last slice and goes to the first
};

struct LoopResult {
  Tensors carried;  // the carried values after the last pass
  Tensors stacked;  // the further results of the body, with one slice for each pass
  Tensor trips;     // the number of passes made, an i64[]
};

// Repeats carried = body(carried) while condition(carried) is true. Both functions get the tensors of `carried`, then those
// of `captured`. The body returns new carried tensors of the same number and types, then any tensors to be stacked. In a
// stacked result, the slices of passes that were not made are zeros. Other tensors that the functions read are captured
// automatically. In a capture each function is called once, on tensors without data. It must not depend on data (item() is an
// error there) or write tensors from outside in place. Throws TypeError if a carried value changes its type, if the condition
// returns anything but one bool[], or if results are stacked without max_trips.
LoopResult while_loop(const std::function<Tensor(const Tensors&)>& condition,
                      const std::function<Tensors(const Tensors&)>& body, const Tensors& carried, const Tensors& captured = {},
                      const LoopOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// Returns then_branch(operands) if `pred` is true, and else_branch(operands) if it is false. Both must return the same types.
Tensors cond(const Tensor& pred, const std::function<Tensors(const Tensors&)>& then_branch,
             const std::function<Tensors(const Tensors&)>& else_branch, const Tensors& operands = {},
             Site site = {__builtin_FILE(), __builtin_LINE()});

// Computes carried, ys = body(carried, slices of xs) for each slice along an axis, and stacks the ys. The body gets
// `carried`, then one slice of each of `xs`, then `captured`. Throws TypeError as while_loop() does.
LoopResult scan(const std::function<Tensors(const Tensors&)>& body, const Tensors& carried, const Tensors& xs,
                const Tensors& captured = {}, const LoopOptions& options = {},
                Site site = {__builtin_FILE(), __builtin_LINE()});

// Computes fn(slices of xs) for each slice along an axis, and stacks the results.
Tensors map(const std::function<Tensors(const Tensors&)>& fn, const Tensors& xs, const LoopOptions& options = {},
            Site site = {__builtin_FILE(), __builtin_LINE()});

}  // namespace TAPEDECK_API
