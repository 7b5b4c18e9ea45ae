// Capture: a scope over running code. Everything inside executes eagerly and is recorded; finish() hands out the static graph.
#pragma once

#include <tapedeck/kernels/export.h>
#include <tapedeck/capture/dim_buckets.h>
#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/engine/tensor.h>

#include <functional>
#include <iosfwd>
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
  std::vector<Item> host_calls;        // on_host(), exclude_from_capture(): what reads values on the host
  std::vector<Item> gradients;         // what the step leaves in grad() of tensors from outside
  std::vector<std::string> mutated;    // names of state with an update
  std::vector<std::string> written_by; // parallel: op and place of the last write
  std::string to_string() const;       // what explain() prints
};

// What a step relied on in a tensor from outside besides its type and bytes, and what it does to its gradient.
struct TensorUse {
  enum class Grad : std::uint8_t { ignored, absent, present };
  Tensor tensor;
  std::int32_t input = kNone;        // which declared input it is, if any
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
  std::vector<Tensor> state;           // the user's tensors, by state index
  std::vector<Tensor> inputs;          // by input index: what input() was given, then what was marked as an input, then gradients
  CaptureReport report;
  std::vector<Tensor> constants;       // the tensors that were baked in, by constant
  std::vector<TensorUse> uses;
  std::int32_t declared_inputs = 0, declared_outputs = 0;   // of input() and output(): the first of the graph's
  std::vector<bool> differentiable;    // by declared output: its gradient history was not used up inside
  std::string hidden_history;          // what steered gradients and no graph shows, so that none can be generated for it; empty: nothing
  std::vector<std::shared_ptr<const void>> held;            // functions that the graph calls (on_host)
  std::shared_ptr<const TapeScript> script;                 // null if sizes depend on counts: the op stream is not the same in every run
  std::vector<std::int64_t> counts;    // of elements selected by masks, which every run counts again (dynamic_region.h)
  double ms = 0;                       // since the scope was opened: the step itself, and freezing it
  std::string count_suspicion;         // not empty: something may have been computed from a count; only another recording can tell
};

// Opens on construction, on this thread. If it is destroyed without finish() (an exception half way), recording stops, everything
// recorded is dropped, and the eager results stand. One capture per thread at a time: a nested one is a CaptureError.
class Capture {
 public:
  explicit Capture(std::string name = "main", Site site = {__builtin_FILE(), __builtin_LINE()});
  ~Capture();
  Capture(const Capture&) = delete;

  Tensor input(const std::string& name, const Tensor& value);    // returns the tensor to use inside
  void output(const std::string& name, const Tensor& value);
  // What the code inside leaves in grad() of tensors from outside becomes outputs named "grad.<tensor>", after all others.
  void output_gradients();
  // Ops whose result has a size that only a run knows (boolean_mask, nonzero without `count`) are a CaptureError.
  void fully_static();
  // finish() does not refuse what may have been computed from such a size: the caller compares recordings with different counts.
  void compares_counts();
  // Draws count on from those before the capture, as in eager code; else they count from zero, as in a step that begins with next_step().
  void continue_draws();
  Captured finish();                                              // throws CaptureError; the capture is closed either way

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A step that records its first two calls and replays after. Keyed by the types of the inputs and by everything else that eager code would
// have seen: whether gradients are wanted, autocast, which modules train, which tensors need and have gradients, the thread's random state.
//     auto step = capture([&](const std::vector<Tensor>& in) { ...; return std::vector<Tensor>{loss}; });
//     Tensor loss = step({x, y})[0];
// Results are the caller's own. Inside an open capture, a checkpoint region or abstract execution a call just runs the function. What a
// replay cannot see of the host (a C++ number that changes after the second call) a checked call finds. README.md: what is refused.
using StepFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

enum class CaptureMode : std::uint8_t {
  replay,
  checked,   // the function runs eagerly every time, and its ops are compared with the capture as they come: CaptureError at the first that differs
};

struct CapturedStepOptions {
  PlanOptions plan = {};
  ExecutorOptions executor = {};
  std::vector<std::string> input_names = {};  // default in0, in1, ...
  CaptureMode mode = CaptureMode::replay;
  bool fully_static = false;                  // no unplanned regions: an op whose size only a run knows is an error
  DimOptions dims = {};                       // named dimensions: sizes within their ranges are one step (dim_buckets.h)
};

// One call at a time: a second one, from another thread or from inside the function, is a CaptureError.
class CapturedStep {
 public:
  CapturedStep(StepFunction fn, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(CapturedStep&&) noexcept;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);
  CaptureMode mode() const;
  void set_mode(CaptureMode mode);
  void forget();                          // drops every recording: the next call records. After a replay that failed half way, restore the state first
  std::string explain() const;            // for every recording: inputs, state, constants, ..., and why it recorded (again)
  std::string explain_json() const;       // the same; schema tapedeck.explain/1
  const Plan* plan() const;               // of the program that ran last; null while it is not replayed yet. Valid until the next call
  int recordings() const;                 // how often the function itself has run to be recorded
  int replays() const;
  int checks() const;                     // calls in checked mode that agreed with the capture

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline CapturedStep capture(StepFunction fn, CapturedStepOptions options = {}) {
  return CapturedStep(std::move(fn), std::move(options));
}

}  // namespace tapedeck
