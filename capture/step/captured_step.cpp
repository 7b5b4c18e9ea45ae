// The callable: records its first two calls, compares them, replays after.
#include <tapedeck/capture/step/captured_step.h>

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/call_conditions.h>
#include <tapedeck/capture/record/checked_call.h>
#include <tapedeck/capture/record/compare_recordings.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/replay/threads.h>
#include <tapedeck/capture/step/captured_backward.h>
#include <tapedeck/capture/step/explain_recordings.h>
#include <tapedeck/capture/step/size_families.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_set>

namespace tapedeck {

namespace {

constexpr std::size_t kMostPrograms = 64;  // of one step; the oldest is dropped

// What was recorded for one list of input types, in one kind of surroundings.
struct Recording {
  std::vector<Type> types;
  Surroundings surroundings;
  std::optional<Captured> first;  // until a second call has confirmed it
  std::optional<Captured> captured;
  std::shared_ptr<Executor> executor;
  bool made = false;                           // from recordings at other sizes
  std::shared_ptr<CapturedBackward> backward;  // if results have gradients left to give
  std::vector<const void*> bases;              // by state: the bytes that are bound
  Watchlist watchlist;
  Draws draws;
  std::vector<std::string> reasons;  // why it was recorded

  const Captured* known() const { return captured ? &*captured : first ? &*first : nullptr; }
};

std::string types_text(const std::vector<Type>& types) {
  std::string text;
  for (const Type& t : types) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

std::vector<Type> types_of(const std::vector<Tensor>& tensors) {
  std::vector<Type> types;
  for (const Tensor& t : tensors) types.push_back(t.type());
  return types;
}

bool same_types(const std::vector<Type>& types, const std::vector<Tensor>& tensors) {
  return std::equal(types.begin(), types.end(), tensors.begin(), tensors.end(),
                    [](const Type& type, const Tensor& t) { return type == t.type(); });
}

// One call at a time: a second one is told, not made to wait.
class OneCall {
 public:
  explicit OneCall(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acquire))
      throw CaptureError("[capture] this captured step is in use: by another thread, or from inside itself");
  }
  ~OneCall() { busy_.store(false, std::memory_order_release); }
  OneCall(const OneCall&) = delete;

 private:
  std::atomic<bool>& busy_;
};

// The inputs as the function sees them: handles of their own, so that a tensor the function reads by other ways is not taken
// for an input.
class StandIns {
 public:
  explicit StandIns(const std::vector<Tensor>& inputs) : given_(inputs) {
    for (const Tensor& t : inputs) inside_.push_back(stand_in(t));
  }
  const std::vector<Tensor>& inside() const { return inside_; }

  // After the function: a leaf among the inputs gets the gradient that its stand-in got.
  void hand_back() {
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if (!inside_[i].impl()->requires_grad) continue;
      const Tensor g = inside_[i].grad();
      if (given_[i].impl()->requires_grad)
        given_[i].set_grad(g);
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
      s.set_grad(extra->grad);
      for (const GradHook& hook : extra->hooks) s.impl()->extra->hooks.push_back(hook);
    }
    return s;
  }

  std::vector<Tensor> given_, inside_;
};

// Results that share no bytes with each other or with anything that lives on: the next call must not change them.
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

// Whether masks selected different numbers of elements in both, or nothing may have been computed from how many they selected.
bool trusted_counts(const Captured& first, const Captured& second) {
  if (first.count_suspicion.empty() && second.count_suspicion.empty()) return true;
  for (std::size_t i = 0; i < first.counts.size(); ++i)
    if (first.counts[i] == second.counts[i]) return false;
  return true;
}

// Constants that both recordings read as the very same tensor belong to the user, who may write them.
void keep_shared_constants(const Captured& first, Captured* second) {
  std::vector<Tensor> kept;
  for (std::size_t i = 0; i < second->constants.size(); ++i)
    if (second->constants[i].impl() == first.constants[i].impl()) kept.push_back(second->constants[i]);
  second->constants = std::move(kept);
}

}  // namespace

struct CapturedStep::Impl {
  StepFunction fn;
  CapturedStepOptions options;  // executor: with a pool and by_tensor
  ExecutorOptions
      given_executor;  // as given: backward passes may run in other threads, so they are in no pool unless the user says so
  std::vector<std::unique_ptr<Recording>> cache;
  const Recording* last = nullptr;  // ran last
  StepCounts counts;
  std::atomic<bool> busy{false};
  std::unique_ptr<DimFamilies> families;  // if dimensions are named

