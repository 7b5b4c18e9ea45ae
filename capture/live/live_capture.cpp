#include <tapedeck/capture/live/live_capture.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/engine/eager/allocator.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>

#include <fmt/format.h>

#include <utility>

namespace tapedeck::live {

namespace {

// The place of a node whose result is still held by the program and could still give gradients; null if there is none.
const NodeInfo* open_history(const Recorder& tape) {
  for (ValueId v = 0; v < tape.graph.value_count(); ++v) {
    const TapeValue& value = tape.info[static_cast<std::size_t>(v)];
    const NodeId maker = tape.graph.values[static_cast<std::size_t>(v)].node;
    if (value.handles == 0 || !value.needs_grad || value.cut || value.dead || maker == kNone) continue;
    const NodeInfo& note = tape.notes[static_cast<std::size_t>(maker)];
    if (!note.released) return &note;
  }
  return nullptr;
}

}  // namespace

std::string StepCapture::obstacle() {
  const ThreadState& state = thread_state();
  if (state.tape != state.own.get() || state.tape->nested || state.region != kNone || state.calls || state.abstract ||
      state.twin != kNone)
    return "the program captures or recomputes here by itself";
  if (Allocator::host().limit() > 0) return "the program runs in a memory budget; freeze(session, step) captures its step";
  if (passed_host_reads()) return "the program records a step here";
  if (const NodeInfo* note = open_history(*state.own))
    return fmt::format(
        "a tensor of an earlier step, made at {}:{}, still has its gradient history: detach() it, or read it with "
        "item()",
        note->site.file, note->site.line);
  return "";
}

StepCapture::StepCapture() : capture_(std::make_unique<Capture>("step")) {
  capture_->continue_draws();
  capture_->live_bytes_are_inputs();
  capture_->compares_counts();
  tape_ = thread_state().tape;
  passed_.capture = tape_;
  passed_.everything = true;
  passed_host_reads() = &passed_;
}

StepCapture::~StepCapture() {
  if (passed_host_reads() == &passed_) passed_host_reads() = nullptr;
}

bool StepCapture::can_finish() const {
  const ThreadState& state = thread_state();
  return state.tape == tape_ && state.region == kNone && !state.calls && !state.abstract && state.twin == kNone &&
         !open_history(*tape_);
}

NodeId StepCapture::nodes() const { return tape_->graph.node_count(); }

std::optional<Captured> StepCapture::finish(std::string* problem) noexcept {
  try {
    *problem = passed_.fault;
    std::optional<Captured> captured;
    if (problem->empty()) captured = capture_->finish();
    capture_.reset();
    return captured;
  } catch (const std::exception& e) {
    *problem = e.what();
    return std::nullopt;
  }
}

std::string save_captured(const std::string& path, const Captured& captured, const Plan* plan, bool with_values) {
  TapeFile file = tape_of(captured, {{"made_by", "live view"}});
  std::int64_t bytes = 0;
  for (const auto* tensors : {&file.inputs, &file.state})
    for (const auto& [name, tensor] : *tensors) bytes += tensor.bytes();
  const bool values = with_values && bytes <= kMostSavedBytes;
  if (!values) file.inputs.clear(), file.state.clear();
  if (plan) file.plan = *plan;
  save_tape(path, file);
  return fmt::format("{} node{}{}", captured.graph.node_count(), captured.graph.node_count() == 1 ? "" : "s",
                     values ? "" : ", without values");
}

}  // namespace tapedeck::live
