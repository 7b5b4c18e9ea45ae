// Capture: a scope over running code. Everything inside executes eagerly and is recorded; finish() hands out the static graph.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// What a capture found.
struct CaptureReport {
  struct Item {
    std::string name;
    Type type;
    std::string detail;  // role, where it was first read, who writes it, ...
  };
  std::vector<Item> inputs, state, constants, outputs, random;
  std::vector<Item> host_calls;         // on_host(), exclude_from_capture(): what reads values on the host
  std::vector<Item> gradients;          // what the step leaves in grad() of tensors from outside
  std::vector<std::string> mutated;     // names of state with an update
  std::vector<std::string> written_by;  // parallel: op and place of the last write
  std::string to_string() const;        // what explain() prints
};

// What a step relied on in a tensor from outside besides its type and bytes, and what it does to its gradient.
struct TensorUse {
  enum class Grad : std::uint8_t { ignored, absent, present };
  Tensor tensor;
  std::int32_t input = kNone;  // which declared input it is, if any
  bool requires_grad = false;
  GradRequest request = GradRequest::add;
  std::size_t hooks = 0;             // on_grad()
  Grad grad = Grad::ignored;         // what grad() must be when the step begins
  std::int32_t grad_input = kNone;   // the graph input that reads grad()
  std::int32_t grad_output = kNone;  // the graph output that the step leaves in grad()
  bool clears_grad = false;          // the step leaves no grad()
};

struct TapeScript;  // tape_script.h: the tape as recorded, for later calls to be compared with

struct Captured {
  Graph graph;
  std::vector<Tensor> state;   // the user's tensors, by state index
  std::vector<Tensor> inputs;  // by input index: what input() was given, then what was marked as an input, then gradients
  CaptureReport report;
  std::vector<Tensor> constants;  // the tensors that were baked in, by constant
  std::vector<TensorUse> uses;
  std::int32_t declared_inputs = 0, declared_outputs = 0;  // of input() and output(): the first of the graph's
  std::vector<bool> differentiable;                        // by declared output: its gradient history was not used up inside
  std::string
      hidden_history;  // what steered gradients and no graph shows, so that none can be generated for it; empty: nothing
  std::vector<std::shared_ptr<const void>> held;  // functions that the graph calls (on_host)
  std::shared_ptr<const TapeScript> script;       // null if sizes depend on counts: the op stream is not the same in every run
  std::vector<std::int64_t> counts;  // of elements selected by masks, which every run counts again (dynamic_region.h)
  double ms = 0;                     // since the scope was opened: the step itself, and freezing it
  std::string count_suspicion;  // not empty: something may have been computed from a count; only another recording can tell
};

// Opens on construction, on this thread. If it is destroyed without finish() (an exception half way), recording stops,
// everything recorded is dropped, and the eager results stand. One capture per thread at a time: a nested one is a
// CaptureError.
class Capture {
 public:
  explicit Capture(std::string name = "main", Site site = {__builtin_FILE(), __builtin_LINE()});
  ~Capture();
  Capture(const Capture&) = delete;

  Tensor input(const std::string& name, const Tensor& value);  // returns the tensor to use inside
  void output(const std::string& name, const Tensor& value);
  // What the code inside leaves in grad() of tensors from outside becomes outputs named "grad.<tensor>", after all others.
  void output_gradients();
  // Ops whose result has a size that only a run knows (boolean_mask, nonzero without `count`) are a CaptureError.
  void fully_static();
  // finish() does not refuse what may have been computed from such a size: the caller compares recordings with different
  // counts.
  void compares_counts();
  // Draws count on from those before the capture, as in eager code; else they count from zero, as in a step that begins with
  // next_step().
  void continue_draws();
  Captured finish();  // throws CaptureError; the capture is closed either way

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace TAPEDECK_API
