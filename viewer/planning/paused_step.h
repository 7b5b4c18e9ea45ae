// One step of a plan in the background that pauses at nodes, goes back, and shows any value that it has computed. The UI thread
// never waits for it.
//
//     begin, go ----> thread: Executor::run_until, step, back; then inspect ----> wake() ----> take()
//     pause()         the part under way ends behind the node that runs
//     end()           the executor and its bytes go
//
// The executor keeps what a step overwrites (Executor::keep_steps), so that the step can go back.
#pragma once

#include <tapedeck/viewer/model/looked_at.h>
#include <tapedeck/viewer/plan/plan_model.h>
#include <tapedeck/viewer/planning/awaited_task.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tapedeck::viewer {

// How the step goes on. `stay` only looks at the value. `to_node` goes back if the node has run already.
enum class StepMove : std::uint8_t { stay, next, back, to_node, to_end };

struct StepRequest {
  StepMove move = StepMove::stay;
  NodeId node = kNone;        // of to_node: behind this one
  bool stops_at_nan = false;  // of to_node and to_end: also behind the first node that makes NaN
  std::string stops_at = {};  // of the same: behind nodes whose op, module or result has a name that matches; empty: none
  ValueId value = kNone;      // that is looked at behind the move; kNone: none
};

// Only one thread (the UI's) may use it.
class PausedStep {
 public:
  struct Result {
    std::string error;           // why the move failed; the step is then where `done` says
    bool begun = false;          // false: there is no step, because of the error
    std::int32_t done = 0;       // how many nodes of the step have run
    NodeId behind = kNone;       // the last of them; kNone: none has run
    Stop stop;                   // of to_node and to_end
    std::int64_t kept = 0;       // bytes kept of before the step
    std::int32_t stand_ins = 0;  // inputs and state that the file lacks
    LookedAt seen;               // value kNone: nothing was asked for
  };

  // The thread calls `wake` when a result is there; `wake` must only post a message.
  explicit PausedStep(std::function<void()> wake) : task_(std::move(wake)) {}
  ~PausedStep() { end(); }

  // Begins a step of the plan, before its first node, and makes the request. `path` is the file that the values come from.
  void begin(std::shared_ptr<const PlanModel> model, std::string path, const StepRequest& first);
  // REQUIRES: begun(), and not busy(). At the end of a step, `next` and `to_end` begin the step that follows it.
  void go(const StepRequest& request);
  void pause();
  void end();

  bool begun() const { return run_ != nullptr; }
  const PlanModel* model() const;  // whose step it is; null if none has begun
  bool busy() const { return task_.busy(); }
  std::optional<Result> take() { return task_.take(); }
  std::optional<Result> wait() { return task_.wait(); }  // blocks; nothing if there is no request

 private:
  struct Run;
  void start(const StepRequest& request);

  std::shared_ptr<Run> run_;
  AwaitedTask<Result> task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