  // ---- which recording ----

  std::string why_not(const Recording& r, const Surroundings& now, const std::vector<Tensor>& inputs) const {
    if (!same_types(r.types, inputs))
      return fmt::format("input types changed to ({}) from ({})", types_text(types_of(inputs)), types_text(r.types));
    const Captured* known = r.known();
    const std::string other = now.difference(r.surroundings, known && draws(*known));
    if (!other.empty() || !known) return other;
    const std::string drawn = r.draws.misfit();
    return drawn.empty() ? misfit(*known, inputs) : drawn;
  }

  Recording& find(const std::vector<Tensor>& inputs) {
    const Surroundings now = Surroundings::now();
    for (auto& r : cache)
      if (same_types(r->types, inputs) && why_not(*r, now, inputs).empty()) return *r;
    const std::vector<Type> types = types_of(inputs);
    std::string reason = cache.empty() ? "first call" : why_not(*cache.back(), now, inputs);
    for (auto& r : cache)
      if (r->types == types) reason = why_not(*r, now, inputs);
    if (cache.size() >= kMostPrograms) cache.erase(cache.begin());
    auto r = std::make_unique<Recording>();
    r->types = types;
    r->surroundings = now;
    r->reasons.push_back(reason);
    cache.push_back(std::move(r));
    return *cache.back();
  }

  // ---- running the function ----

  std::string input_name(std::size_t i) const {
    return i < options.input_names.size() ? options.input_names[i] : fmt::format("in{}", i);
  }

  // Runs the function inside a capture; `end` closes it.
  template <class End>
  std::vector<Tensor> run_captured(const std::vector<Tensor>& inputs, End&& end) {
    StandIns stand_ins(inputs);
    std::vector<Tensor> outputs;
    {
      Capture capture("step");
      capture.output_gradients();
      capture.compares_counts();
      if (options.fully_static) capture.fully_static();
      capture.continue_draws();
      for (std::size_t i = 0; i < inputs.size(); ++i) capture.input(input_name(i), stand_ins.inside()[i]);
      outputs = fn(stand_ins.inside());
      for (std::size_t i = 0; i < outputs.size(); ++i) capture.output(fmt::format("out{}", i), outputs[i]);
      end(capture, outputs);
    }
    stand_ins.hand_back();
    return outputs;
  }

  Captured record_once(const std::vector<Tensor>& inputs, std::vector<Tensor>* outputs) {
    std::optional<Captured> captured;
    *outputs = run_captured(inputs, [&](Capture& capture, const std::vector<Tensor>&) { captured = capture.finish(); });
    ++counts.recordings;
    *outputs = own_results(*outputs, *captured, inputs);
    return std::move(*captured);
  }

  std::vector<Tensor> record(Recording& r, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs;
    Captured captured = record_once(inputs, &outputs);
    if (families && captured.counts.empty()) families->add(r.types, r.surroundings, captured);
    if (!r.first) {
      r.draws = Draws(captured.graph);
      r.first = std::move(captured);
    } else {
      compare_recordings(*r.first, captured);
      if (trusted_counts(*r.first, captured))
        build(r, std::move(captured));
      else
        r.first = std::move(captured);
    }
    note_handles();
    return outputs;
  }

  // Recordings hold handles too: a change in their number is no sign of anything.
  void note_handles() {
    for (const auto& r : cache)
      if (r->captured) r->watchlist.note_handles(*r->captured);
  }

  // The recorded program has new reasons for doubt: if the function still is the same program, the replay stays.
  std::vector<Tensor> confirm(Recording& r, const std::vector<Tensor>& inputs, const std::string& suspicion) {
    std::vector<Tensor> outputs;
    std::optional<Captured> captured = record_once(inputs, &outputs);
    try {
      compare_recordings(*r.captured, *captured);
      captured.reset();
      r.watchlist.note(*r.captured);
      r.reasons.push_back(suspicion + ", and the step is the same");
    } catch (const CaptureError& e) {
      if (families) families->forget(r.types, r.surroundings);
      r.executor.reset();
      r.made = false;
      r.backward.reset();
      r.captured.reset();
      r.draws = Draws(captured->graph);
      r.first = std::move(captured);
      r.reasons.push_back(fmt::format("{} ({})", suspicion, e.what()));
    }
    note_handles();
    return outputs;
  }

