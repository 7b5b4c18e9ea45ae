// The callable. A call finds its recording, and then does one of these:
//
//     no recording, or one                     record        the function runs; the second time it is compared with the first
//     two that agree                           replay        the function does not run
//     ... and something the recording
//         relied on may not hold any more      confirm       the function runs once more and is compared
//     many that differ in draws alone          run_eagerly   the function runs, and is not recorded
//     one that cannot serve (eager_fallback)   run_eagerly   likewise
//     ... and the mode is checked, or
//         check_every is due                   check         the function runs, compared op by op
//
// With named dimensions a recording may also be made from recordings at other sizes (make). With eager_fallback a run that was
// recorded or checked and is no recording has its results handed out (fall_back), and the calls after it run eagerly.
#include <tapedeck/capture/step/captured_step.h>

#include <tapedeck/capture/record/compare_recordings.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/step/explain_recordings.h>
#include <tapedeck/capture/step/function_recorder.h>
#include <tapedeck/capture/step/recording_cache.h>
#include <tapedeck/capture/step/replay_recording.h>
#include <tapedeck/capture/step/save_for_view.h>
#include <tapedeck/capture/step/size_families.h>
#include <tapedeck/capture/step/step_monitors.h>
#include <tapedeck/capture/step/step_observer.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <utility>

namespace tapedeck {

namespace {

// One call at a time: a second one gets an error and does not wait.
class OneCall {
 public:
  explicit OneCall(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acquire))
      throw CaptureError(error_text("capture", "this captured step is in use: by another thread, or from inside itself", {}));
  }
  ~OneCall() { busy_.store(false, std::memory_order_release); }
  OneCall(const OneCall&) = delete;

 private:
  std::atomic<bool>& busy_;
};

// True if masks selected different numbers of elements in the two recordings, or if nothing can have been computed from these
// numbers.
bool trusted_counts(const Captured& first, const Captured& second) {
  if (first.count_suspicion.empty() && second.count_suspicion.empty()) return true;
  for (std::size_t i = 0; i < first.counts.size(); ++i)
    if (first.counts[i] == second.counts[i]) return false;
  return true;
}

// Whether the bytes of a constant were handed out after this recording, so that it would be an input now.
bool handed_out_since(const Captured& recording) {
  return std::any_of(recording.constants.begin(), recording.constants.end(),
                     [](const Tensor& t) { return t.impl()->storage && t.impl()->storage->handed_out; });
}

void require_distinct(const std::vector<std::string>& names, const char* list) {
  const std::set<std::string> distinct(names.begin(), names.end());
  for (const std::string& name : distinct)
    if (std::count(names.begin(), names.end(), name) > 1)
      throw UsageError(fmt::format("{} has the name '{}' more than once", list, name));
}

// The options for the executors of a step: they share memory, and the tensor decides which state is one.
CapturedStepOptions prepared(CapturedStepOptions o) {
  if (o.check_every < 0)
    throw UsageError(fmt::format("check_every is {}: give 0 for none, or a number of calls", o.check_every));
  require_distinct(o.input_names, "input_names");
  require_distinct(o.output_names, "output_names");
  if (!o.executor.pool && o.executor.device == "cpu") o.executor.pool = std::make_shared<ReplayPool>();
  o.executor.state = StateSharing::by_tensor;
  return o;
}

}  // namespace

struct CapturedStep::Impl {
  Impl(StepFunction fn, const CapturedStepOptions& given)
      : options(prepared(given)),
        given_executor(given.executor),
        recorder(std::move(fn), options.input_names, options.output_names, options.fully_static,
                 given.eager_fallback ? Refused::noted : Refused::thrown),
        replayer(options.plan, options.executor),
        families(new_families()) {}

  const CapturedStepOptions options;
  // As given: backward passes may run in other threads, so they are in no pool unless the user says so.
  const ExecutorOptions given_executor;
  CaptureMode mode = options.mode;
  const FunctionRecorder recorder;
  const RecordingReplayer replayer;
  StepMonitors monitors;
  RecordingCache cache;
  const Recording* last = nullptr;        // the one that ran last
  std::unique_ptr<DimFamilies> families;  // if dimensions are named
  StepCounts counts;
  std::string difference;  // of two equal calls, with eager_fallback: the step is no program; empty: none was found
  Site site = {};          // of the call under way, for errors of its capture
  int since_check = 0;     // calls that could replay, since the last check by check_every
  std::atomic<bool> busy{false};

  std::unique_ptr<DimFamilies> new_families() const {
    if (options.dims.empty()) return nullptr;
    return std::make_unique<DimFamilies>(options.dims, options.plan, options.executor, options.input_names);
  }

  // ---- running the function ----

