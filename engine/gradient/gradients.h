// Gradients as values, and what else can be asked of the tape: what it keeps, what depends on what, gradients of one's own.
#pragma once

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct GradientOptions {
  std::vector<Tensor> heads = {};  // gradients of the targets, parallel to them; an undefined one, or none at all: ones
  bool retain = false;
  bool create_graph = false;  // the result can be differentiated again; implies retain
  bool allow_unused = true;   // else a wrt that no target depends on is a GradientError
};

// d sum(targets * heads) / d wrt, one tensor for each wrt: a leaf or any tensor with history; undefined for one that no target
// depends on. A target given twice counts twice. Writes no grad(). Only nodes on a way from a wrt to a target are visited.
// Throws as backward().
std::vector<Tensor> gradients(const std::vector<Tensor>& targets, const std::vector<Tensor>& wrt,
                              const GradientOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// y = forward(x...) whose gradient is what `backward` says: given operands, results and the results' gradients it returns one
// gradient per operand (undefined: none). The forward function runs unrecorded; operands and results are kept. Works the same
// in a capture, where the ops of both functions are recorded.
using CustomForward = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs)>;
using CustomVjp = std::function<std::vector<Tensor>(const std::vector<Tensor>& xs, const std::vector<Tensor>& ys,
                                                    const std::vector<Tensor>& dys)>;
std::vector<Tensor> custom_gradient(const std::vector<Tensor>& xs, const CustomForward& forward, CustomVjp backward,
                                    Site site = {__builtin_FILE(), __builtin_LINE()});

// Whether y was computed from x, as the tape knows it. O(nodes before y).
bool depends(const Tensor& y, const Tensor& x);

// What this thread's tape keeps for backward: one entry for every storage, with who wants it and why.
struct Saved {
  Type type;
  std::int64_t bytes = 0;  // of the storage
  std::string reason;      // "operand 1 of 'matmul' at train.cpp:12"; "forward part of 'maximum' ..."; more readers follow
};
std::vector<Saved> saved();

}  // namespace TAPEDECK_API