  std::vector<Tensor> check(Recording& r, const std::vector<Tensor>& inputs) {
    StreamCheck watch(*r.captured->script);
    const Scoped<RecordWatch*> watching(watch_of_captures(), &watch);
    std::vector<Tensor> outputs = run_captured(
        inputs, [&](Capture&, const std::vector<Tensor>& results) { watch.finish(*thread_state().tape, results); });
    ++counts.checks;
    return own_results(outputs, *r.captured, inputs);
  }

  // ---- replaying ----

  // Recordings are members of a pool: the user's, or one for this step alone, since it runs one call at a time.
  static ExecutorOptions member_options(const Recording& r, ExecutorOptions executor, const char* what = "") {
    executor.name = fmt::format("{}{}({})", what, executor.name.empty() ? "step" : executor.name, types_text(r.types));
    return executor;
  }

  void build(Recording& r, Captured captured) {
    PlanOptions how = options.plan;
    how.find_floor = false;  // nobody asks a step how low it could go
    Plan plan = make_plan(captured.graph, how);
    if (!plan.feasible) throw CaptureError("[capture] " + plan.infeasible_reason);
    r.executor = std::make_unique<Executor>(std::move(plan), member_options(r, options.executor));
    keep_shared_constants(*r.first, &captured);
    r.first.reset();
    r.captured = std::move(captured);
    r.bases.assign(r.captured->state.size(), &r);  // nobody's bytes
    bind_state(r);
    r.watchlist.note(*r.captured);
  }

  // State is the user's tensors, wherever their bytes are now.
  void bind_state(Recording& r) {
    const Graph& g = r.captured->graph;
    for (std::size_t i = 0; i < r.bases.size(); ++i) {
      const void* base = r.captured->state[i].impl()->data();
      if (base == r.bases[i]) continue;
      r.executor->bind_state(g.values[static_cast<std::size_t>(g.n_inputs) + i].name.str(), r.captured->state[i]);
      r.bases[i] = base;
    }
  }

  void set_inputs(Recording& r, const std::vector<Tensor>& inputs) {
    // Declared inputs come first; the marked ones (learning rates) are read from their tensors, which their owners may have set
    // since; gradients come last.
    const Captured& c = *r.captured;
    std::size_t n = c.inputs.size();
    for (const TensorUse& use : c.uses) {
      if (use.grad_input == kNone) continue;
      n = std::min(n, static_cast<std::size_t>(use.grad_input));
      r.executor->set_input(use.grad_input, used(use, inputs).grad());
    }
    for (std::size_t i = 0; i < n; ++i) r.executor->set_input(static_cast<int>(i), i < inputs.size() ? inputs[i] : c.inputs[i]);
  }

  static Tensor used(const TensorUse& use, const std::vector<Tensor>& inputs) {
    return use.input == kNone ? use.tensor : inputs[use.input];
  }

  std::vector<Tensor> replay(Recording& r, const std::vector<Tensor>& inputs) {
    bind_state(r);
    set_inputs(r, inputs);
    std::vector<Tensor> outputs = r.executor->run_and_outputs();  // or nothing has happened
    r.draws.advance();
    ++counts.replays;
    for (const TensorUse& use : r.captured->uses) {
      if (use.grad_output != kNone)
        used(use, inputs).set_grad(outputs[use.grad_output]);
      else if (use.clears_grad)
        used(use, inputs).set_grad(Tensor());
    }
    outputs.resize(static_cast<std::size_t>(r.captured->declared_outputs));
    return outputs;
  }

  // ---- named dimensions ----

  // What recordings at other sizes know of this one.
  void make(Recording& r) {
    if (r.executor && !r.made) return;
    std::shared_ptr<Executor> executor = families->executor(r.types, r.surroundings);
    if (!executor || executor == r.executor) return;  // what was evicted here is still good as long as this recording has it
    // Recordings hold handles to state, which those that watch them must not take for the user's: whoever has no doubts now has
    // none after.
    std::vector<Recording*> sure;
    for (const auto& other : cache)
      if (other->captured && other->watchlist.suspicion(*other->captured).empty()) sure.push_back(other.get());
    if (!r.captured) {
      r.captured = families->captured(r.types, r.surroundings);
      r.first.reset();
      r.draws = Draws(r.captured->graph);
      r.reasons.push_back("made from recordings at other sizes");
    }
    r.made = true;
    r.executor = std::move(executor);
    r.bases.assign(r.captured->state.size(), &r);
    std::erase_if(cache, [&](const auto& other) {  // made for sizes whose executor was given up
      const bool gone = other.get() != &r && other->made && other->executor.use_count() == 1;
      if (gone) std::erase(sure, other.get());
      if (gone && last == other.get()) last = nullptr;
      return gone;
    });
    r.watchlist.note(*r.captured);
    for (Recording* other : sure)
      if (other != &r) other->watchlist.note_handles(*other->captured);
  }