  // With eager_fallback, a run that no capture allows is the last one of this recording.
  template <class Run>
  CapturedRun run_captured(Recording& r, Run&& run) {
    try {
      return run();
    } catch (const CaptureError& e) {
      if (options.eager_fallback) r.refusal = e.what();
      throw;
    }
  }

  CapturedRun record_once(Recording& r, const std::vector<Tensor>& inputs) {
    CapturedRun run = run_captured(r, [&] { return recorder.record(inputs, site); });
    if (run.captured) ++counts.recordings;
    return run;
  }

  std::vector<Tensor> record(Recording& r, const std::vector<Tensor>& inputs) {
    cache.keep_suspicions();
    CapturedRun run = record_once(r, inputs);
    if (!run.refusal.empty()) return fall_back(r, inputs, run);
    if (r.first && handed_out_since(*r.first)) {
      r.first.reset();
      r.reasons.push_back("mutable_data() handed out the bytes of a constant");
    }
    Captured& captured = *run.captured;
    if (families && captured.counts.empty()) families->add(r.types, r.surroundings, captured);
    if (!r.first) {
      r.draws = Draws(captured.graph);
      r.first = std::move(captured);
    } else {
      if (differs(*r.first, &run)) return fall_back(r, inputs, run);
      if (trusted_counts(*r.first, captured))
        replayer.build(r, std::move(captured));
      else
        r.first = std::move(captured);
    }
    run.captured.reset();
    cache.note_handles();
    return with_history(r, inputs, std::move(run.outputs));
  }

  // Something that the recording relied on may not hold any more. If the function is still the same program, the replay stays.
  std::vector<Tensor> confirm(Recording& r, const std::vector<Tensor>& inputs, const std::string& suspicion) {
    cache.keep_suspicions();
    CapturedRun run = record_once(r, inputs);
    if (!run.refusal.empty()) return fall_back(r, inputs, run);
    try {
      compare_recordings(*r.captured, *run.captured);
      run.captured.reset();
      r.watchlist.note(*r.captured);
      r.reasons.push_back(suspicion + ", and the step is the same");
    } catch (const CaptureError& e) {
      drop_program(r);
      r.draws = Draws(run.captured->graph);
      r.first = std::move(run.captured);
      run.captured.reset();
      r.reasons.push_back(fmt::format("{} ({})", suspicion, e.what()));
    }
    cache.note_handles();
    return with_history(r, inputs, std::move(run.outputs));
  }

  void drop_program(Recording& r) {
    if (families) families->forget(r.types, r.surroundings);
    r.executor.reset();
    r.made = false;
    r.backward.reset();
    r.captured.reset();
  }

  bool check_is_due() {
    if (options.check_every == 0 || ++since_check < options.check_every) return false;
    since_check = 0;
    return true;
  }

  std::vector<Tensor> check(Recording& r, const std::vector<Tensor>& inputs) {
    CapturedRun run;
    if (r.captured->script) {
      run = run_captured(r, [&] { return recorder.check(*r.captured, inputs, site); });
    } else {  // made from recordings at other sizes: the call is recorded and compared whole
      run = record_once(r, inputs);
      if (run.refusal.empty()) differs(*r.captured, &run);
    }
    if (!run.refusal.empty()) {
      difference = run.refusal;
      return fall_back(r, inputs, run);
    }
    ++counts.checks;
    return with_history(r, inputs, std::move(run.outputs));
  }

  // ---- eager calls in the place of others ----

  // Whether a run is another program than the recording. That is an error, or, with eager_fallback, the refusal of the run.
  bool differs(const Captured& recording, CapturedRun* run) {
    try {
      compare_recordings(recording, *run->captured);
      return false;
    } catch (const CaptureError& e) {
      if (!options.eager_fallback) throw;
      difference = run->refusal = e.what();
      return true;
    }
  }

  // The results of a run that is no recording. The calls after it run eagerly: all if the step is no program, otherwise those
  // that belong to this recording.
  std::vector<Tensor> fall_back(Recording& r, const std::vector<Tensor>& inputs, CapturedRun& run) {
    ++counts.fallbacks;
    counts.last_eager_reason = run.refusal;
    std::vector<Tensor> results = std::move(run.outputs);
    if (run.captured) {
      std::shared_ptr<CapturedBackward> backward;
      results = with_history_of(*run.captured, &backward, r, inputs, std::move(results));
      run.captured.reset();
    }
    if (difference.empty()) {
      r.refusal = run.refusal;
      r.reasons.push_back(fmt::format("its calls run eagerly: {}", run.refusal));
      drop_program(r);
      r.first.reset();
    } else if (families) {
      families->forget(r.types, r.surroundings);
    }
    cache.note_handles();
    return results;
  }

