// The tape of the running thread: recording, eager backward, and the scopes that steer them.
//
// Ops whose operands need a gradient are appended to the thread's linear tape; backward() walks it once in reverse. What a node
// keeps for backward is derived from its vjp, traced once per signature on abstract tensors. A node that no tensor was computed
// from any more is dropped with all it kept. A tape belongs to its thread. More to ask of gradients: gradients.h.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct BackwardOptions {
  bool retain = false;  // keep what was saved, so that backward can run again
  Tensor head = {};     // gradient of the loss; default: ones
  // Record backward itself, so that gradients can be differentiated; implies retain. A leaf's grad() then has history: leaf,
  // gradient and tape hold each other until set_grad(Tensor()). gradients() has no such cycle.
  bool create_graph = false;
};

// Puts d loss / d leaf into every leaf's grad(), as the leaf requests: added, written or not computed. Gradients share no
// bytes. Gradient pieces add left to right in reverse recording order; the first is written, not added to zero. Throws
// GradientError: no history, saved values freed by an earlier backward, or overwritten since they were saved (naming both
// places), or an op on the way that has no gradient.
void backward(const Tensor& loss, const BackwardOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// While one lives, nothing is recorded for backward on this thread.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};

// While one lives, ops on this thread compute types only: results are abstract, no memory is taken, no kernel runs.
class AbstractMode {
 public:
  explicit AbstractMode(bool on = true);
  ~AbstractMode();
  AbstractMode(const AbstractMode&) = delete;

 private:
  bool before_;
};
bool abstract_mode();

// While one lives, products and convolutions on this thread run in `dtype` (f16 or bf16; accumulation is f32) and losses, norms
// and exponentials in f32: their floating operands are cast, and the casts recorded. f64 is left alone. Not in force during
// backward, which runs in the types of the forward pass.
class Autocast {
 public:
  explicit Autocast(DType dtype = DType::bf16, bool on = true, Site site = {__builtin_FILE(), __builtin_LINE()});
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  bool before_;
  DType dtype_before_;
};

// A module's name on the path of everything recorded inside: "fc1", nested "block3.fc1".
class PathScope {
 public:
  explicit PathScope(const std::string& name);
  ~PathScope();
  PathScope(const PathScope&) = delete;

 private:
  Name before_;
};

// Runs fn as a checkpoint region: of the values made inside, only the results stay in memory; backward computes the others
// again from what the region read. Works the same eagerly and captured (there the plan decides). Regions inside a region join
// it.
Tensor checkpoint(const std::function<Tensor()>& fn);

// ---- randomness: Philox, keyed by seed, step and the path of the drawing op ----
void manual_seed(std::uint64_t seed);                              // of this thread; the step restarts at zero
void next_step(Site site = {__builtin_FILE(), __builtin_LINE()});  // optimizers call it: the next step draws other bits
const Tensor& rng_state();                                         // i64[2]: seed, step

struct TapeStats {
  std::int64_t nodes = 0;        // recorded and not yet dropped
  std::int64_t values = 0;       // their results, and what they read from outside
  std::int64_t saved_bytes = 0;  // distinct storage kept for backward
};
TapeStats tape_stats();

}  // namespace TAPEDECK_API