  // There is no script at this size: the call is recorded and compared whole.
  std::vector<Tensor> check_by_recording(Recording& r, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs;
    const Captured captured = record_once(inputs, &outputs);
    compare_recordings(*r.captured, captured);
    ++counts.checks;
    return outputs;
  }

  // ---- a call ----

  std::vector<Tensor> call(const std::vector<Tensor>& inputs) {
    const OneCall one(busy);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].defined())
        throw CaptureError(fmt::format("[capture] input {} ('{}') of the step is undefined", i, input_name(i)));
    // Part of something larger that records or recomputes: it sees the ops themselves.
    const ThreadState& state = thread_state();
    if (state.tape->capturing || state.abstract || state.region != kNone || state.calls) return fn(inputs);
    if (families) families->check(types_of(inputs));
    Recording& r = find(inputs);
    last = &r;
    const std::vector<Tensor> results = run(r, inputs);
    return with_history(r, inputs, results);
  }

  std::vector<Tensor> run(Recording& r, const std::vector<Tensor>& inputs) {
    if (families) make(r);
    if (!r.executor) return record(r, inputs);
    if (options.mode == CaptureMode::checked && r.captured->script) return check(r, inputs);
    if (options.mode == CaptureMode::checked) return check_by_recording(r, inputs);
    const std::string suspicion = r.watchlist.suspicion(*r.captured);
    return suspicion.empty() ? replay(r, inputs) : confirm(r, inputs, suspicion);
  }

  // Results whose gradient the function did not take itself give it to eager code around the step.
  std::vector<Tensor> with_history(Recording& r, const std::vector<Tensor>& inputs, const std::vector<Tensor>& results) {
    const Captured& c = *r.known();
    const bool any = std::find(c.differentiable.begin(), c.differentiable.end(), true) != c.differentiable.end();
    if (!any || !thread_state().grad_enabled) return results;
    if (!r.backward)
      r.backward = std::make_shared<CapturedBackward>(c, options.plan, member_options(r, given_executor, "backward of "));
    return r.backward->attach(inputs, results);
  }

  std::vector<Explanation> explanations() const {
    std::vector<Explanation> all;
    for (const auto& r : cache) {
      const Captured* known = r->known();
      all.push_back(
          {types_text(r->types), r->reasons, known ? &known->report : nullptr, r->executor ? &r->executor->plan() : nullptr});
    }
    return all;
  }
};

CapturedStep::CapturedStep(StepFunction fn, CapturedStepOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->fn = std::move(fn);
  impl_->given_executor = options.executor;
  impl_->options = std::move(options);
  CapturedStepOptions& o = impl_->options;
  if (o.plan.threads == 1) o.plan.threads = o.executor.threads > 0 ? o.executor.threads : replay::default_thread_count();
  if (!o.executor.pool) o.executor.pool = std::make_shared<ReplayPool>();
  o.executor.state = StateSharing::by_tensor;
  if (!o.dims.empty()) impl_->families = std::make_unique<DimFamilies>(o.dims, o.plan, o.executor, o.input_names);
}
CapturedStep::~CapturedStep() = default;
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs) { return impl_->call(inputs); }

CaptureMode CapturedStep::mode() const { return impl_->options.mode; }
void CapturedStep::set_mode(CaptureMode mode) { impl_->options.mode = mode; }
void CapturedStep::forget() {
  const OneCall one(impl_->busy);
  impl_->last = nullptr;
  impl_->cache.clear();
  const CapturedStepOptions& o = impl_->options;
  if (impl_->families) impl_->families = std::make_unique<DimFamilies>(o.dims, o.plan, o.executor, o.input_names);
}

const Plan* CapturedStep::plan() const {
  return impl_->last && impl_->last->executor ? &impl_->last->executor->plan() : nullptr;
}

int CapturedStep::recordings() const { return impl_->counts.recordings; }
int CapturedStep::replays() const { return impl_->counts.replays; }
int CapturedStep::checks() const { return impl_->counts.checks; }

std::string CapturedStep::explain() const {
  return explain_text(impl_->counts, impl_->explanations()) + (impl_->families ? impl_->families->explain() : "");
}
std::string CapturedStep::explain_json() const { return tapedeck::explain_json(impl_->counts, impl_->explanations()); }

}  // namespace tapedeck