  std::vector<Tensor> run_eagerly(const std::vector<Tensor>& inputs, const std::string& reason) {
    ++counts.fallbacks;
    counts.last_eager_reason = reason;
    return recorder.run(inputs);
  }

  // No recording would serve a second call, because the step draws other numbers in every call.
  std::vector<Tensor> run_without_recording(const std::vector<Tensor>& inputs) {
    if (counts.eager++ == 0)
      fmt::print(
          stderr,
          "warning: the captured step {} draws random numbers and begins no random step (next_step()), so every call draws "
          "others and no recording serves twice; its calls run eagerly\n",
          given_executor.name.empty() ? "" : "'" + given_executor.name + "'");
    counts.last_eager_reason = "it draws random numbers and begins no random step (next_step()), so every call draws others";
    return recorder.run(inputs);
  }

  // ---- named dimensions ----

  // Makes the recording from recordings at other sizes, if they are enough.
  void make(Recording& r) {
    if (r.executor && !r.made) return;
    std::shared_ptr<Executor> executor = families->executor(r.types, r.surroundings);
    if (!executor || executor == r.executor) return;  // an evicted executor serves as long as this recording has it
    std::vector<Recording*> sure = cache.without_doubts();
    if (!r.captured) {
      r.captured = families->captured(r.types, r.surroundings);
      r.first.reset();
      r.draws = Draws(r.captured->graph);
      r.reasons.push_back("made from recordings at other sizes");
    }
    r.made = true;
    r.executor = std::move(executor);
    r.bases.assign(r.captured->state.size(), &r);
    cache.drop_unused(r, [&](const Recording* dropped) {
      std::erase(sure, dropped);
      if (last == dropped) last = nullptr;
    });
    r.watchlist.note(*r.captured);
    for (Recording* other : sure)
      if (other != &r) other->watchlist.note_handles(*other->captured);
  }

  // ---- a call ----

  std::vector<Tensor> call(const std::vector<Tensor>& inputs, Site at) {
    const OneCall one(busy);
    site = at;
    const std::vector<std::string>& names = options.input_names;
    if (!names.empty() && names.size() != inputs.size())
      throw UsageError(error_text("capture",
                                  fmt::format("input_names has {} ({}), and the call gives {} input{}", names.size(),
                                              fmt::join(names, ", "), inputs.size(), inputs.size() == 1 ? "" : "s"),
                                  site));
    if (const std::optional<ErrorText> undefined = undefined_input(inputs)) {
      if (!options.eager_fallback) throw CaptureError(*undefined);
      return run_eagerly(inputs, undefined->str());
    }
    // The code around the call records or recomputes, so it must see the ops themselves.
    const ThreadState& state = thread_state();
    if (state.tape->capturing || state.abstract || state.region != kNone || state.calls) return recorder.run(inputs);
    if (!difference.empty() && mode != CaptureMode::checked) return run_eagerly(inputs, difference);
    if (const std::string misfit = size_misfit(inputs); !misfit.empty()) return run_eagerly(inputs, misfit);
    Recording* const r = cache.find(inputs);
    if (!r) return run_without_recording(inputs);
    last = r;
    if (!r->refusal.empty()) return run_eagerly(inputs, r->refusal);
    if (!difference.empty() && !r->executor) return run_eagerly(inputs, difference);
    return run(*r, inputs);
  }

