// Gradients as values, gradients of the author's own, and questions about the tape: which values it keeps, and which values
// depend on which.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GradientOptions {
  std::vector<Tensor> heads = {};  // gradients of the targets, parallel to them; undefined or an empty list: ones
  // If true, keeps the tape's saved values for another backward pass
  bool retain = false;
  bool create_graph = false;  // records the gradients, so that they can be differentiated again; implies retain
  bool allow_unused = true;   // if false, a wrt that no target depends on is a GradientError
};

// Returns d sum(targets * heads) / d wrt: one tensor for each wrt, undefined if no target depends on that wrt. A wrt is a
// leaf or any other tensor with history. A target that is given twice counts twice. No grad() is written. Only nodes between
// a wrt and a target are visited. Throws the same errors as backward().
std::vector<Tensor> gradients(const std::vector<Tensor>& targets, const std::vector<Tensor>& wrt,
                              const GradientOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// Returns forward(xs), with `backward` as its gradient. `backward` gets the operands, the results and the gradients of the
// results, and returns one gradient for each operand (undefined: no gradient). The ops of the forward function are not
// recorded one by one; the operands and results are kept. A capture works the same way, but records the ops of both
// functions.
using CustomForward = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs)>;
using CustomVjp = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs, const std::vector<Tensor>& ys,
                                                    const std::vector<Tensor>& dys)>;
std::vector<Tensor> custom_gradient(const std::vector<Tensor>& xs, const CustomForward& forward, CustomVjp backward,
                                    Site site = {__builtin_FILE(), __builtin_LINE()});

// Whether y was computed from x, according to the tape. O(nodes before y).
bool depends(const Tensor& y, const Tensor& x);

// A storage that this thread's tape keeps for backward. There is one entry for each storage, with the nodes that need it as
// the reason.
struct Saved {
  Type type;
  std::int64_t bytes = 0;  // size of the storage
  std::string reason;      // "operand 1 of 'matmul' at train.cpp:12", "forward part of 'maximum' ..."; a list if needed
};
std::vector<Saved> saved();

}  // namespace TAPEDECK_API
