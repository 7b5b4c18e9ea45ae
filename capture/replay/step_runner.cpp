// The order of a step:
//
//     start    everything is given; the arena and state are followed to where they are; results of other members are saved
//     walk     the segments run (run_segments.h); then bound tensors that were written get new versions
//     the end  outputs are there, or fail() throws the error of the lowest faulty node and leaves all ready for another run
#include <tapedeck/capture/replay/step_runner.h>

#include <tapedeck/capture/replay/slot_checks.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

namespace tapedeck::replay {

namespace {
constexpr const char* kTorn = "; state had been written already, so it must be set again before the next run";
}  // namespace

StepRunner::StepRunner(const Plan& plan, Member& member, Buffers& buffers, InputSlots& inputs, StateSlots& states,
                       KeptStep& kept, Program& program, SegmentWalk& walk, ObservedRun& observed, StepProgress& progress,
                       Results& results)
    : plan_(plan),
      member_(member),
      buffers_(buffers),
      inputs_(inputs),
      states_(states),
      kept_(kept),
      program_(program),
      walk_(walk),
      observed_(observed),
      progress_(progress),
      results_(results) {}

void StepRunner::run(const RunOptions* options) {
  if (progress_.under_way())
    throw ExecutionError(
        fmt::format("run: a step is under way ({}); resume() finishes it, restart() drops it", progress_.due()));
  if (device_) return run_on_device(options);
  start(true, false);
  const bool observed = walk(options, {});
  end_step();
  if (observed) observed_.tell_end(true);
}

void StepRunner::end_step() {
  progress_.set_complete(true);
  member_.family->finished = true;
  states_.note_versions();
}

// A step on a device is one piece of work, so only its start heeds `cancel`.
void StepRunner::run_on_device(const RunOptions* options) {
  if (options && options->cancel && options->cancel->load())
    throw Cancelled("the run was cancelled; no state has been written");
  synchronize();
  start(true, false);
  finish_on_device(device_->run(options ? options->timeline : nullptr));
  if (options && options->progress) options->progress(1);
}

void StepRunner::finish_on_device(const DeviceOutcome& outcome) {
  if (outcome.wrote_state) states_.note_writes(walk_);
  device_->note_versions();
  if (outcome.failed()) fail_on_device(outcome);
  end_step();
}

// A step that was launched counts as complete: each call that needs its results waits for it first.
void StepRunner::launch() {
  if (!device_) return run(nullptr);
  start(true, false);
  finish_on_device(device_->launch());
}

void StepRunner::synchronize() {
  if (!device_ || device_->in_flight() == 0) return;
  const DeviceOutcome outcome = device_->wait();
  if (outcome.failed()) fail_on_device(outcome);
}

// ---- before ----

void StepRunner::check_ready(bool inputs) const {
  if (states_.ready() && (!inputs || inputs_.all_set())) return;
  states_.refuse_if_torn();
  std::vector<std::string> missing;
  if (inputs) inputs_.list_missing(&missing);
  states_.list_missing(&missing);
  if (!missing.empty()) throw ExecutionError("never set: " + listed(missing));
}

void StepRunner::refuse_mid_step(const char* what) {
  member_.memory->claim(member_);
  if (progress_.under_way())
    throw ExecutionError(
        fmt::format("{}: a step is under way ({}); resume() finishes it, restart() drops it", what, progress_.due()));
}

void StepRunner::start(bool inputs, bool in_parts) {
  Memory& memory = *member_.memory;
  check_ready(inputs);
  memory.claim(member_);
  const std::vector<void*>& blocks = memory.settle_arena();  // on a device none of the plan
  if (!device_) buffers_.follow_arena(blocks);
  states_.follow(buffers_);
  memory.arena_user = &member_;
  memory.arena_user_name = member_.name;
  member_.dropped_by = Name();
  observed_.begin_step(blocks);
  progress_.set_complete(false);
  *member_.family = {&member_, member_.name, false};
  inputs_.begin_step();
  states_.begin_writing();
  kept_.begin_step(in_parts);
  if (progress_.prepared()) walk_.forget_stops();  // another executor may have ended a step in parts
  if (!device_) buffers_.resolve(program_);
  results_.begin_step();
}

// ---- the walk ----

bool StepRunner::walk(const RunOptions* options, const RunExtent& extent) {
  static const RunOptions none;  // the meter keeps a pointer to `progress`, so no copy may be handed on
  const bool observed = observed_.is_asked(options, extent);
  if (observed) observed_.begin(options ? *options : none, extent);
  walk_.run(observed ? &observed_ : nullptr, extent.in_order);
  states_.note_writes(walk_);
  if (observed) {
    observed_.end();
    if (observed_.stopped() && !failed()) {
      drop();
      observed_.tell_end(false);
      throw Cancelled("the run was cancelled; no state has been written");
    }
  }
  if (failed()) fail(observed && observed_.stopped());
  return observed;
}

// ---- a step that comes to no good end ----

bool StepRunner::drop() {
  bool torn = false;
  if (progress_.under_way()) {
    member_.memory->step_of = nullptr;
    torn = member_.memory->step_wrote && !kept_.give_back();
    if (torn) states_.tear();
    kept_.forget();
  }
  walk_.clear_faults();
  return torn;
}

void StepRunner::rewind() {
  const std::string why = kept_.why_no_way_back();
  if (!why.empty()) throw ExecutionError(fmt::format("there is no way back: {}", why));
  if (!results_.holds_step()) throw ExecutionError("there is no way back: another executor has run in the same memory since");
  kept_.give_back();
  kept_.come_again();
  member_.memory->step_of = nullptr;
  member_.memory->step_wrote = false;
  progress_.set_complete(false);
  walk_.clear_faults();
}

// A loop that was stopped is at fault as well; what progress() has thrown goes first.
void StepRunner::fail(bool stopped) {
  const Fault fault = walk_.take_fault();
  member_.memory->step_of = &member_;
  member_.memory->step_wrote = walk_.wrote_state();
  const std::string end = drop() ? kTorn : "";
  if (observed_.damaged()) throw ExecutionError(observed_.take_damage() + end);
  if (stopped) observed_.tell_end(false);
  throw_fault(plan_.graph, fault, end);
}

void StepRunner::fail_on_device(const DeviceOutcome& outcome) {
  progress_.set_complete(false);
  member_.memory->step_of = &member_;
  member_.memory->step_wrote = outcome.wrote_state;
  std::string end = outcome.steps > 1 ? fmt::format("; in one of {} steps that were launched", outcome.steps) : "";
  if (drop()) end += kTorn;
  if (outcome.fault.node == kNone) throw ExecutionError(outcome.error + end);
  throw_fault(plan_.graph, outcome.fault, end);
}

}  // namespace tapedeck::replay