  std::optional<ErrorText> undefined_input(const std::vector<Tensor>& inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].defined())
        return error_text("capture", fmt::format("input {} ('{}') of the step is undefined", i, recorder.input_name(i)), site);
    return std::nullopt;
  }

  // Why the named dimensions do not allow these sizes, if the call can run eagerly instead. Otherwise it is a TypeError.
  std::string size_misfit(const std::vector<Tensor>& inputs) const {
    if (!families) return {};
    try {
      families->check(types_of(inputs));
      return {};
    } catch (const TypeError& e) {
      if (!options.eager_fallback) throw;
      return e.what();
    }
  }

  std::vector<Tensor> run(Recording& r, const std::vector<Tensor>& inputs) {
    if (families) make(r);
    if (!r.executor) return record(r, inputs);
    if (mode == CaptureMode::checked || check_is_due()) return check(r, inputs);
    const std::string suspicion = r.watchlist.suspicion(*r.captured);
    if (!suspicion.empty()) return confirm(r, inputs, suspicion);
    return replay(r, inputs);
  }

  std::vector<Tensor> replay(Recording& r, const std::vector<Tensor>& inputs) {
    monitors.apply(r);
    std::vector<Tensor> outputs = replayer.replay(r, inputs);
    ++counts.replays;
    return with_history(r, inputs, std::move(outputs));
  }

  // ---- questions about the program that ran last ----

  const Captured& recorded(const char* what) const {
    if (last && last->known()) return *last->known();
    throw UsageError(error_text(what, reason_for_none("the captured step was not called yet, so nothing is recorded"), {}));
  }

  const Executor& replayed(const char* what) const {
    if (last && last->executor) return *last->executor;
    throw ExecutionError(
        error_text(what, reason_for_none("the captured step has not replayed yet: its first two calls record"), {}));
  }

  std::string reason_for_none(const char* usual) const {
    return last && !last->refusal.empty() ? fmt::format("the captured step runs eagerly: {}", last->refusal) : usual;
  }

  // Results whose gradient the function did not take itself get a history, for eager code around the step.
  std::vector<Tensor> with_history(Recording& r, const std::vector<Tensor>& inputs, std::vector<Tensor> results) {
    return with_history_of(*r.known(), &r.backward, r, inputs, std::move(results));
  }

  std::vector<Tensor> with_history_of(const Captured& c, std::shared_ptr<CapturedBackward>* backward, const Recording& r,
                                      const std::vector<Tensor>& inputs, std::vector<Tensor> results) {
    const bool any = std::find(c.differentiable.begin(), c.differentiable.end(), true) != c.differentiable.end();
    if (!any || !thread_state().grad_enabled) return results;
    if (!*backward)
      *backward = std::make_shared<CapturedBackward>(c, options.plan, member_options(r, given_executor, "backward of "));
    return (*backward)->attach(inputs, results);
  }
};

CapturedStep::CapturedStep(StepFunction fn, CapturedStepOptions options)
    : impl_(std::make_unique<Impl>(std::move(fn), options)) {}
CapturedStep::~CapturedStep() {
  if (impl_) save_for_view(*this);
}
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&&) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs, Site site) {
  StepObserver* const observer = step_observer();
  if (!observer || thread_state().tape->capturing) return impl_->call(inputs, site);
  const Plan* const before = plan();
  const int replays_before = replays();
  std::vector<Tensor> results = impl_->call(inputs, site);
  observer->called(*this, plan() != nullptr && plan() != before, replays() != replays_before);
  return results;
}

CaptureMode CapturedStep::mode() const { return impl_->mode; }
void CapturedStep::set_mode(CaptureMode mode) { impl_->mode = mode; }
void CapturedStep::forget() {
  const OneCall one(impl_->busy);
  impl_->last = nullptr;
  impl_->difference.clear();
  impl_->cache.clear();
  impl_->families = impl_->new_families();
}

const Captured* CapturedStep::captured() const { return impl_->last ? impl_->last->known() : nullptr; }

const Plan* CapturedStep::plan() const {
  return impl_->last && impl_->last->executor ? &impl_->last->executor->plan() : nullptr;
}

const Captured& CapturedStep::recorded(const char* what) const { return impl_->recorded(what); }

std::vector<std::string> CapturedStep::state_names() const {
  const Graph& g = impl_->recorded("state_names").graph;
  std::vector<std::string> names;
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) names.push_back(g.values[v].name.str());
  return names;
}

Tensor CapturedStep::state(const std::string& name) const {
  const std::vector<std::string> names = state_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    throw UsageError(
        error_text("state", fmt::format("the step has no state '{}'; it has: {}", name, fmt::join(names, ", ")), {}));
  return impl_->recorded("state").state[static_cast<std::size_t>(at - names.begin())];
}

std::int64_t CapturedStep::observed_peak_bytes() const { return impl_->replayed("observed_peak_bytes").observed_peak_bytes(); }
Tensor CapturedStep::value(const std::string& name) const { return impl_->replayed("value").value(name); }

std::int32_t CapturedStep::monitor(const std::string& pattern, MonitorFunction fn, const MonitorOptions& options) {
  const OneCall one(impl_->busy);
  return impl_->monitors.add(pattern, std::move(fn), options);
}
void CapturedStep::remove_monitor(std::int32_t id) {
  const OneCall one(impl_->busy);
  impl_->monitors.remove(id);
}

int CapturedStep::recordings() const { return impl_->counts.recordings; }
int CapturedStep::replays() const { return impl_->counts.replays; }
int CapturedStep::checks() const { return impl_->counts.checks; }
int CapturedStep::eager_calls() const { return impl_->counts.eager + impl_->counts.fallbacks; }
const std::string& CapturedStep::last_eager_reason() const { return impl_->counts.last_eager_reason; }

std::string CapturedStep::explain() const {
  return explain_text(impl_->counts, impl_->cache.explanations()) + (impl_->families ? impl_->families->explain() : "");
}
std::string CapturedStep::explain_json() const { return tapedeck::explain_json(impl_->counts, impl_->cache.explanations()); }

}  // namespace tapedeck
