// The function runs on stand-ins of its inputs:
//
//     step({x, y})   ->   capture { fn({x', y'}) }   ->   results
//
// A stand-in shows the same bytes through a handle of its own. So the capture can tell an input from a tensor that the function
// reads by other ways. Gradients that the stand-ins get are handed back to the inputs.
#include <tapedeck/capture/step/function_recorder.h>

#include <tapedeck/capture/record/checked_call.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <optional>
#include <unordered_set>
#include <utility>

namespace tapedeck {

namespace {

// The gradient of one tensor, and its mark, to another.
void give_gradient(const Tensor& from, Tensor to) {
  to.set_grad(from.grad());
  if (grad_is_fresh(from))
    mark_grad_fresh(to);
  else
    mark_grad_used(to);
}

// The inputs as the function sees them.
class StandIns {
 public:
  explicit StandIns(const std::vector<Tensor>& inputs) : given_(inputs) {
    for (const Tensor& t : inputs) inside_.push_back(stand_in(t));
  }
  const std::vector<Tensor>& inside() const { return inside_; }

  // After the function: an input that is a leaf gets the gradient that its stand-in got.
  void hand_back() {
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if (!inside_[i].impl()->requires_grad) continue;
      const Tensor g = inside_[i].grad();
      if (given_[i].impl()->requires_grad)
        give_gradient(inside_[i], given_[i]);
      else if (g.defined())
        throw CaptureError(fmt::format(
            "[capture] backward inside the step reached input {}, whose gradient history began before the step; detach() it",
            i));
    }
  }

 private:
  static Tensor stand_in(const Tensor& t) {
    Tensor s(detail::new_view(*t.impl(), t.shape(), 0, t.strides()));
    if (!t.impl()->requires_grad && !(thread_state().grad_enabled && t.requires_grad())) return s;
    s.requires_grad(true).grad_request(t.grad_request());
    if (const detail::Extra* extra = t.impl()->requires_grad ? t.impl()->extra : nullptr) {
      give_gradient(t, s);
      for (const GradHook& hook : extra->hooks) s.impl()->extra->hooks.push_back(hook);
    }
    return s;
  }

  std::vector<Tensor> given_, inside_;
};

// Results that share no bytes with each other, nor with any tensor that lives on: the next call must not change them.
std::vector<Tensor> own_results(const std::vector<Tensor>& results, const Captured& captured,
                                const std::vector<Tensor>& inputs) {
  std::unordered_set<const detail::Storage*> taken{nullptr};
  for (const auto* list : {&inputs, &captured.inputs, &captured.state, &captured.constants})
    for (const Tensor& t : *list) taken.insert(t.impl()->storage);
  for (const TensorUse& use : captured.uses)
    if (use.tensor.grad().defined()) taken.insert(use.tensor.grad().impl()->storage);
  const NoGrad no_grad;
  std::vector<Tensor> own;
  for (const Tensor& t : results)
    own.push_back(taken.insert(t.impl()->storage).second || t.abstract()
                      ? Tensor(detail::new_view(*t.impl(), t.shape(), 0, t.strides()))
                      : copy(t));
  return own;
}

}  // namespace

FunctionRecorder::FunctionRecorder(StepFunction fn, std::vector<std::string> input_names, std::vector<std::string> output_names,
                                   bool fully_static)
    : fn_(std::move(fn)),
      input_names_(std::move(input_names)),
      output_names_(std::move(output_names)),
      fully_static_(fully_static) {}

std::string FunctionRecorder::input_name(std::size_t i) const {
  return i < input_names_.size() ? input_names_[i] : fmt::format("in{}", i);
}

std::string FunctionRecorder::output_name(std::size_t i) const {
  return i < output_names_.size() ? output_names_[i] : fmt::format("out{}", i);
}

// `end` closes the capture.
std::vector<Tensor> FunctionRecorder::run_captured(const std::vector<Tensor>& inputs, const End& end) const {
  StandIns stand_ins(inputs);
  std::vector<Tensor> outputs;
  {
    Capture capture("step");
    capture.output_gradients();
    capture.compares_counts();
    capture.live_bytes_are_inputs();
    if (fully_static_) capture.fully_static();
    capture.continue_draws();
    for (std::size_t i = 0; i < inputs.size(); ++i) capture.input(input_name(i), stand_ins.inside()[i]);
    outputs = fn_(stand_ins.inside());
    for (std::size_t i = 0; i < outputs.size(); ++i) capture.output(output_name(i), outputs[i]);
    end(capture, outputs);
  }
  stand_ins.hand_back();
  return outputs;
}

Captured FunctionRecorder::record(const std::vector<Tensor>& inputs, std::vector<Tensor>* outputs) const {
  std::optional<Captured> captured;
  *outputs = run_captured(inputs, [&](Capture& capture, const std::vector<Tensor>&) { captured = capture.finish(); });
  *outputs = own_results(*outputs, *captured, inputs);
  return std::move(*captured);
}

std::vector<Tensor> FunctionRecorder::check(const Captured& captured, const std::vector<Tensor>& inputs) const {
  StreamCheck watch(*captured.script);
  const Scoped<RecordWatch*> watching(watch_of_captures(), &watch);
  const std::vector<Tensor> outputs =
      run_captured(inputs, [&](Capture&, const std::vector<Tensor>& results) { watch.finish(*thread_state().tape, results); });
  return own_results(outputs, captured, inputs);
}

}  // namespace tapedeck
