// The function runs on stand-ins of its inputs:
//
//     step({x, y})   ->   capture { fn({x', y'}) }   ->   results
//
// A stand-in shows the same bytes through a handle of its own. So the capture can tell an input from a tensor that the function
// reads by other ways. Gradients that the stand-ins get are handed back to the inputs.
#include <tapedeck/capture/step/function_recorder.h>

#include <tapedeck/capture/record/checked_call.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/fresh_gradient.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

// Results that share no bytes with each other, nor with any tensor that lives on: the next call must not change them. Null: it
// is not known which tensors live on, so all results are copied.
std::vector<Tensor> own_results(const std::vector<Tensor>& results, const Captured* captured,
                                const std::vector<Tensor>& inputs) {
  std::unordered_set<const detail::Storage*> taken{nullptr};
  if (captured) {
    for (const auto* list : {&inputs, &captured->inputs, &captured->state, &captured->constants})
      for (const Tensor& t : *list) taken.insert(t.impl()->storage);
    for (const TensorUse& use : captured->uses)
      if (use.tensor.grad().defined()) taken.insert(use.tensor.grad().impl()->storage);
  }
  const NoGrad no_grad;
  std::vector<Tensor> own;
  for (const Tensor& t : results) {
    if (!t.defined())
      own.push_back(t);
    else if (t.abstract() || (captured && taken.insert(t.impl()->storage).second))
      own.push_back(Tensor(detail::new_view(*t.impl(), t.shape(), 0, t.strides())));
    else
      own.push_back(copy(t));
  }
  return own;
}

// Whether eager backward could still start from a result of the open capture. Without a graph it could not.
bool gives_gradients(const Tensor& t) {
  if (!t.defined()) return false;
  const ThreadState& state = thread_state();
  const detail::TensorImpl& impl = *t.impl();
  const Recorder& tape = *state.tape;
  if (!tape.owns(impl)) return tape.needs_grad(impl) || (state.own->owns(impl) && state.own->needs_grad(impl));
  const NodeId maker = tape.graph.values[tape.bound_value(impl)].node;
  const bool spent = maker != kNone && tape.notes[maker].released;
  return tape.needs_grad(impl) && !spent;
}

}  // namespace

FunctionRecorder::FunctionRecorder(StepFunction fn, std::vector<std::string> input_names, std::vector<std::string> output_names,
                                   bool fully_static, Refused refused)
    : fn_(std::move(fn)),
      input_names_(std::move(input_names)),
      output_names_(std::move(output_names)),
      fully_static_(fully_static),
      refused_(refused) {}

std::string FunctionRecorder::input_name(std::size_t i) const {
  return i < input_names_.size() ? input_names_[i] : fmt::format("in{}", i);
}

std::string FunctionRecorder::output_name(std::size_t i) const {
  return i < output_names_.size() ? output_names_[i] : fmt::format("out{}", i);
}

void FunctionRecorder::require_named(const std::vector<Tensor>& outputs, Site site) const {
  if (output_names_.empty() || output_names_.size() == outputs.size()) return;
  throw UsageError(error_text("capture",
                              fmt::format("the function gave {} result{}, and output_names has {}: {}", outputs.size(),
                                          outputs.size() == 1 ? "" : "s", output_names_.size(), fmt::join(output_names_, ", ")),
                              site));
}

// The function has run. `end` closes the capture; if that fails, the results of the run may stand without a graph.
void FunctionRecorder::finish(Capture& capture, CapturedRun* run, Site site, const End& end) const {
  require_named(run->outputs, site);
  const bool graph_needed =
      refused_ == Refused::thrown || std::any_of(run->outputs.begin(), run->outputs.end(), gives_gradients);
  try {
    for (std::size_t i = 0; i < run->outputs.size(); ++i) capture.output(output_name(i), run->outputs[i]);
    end(capture, *run);
  } catch (const CaptureError& e) {
    if (graph_needed) throw;
    run->captured.reset();
    if (run->refusal.empty()) run->refusal = e.what();
  }
}

CapturedRun FunctionRecorder::run_captured(const std::vector<Tensor>& inputs, Site site, const End& end) const {
  StandIns stand_ins(inputs);
  CapturedRun run;
  {
    Capture capture("step", site);
    capture.output_gradients();
    capture.compares_counts();
    capture.live_bytes_are_inputs();
    if (fully_static_) capture.fully_static();
    capture.continue_draws();
    for (std::size_t i = 0; i < inputs.size(); ++i) capture.input(input_name(i), stand_ins.inside()[i]);
    PassedHostReads reads{thread_state().tape, ""};
    {
      const Scoped<PassedHostReads*> passing(passed_host_reads(), refused_ == Refused::noted ? &reads : nullptr);
      run.outputs = fn_(stand_ins.inside());
    }
    run.refusal = std::move(reads.first);
    finish(capture, &run, site, end);
  }
  stand_ins.hand_back();
  return run;
}

CapturedRun FunctionRecorder::record(const std::vector<Tensor>& inputs, Site site) const {
  CapturedRun run =
      run_captured(inputs, site, [](Capture& capture, CapturedRun& recorded) { recorded.captured = capture.finish(); });
  run.outputs = own_results(run.outputs, run.captured ? &*run.captured : nullptr, inputs);
  return run;
}

CapturedRun FunctionRecorder::check(const Captured& recording, const std::vector<Tensor>& inputs, Site site) const {
  using Throws = StreamCheck::Throws;
  StreamCheck watch(*recording.script, refused_ == Refused::thrown ? Throws::at_once : Throws::at_the_end);
  const Scoped<RecordWatch*> watching(watch_of_captures(), &watch);
  CapturedRun run = run_captured(inputs, site, [&](Capture& capture, CapturedRun& checked) {
    try {
      watch.finish(*thread_state().tape, checked.outputs);
    } catch (const CaptureError& e) {
      if (refused_ == Refused::thrown) throw;
      if (checked.refusal.empty()) checked.refusal = e.what();
    }
    if (!checked.refusal.empty()) checked.captured = capture.finish();
  });
  const Captured* known = run.refusal.empty() ? &recording : run.captured ? &*run.captured : nullptr;
  run.outputs = own_results(run.outputs, known, inputs);
  return run;
}

}  // namespace tapedeck
