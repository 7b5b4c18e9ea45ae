// Capture: a scope over running code. Everything inside executes eagerly and is recorded; finish() hands out the static graph.
#pragma once

#include <tapedeck/kernels/export.h>
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
    std::string detail;  // role, where it was first read, ...
  };
  std::vector<Item> inputs, state, constants, outputs, random;
  std::vector<std::string> mutated;    // names of state with an update
  std::string to_string() const;       // what explain() prints
};

struct Captured {
  Graph graph;
  std::vector<Tensor> state;           // the user's tensors, by state index
  std::vector<Tensor> inputs;          // the tensors given to input(), by input index
  CaptureReport report;
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
  Captured finish();                                              // throws CaptureError; the capture is closed either way

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A step that records its first two calls and replays after. Keyed by the types of the inputs.
//     auto step = capture([&](const Tensor& x, const Tensor& y) { ...; return loss; });
//     Tensor loss = step({x, y})[0];
using StepFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct CapturedStepOptions {
  PlanOptions plan = {};
  ExecutorOptions executor = {};
  std::vector<std::string> input_names = {};  // default in0, in1, ...
};

class CapturedStep {
 public:
  CapturedStep(StepFunction fn, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(CapturedStep&&) noexcept;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);
  std::string explain() const;            // inputs, state, constants, and why it recorded (again)
  int recordings() const;                 // how often the function itself has run
  int replays() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline CapturedStep capture(StepFunction fn, CapturedStepOptions options = {}) {
  return CapturedStep(std::move(fn), std::move(options));
}

}  // namespace tapedeck
