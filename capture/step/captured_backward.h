// A captured forward inside eager code: its results get a history whose gradient is generated from the captured graph.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

// For one captured step whose results still have gradients to give. The backward graph starts from the tensors that the step
// read, and computes again the forward values that it needs. So the bits are those of eager code, and it takes the time of a
// forward pass more. Tensors that the step read are kept and must not be written before backward has run, as in eager code. Not
// thread safe.
class CapturedBackward : public std::enable_shared_from_this<CapturedBackward> {
 public:
  CapturedBackward(const Captured& captured, PlanOptions plan, ExecutorOptions executor);
  // The results of a call with these inputs, with history. If the gradient cannot be generated, backward throws a GradientError
  // that says why.
  std::vector<Tensor> attach(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results);

 private:
  struct Operand {
    ValueId value = kNone;       // of the captured graph: an input or a state value
    std::int32_t input = kNone;  // a declared input, or
    Tensor tensor;               // a tensor from outside
    bool wants_gradient = false;
  };

  void find_operands(const Captured& captured);
  void generate(const Captured& captured);
  std::string overwritten(const Captured& captured) const;
  void make_executor();
  void give_state(std::size_t state, const std::string& name, const Tensor& value);
  std::vector<Tensor> run(const std::vector<Tensor>& xs, const std::vector<Tensor>& dys);

  std::vector<std::size_t> targets_;  // numbers of the results with history
  std::vector<Operand> operands_;
  std::string problem_;     // why there is no gradient
  Graph graph_;             // inputs and state as in the captured graph, then one input per head; returns the gradients
  std::vector<bool> read_;  // by input and state value of the captured graph
  std::vector<std::shared_ptr<const void>> held_;
  PlanOptions plan_options_;
  ExecutorOptions executor_options_;
  std::unique_ptr<Executor> executor_;  // made when backward first runs; its state is the tensors of the step
  std::vector<const void*> bases_;      // by state: the bytes that are bound
};

}  // namespace tapedeck
