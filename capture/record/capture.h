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
  std::vector<Item> host_calls;         // calls of on_host() and exclude_from_capture(), which read values on the host
  std::vector<Item> gradients;          // the gradients that the step leaves in grad() of tensors from outside
  std::vector<std::string> mutated;     // names of state with an update
  std::vector<std::string> written_by;  // the op and place of the last write, in the order of `mutated`
  std::string summary() const;          // a line for inputs, state, outputs and so on: their number and their bytes
  std::string to_string() const;        // every item on a line of its own, as explain() prints them
};

// The facts about a tensor from outside that a recording relied on, apart from its type and bytes: a later call must find the
// same facts. Also what the step leaves in grad() of the tensor.
struct TensorUse {
  // What grad() must be when the step begins: it does not matter, undefined, or defined.
  enum class Grad : std::uint8_t { ignored, absent, present };
  Tensor tensor;
  std::int32_t input = kNone;  // the declared input that the tensor is; kNone if it is none
  bool requires_grad = false;
  GradRequest request = GradRequest::add;
  std::size_t hooks = 0;  // the number of on_grad() hooks of the tensor
  Grad grad = Grad::ignored;
  std::int32_t grad_input = kNone;   // the graph input that reads grad()
  std::int32_t grad_output = kNone;  // the graph output that the step leaves in grad()
  bool clears_grad = false;          // the step leaves no grad()
};

struct TapeScript;  // tape_script.h: the tape as recorded, with which later calls are compared

struct Captured {
  Graph graph;
  std::vector<Tensor> state;   // the user's tensors, by state index
  std::vector<Tensor> inputs;  // by input index: the tensors given to input(), then tensors marked as inputs, then gradients
  CaptureReport report;
  std::vector<Tensor> constants;  // by constant: the tensors whose bytes the graph holds
  std::vector<TensorUse> uses;
  std::int32_t declared_inputs = 0, declared_outputs = 0;  // the declared ones come first in the graph
  std::vector<bool> differentiable;  // by declared output: no backward inside used up its gradient history
  std::string
      hidden_history;  // what steered gradients and no graph shows, so that none can be generated for it; empty: nothing
  std::string device = "cpu";           // where the ops ran: that of the first tensor on a device, of those read or returned
  std::string operands_device = "cpu";  // the same, of the declared inputs and the state only
  std::vector<std::shared_ptr<const void>> held;  // functions that the graph calls (on_host)
  std::shared_ptr<const TapeScript> script;       // null if sizes depend on counts, because the ops then differ between runs
  std::vector<std::int64_t> counts;  // numbers of elements selected by masks; every run counts them again (dynamic_region.h)
  double ms = 0;                     // from the opening of the scope to the end of freezing, the step included
  // Not empty: the author's code may have computed something from a count, or a count is below two, which is too few to tell.
  // Only a recording in which every count is another one can show that nothing was computed from the counts.
  std::string count_suspicion;
};

// The scope opens on construction, on this thread. If it is destroyed without finish() (after an exception), the recording
// stops, the tape is dropped, and the eager results stay valid. A thread has one capture at a time; a nested capture is a
// CaptureError.
class Capture {
 public:
  explicit Capture(std::string name = "main", Site site = {__builtin_FILE(), __builtin_LINE()});
  ~Capture();
  Capture(const Capture&) = delete;

  Tensor input(const std::string& name, const Tensor& value);  // returns the tensor to use inside
  void output(const std::string& name, const Tensor& value);
  // Makes the gradients that the code inside leaves in grad() of tensors from outside into outputs named "grad.<tensor>", after
  // all other outputs.
  void output_gradients();
  // Makes ops whose result has a size that only a run knows (boolean_mask, nonzero without `count`) a CaptureError.
  void fully_static();
  // Lets finish() accept attributes that may have been computed from such a size. The caller then compares recordings with
  // different counts.
  void compares_counts();
  // Makes tensors whose bytes mutable_data() has handed out inputs instead of constants. The caller gives their bytes to every
  // replay anew, because the author may write them through a pointer at any time.
  void live_bytes_are_inputs();
  // Lets draws count on from the draws before the capture, as in eager code. Without this call draws count from zero, as in a
  // step that begins with next_step().
  void continue_draws();
  Captured finish();  // throws CaptureError; the capture is closed either way

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace TAPEDECK_API
