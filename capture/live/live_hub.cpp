#include <tapedeck/capture/live/live_hub.h>

#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <pthread.h>
#include <unistd.h>

namespace tapedeck::live {

namespace {

constexpr int kMostFiles = 8;          // of captured steps; older ones are removed
constexpr NodeId kMostNodes = 20'000;  // a capture that nobody ends is ended then

// The capture that is open on this thread. A thread that ends closes it and gives its graph up.
struct Open {
  std::unique_ptr<StepCapture> capture;
  bool until_step = false;
};
thread_local Open open_here;

bool asked_for() {
  const char* const value = ::secure_getenv("TAPEDECK_VIEW");
  return value && *value != 0 && std::string_view(value) != "0";
}

ConnectOptions options_from_environment() {
  const char* const value = ::secure_getenv("TAPEDECK_VIEW");
  ConnectOptions options;
  if (value && std::string_view(value) != "1") options.base = value;
  return options;
}

void register_with_process() {
  static const bool once = [] {
    std::atexit([] { Hub::of_process().disconnect(); });
    ::pthread_atfork([] { Hub::of_process().before_fork(); }, [] { Hub::of_process().after_fork_in_parent(); },
                     [] { Hub::of_process().after_fork_in_child(); });
    return true;
  }();
  (void)once;
}

// A program that asks for a live view by its environment is watched from its first op on. Until then nothing is made: programs
// that only load the library have no folder and no thread.
[[maybe_unused]] const bool kArmed = [] {
  if (asked_for()) Hub::of_process().connect_at_first_op();
  return true;
}();

}  // namespace

// It is never destroyed, because threads may run ops until the very end of the process.
Hub& Hub::of_process() {
  static Hub& hub = *new Hub;
  return hub;
}

void Hub::connect_at_first_op() {
  armed_ = true;
  set_op_observer(this);
  set_step_observer(this);
}

bool Hub::connect(const ConnectOptions& options) {
  const std::lock_guard lock(mutex_);
  return connect_locked(options);
}

bool Hub::connect_locked(const ConnectOptions& options) {
  if (writer_ && !writer_->failed()) return true;
  writer_.reset();
  try {
    const std::string name = options.name.empty() ? own_program_name() : options.name;
    buffer_.open(options.buffer_bytes);
    writer_ = std::make_unique<LiveWriter>(buffer_, options.base, name, [this](Request r) { ask(r); });
    folder_ = writer_->folder();
    register_with_process();
    set_op_observer(this);
    set_step_observer(this);
    return true;
  } catch (const std::exception& e) {
    buffer_.close();
    std::fprintf(stderr, "warning: no live view: %s\n", e.what());
    return false;
  }
}

void Hub::disconnect() noexcept {
  armed_ = false;
  const std::lock_guard lock(mutex_);
  wish_ = Wish::none;
  end_wished_ = open_captures_ > 0;  // a capture that is open on another thread ends with the next op there
  unhook_if_idle();
  if (!writer_) return;
  try {
    buffer_.ended("the program has ended or disconnected");
  } catch (const std::exception&) {
    buffer_.close();  // no memory for the last word
  }
  buffer_.close();
  writer_.reset();
  folder_.clear();
}

void Hub::unhook_if_idle() noexcept {
  if (open_captures_ > 0) return;
  set_op_observer(nullptr);
  set_step_observer(nullptr);
}

bool Hub::connected() const {
  const std::lock_guard lock(mutex_);
  return writer_ && !writer_->failed();
}

std::string Hub::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

void Hub::ask(Request request) noexcept {
  switch (request) {
    case Request::capture_step:
      wish_ = Wish::step;
      return;
    case Request::begin_capture:
      wish_ = Wish::begin;
      return;
    case Request::end_capture:
      if (wish_.exchange(Wish::none) == Wish::none) end_wished_ = true;
      return;
  }
}

// A program that wants no live view may have removed the variable in its main().
void Hub::connect_if_still_asked() {
  if (asked_for())
    connect(options_from_environment());
  else
    disconnect();
}

// ---- what the program does ----

void Hub::ran(const RanOp& call) noexcept {
  try {
    if (armed_.load(std::memory_order_relaxed) && armed_.exchange(false)) connect_if_still_asked();
    buffer_.ran(call);
    const bool waits = wish_.load(std::memory_order_relaxed) == Wish::begin || end_wished_.load(std::memory_order_relaxed) ||
                       open_captures_.load(std::memory_order_relaxed) > 0;
    if (waits && !call.in_place) serve_begin_and_end();
  } catch (const std::exception&) {
    buffer_.close();  // no memory: the program needs it more
  }
}

void Hub::stepped() noexcept {
  try {
    buffer_.stepped();
    if (open_here.capture && open_here.until_step) return close_capture();
    if (wish_.load(std::memory_order_relaxed) == Wish::step && !thread_state().tape->capturing) {
      Wish expected = Wish::step;
      if (wish_.compare_exchange_strong(expected, Wish::none)) open_capture(true);
    }
  } catch (const std::exception&) {
    buffer_.close();
  }
}

void Hub::called(const CapturedStep& step, bool planned, bool replayed) noexcept {
  try {
    const Captured* const captured = step.captured();
    if (!captured) return;
    if (replayed && step.plan())
      buffer_.replayed(captured->graph.name.view(), step.plan()->graph.node_count(), step.plan()->peak_bytes);
    if (planned) save(*captured, step.plan(), false);
    Wish expected = Wish::step;
    if (step.plan() && wish_.compare_exchange_strong(expected, Wish::none)) save(*captured, step.plan(), true);
  } catch (const std::exception&) {
    buffer_.close();
  }
}

// ---- captures of steps ----

void Hub::serve_begin_and_end() {
  Wish expected = Wish::begin;
  if (!open_here.capture && StepCapture::obstacle().empty() && wish_.compare_exchange_strong(expected, Wish::none))
    return open_capture(false);
  if (!open_here.capture || (!end_wished_.load() && (open_here.until_step || open_here.capture->nodes() < kMostNodes))) return;
  if (open_here.capture->can_finish()) {
    end_wished_ = false;
    close_capture();
  }
}

void Hub::open_capture(bool until_step) {
  if (const std::string problem = StepCapture::obstacle(); !problem.empty()) return buffer_.captured("", problem);
  end_wished_ = false;
  open_here = {std::make_unique<StepCapture>(), until_step};
  ++open_captures_;
  buffer_.captured("", until_step ? "the next step is being captured" : "what runs from here on is being captured");
}

// A step that left tensors with gradients to give goes on being recorded: they would lose their history with the tape.
void Hub::close_capture() {
  if (!open_here.capture->can_finish()) return;
  std::string problem;
  const std::optional<Captured> captured = open_here.capture->finish(&problem);
  const char* const note = open_here.capture->read_on_host() ? ", read tensors on the host" : "";
  open_here.capture.reset();
  {
    const std::lock_guard lock(mutex_);
    if (--open_captures_ == 0 && !writer_) unhook_if_idle();
  }
  captured ? save(*captured, nullptr, true, note) : buffer_.captured("", "the step cannot be captured: " + problem);
}

void Hub::save(const Captured& captured, const Plan* plan, bool with_values, const char* note) noexcept {
  try {
    const std::string in = folder();
    if (in.empty()) return;
    const int number = ++files_;
    const std::string name = fmt::format("capture-{}.tape", number);
    const std::string what = save_captured(in + "/" + name, captured, plan, with_values);
    buffer_.captured(name, fmt::format("{}: {}{}", captured.graph.name.view(), what, note));
    ::unlink(fmt::format("{}/capture-{}.tape", in, number - kMostFiles).c_str());
  } catch (const std::exception& e) {
    try {
      buffer_.captured("", fmt::format("the step cannot be written: {}", e.what()));
    } catch (const std::exception&) {
      buffer_.close();
    }
  }
}

// ---- fork ----

void Hub::before_fork() {
  mutex_.lock();
  buffer_.mutex().lock();
}

void Hub::after_fork_in_parent() {
  buffer_.mutex().unlock();
  mutex_.unlock();
}

// The child has none of the parent's threads, and must not write into its files. If the environment asks for it, the child gets
// a live view of its own at its first op.
void Hub::after_fork_in_child() noexcept {
  if (writer_) {
    writer_->abandon_in_child();
    parents_writer_ = writer_.release();
  }
  folder_.clear();
  armed_ = asked_for() && op_observer() == this;
  if (!armed_) {
    set_op_observer(nullptr);
    set_step_observer(nullptr);
  }
  buffer_.mutex().unlock();
  buffer_.close();
  mutex_.unlock();
}

}  // namespace tapedeck::live
