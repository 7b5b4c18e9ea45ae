// The tape of the running thread: recording, eager backward, and the scopes that change how ops run and are recorded.
//
// An op with an operand that needs a gradient is appended to the thread's tape. backward() walks over the tape once, from the
// last node to the first. The values that a node keeps for backward are derived from the op's vjp (derive_saved.h). A node is
// dropped with all it kept as soon as no tensor and no later node needs its results. A tape belongs to its thread.
// gradients.h has more functions on gradients.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct BackwardOptions {
  bool retain = false;  // keep the saved values, so that backward can run again
  Tensor head = {};     // the gradient of the loss; if undefined: ones
  // Records backward itself, so that the gradients can be differentiated again. Implies retain. The grad() of a leaf then has
  // history: leaf, gradient and tape keep each other alive until set_grad(Tensor()). gradients() makes no such cycle.
  bool create_graph = false;
};

// Computes d loss / d leaf for every leaf, and adds it to grad(), writes it there, or skips it, as the leaf requests.
// Gradients share no bytes with other tensors. Pieces of a gradient add up in reverse recording order, and the first piece is
// written, not added to zero. Throws GradientError if the loss has no history, if an earlier backward has freed the saved
// values, if a saved value was overwritten (the message names both places), or if an op on the path has no gradient.
void backward(const Tensor& loss, const BackwardOptions& options = {}, Site site = {__builtin_FILE(), __builtin_LINE()});

// As long as a NoGrad lives, this thread records nothing for backward.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};

// As long as an AbstractMode lives, ops on this thread compute types only. Results are abstract: they have no memory, and no
// kernel runs.
class AbstractMode {
 public:
  explicit AbstractMode(bool on = true);
  ~AbstractMode();
  AbstractMode(const AbstractMode&) = delete;

 private:
  bool before_;
};
bool abstract_mode();

// As long as an Autocast lives, products and convolutions on this thread run in `dtype` (f16 or bf16, with sums in f32), and
// losses, norms and exponentials run in f32. Floating operands are cast, and the casts are recorded. f64 operands stay f64.
// Backward is not affected: it runs in the types of the forward pass.
class Autocast {
 public:
  explicit Autocast(DType dtype = DType::bf16, bool on = true, Site site = {__builtin_FILE(), __builtin_LINE()});
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  bool before_;
  DType dtype_before_;
};

// As long as a PathScope lives, the module path of recorded nodes ends in its name: "fc1", nested "block3.fc1".
class PathScope {
 public:
  explicit PathScope(const std::string& name);
  ~PathScope();
  PathScope(const PathScope&) = delete;

 private:
  Name before_;
};

// Runs fn as a checkpoint region. Of the values made inside, only the results stay in memory. Backward computes the other
// values again, from the values that the region read. In a capture the plan decides instead which values are computed again.
// A region inside another region is part of the outer one.
Tensor checkpoint(const std::function<Tensor()>& fn);

// ---- randomness: Philox, keyed by the seed, the stream of the thread, the step and the path of the op that draws ----
//
// The process has one seed, 42 until manual_seed() sets another. Every thread draws from a stream of its own:
//
//     a thread that called use_random_stream()   the stream with the number that it gave
//     the thread that called manual_seed()       stream 0, whose bits follow from the seed alone
//     any other thread                           a stream by the order in which these threads first draw, or open a capture,
//                                                after manual_seed(); if there was none, the first thread has stream 0
//     a worker that TBB started                  the stream of its place among the workers; functions of on_host() draw there
//
// Apart from stream 0, a given number and a place in the order never mean the same stream. A program whose threads draw in no
// fixed order gets the same bits in every run if these threads give numbers.

// Sets the seed for all threads; the step restarts at zero. This thread follows at once. Another thread follows when it next
// draws or calls a captured step; inside an open capture it follows once the capture is closed. Throws CaptureError inside a
// capture. Thread safe.
void manual_seed(std::uint64_t seed, Site site = {__builtin_FILE(), __builtin_LINE()});
// From now on this thread draws from the stream with this number, for every seed; the step restarts at zero. Threads with one
// number draw the same bits. Throws CaptureError inside a capture.
void use_random_stream(std::uint64_t number, Site site = {__builtin_FILE(), __builtin_LINE()});
void next_step(Site site = {__builtin_FILE(), __builtin_LINE()});  // called by optimizers: the next step draws other bits
const Tensor& rng_state();  // the random state of this thread, i64[2]: the seed of its stream (of stream 0: the seed), the step

struct TapeStats {
  std::int64_t nodes = 0;        // recorded and not dropped
  std::int64_t values = 0;       // results of these nodes, and values that they read from outside
  std::int64_t saved_bytes = 0;  // bytes kept for backward; a storage that is kept several times counts once
};
TapeStats tape_stats();

}  // namespace TAPEDECK_API
