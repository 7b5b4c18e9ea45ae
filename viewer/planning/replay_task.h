// Measures in the background, so that the UI thread never waits: one plan, a curve of plans, or the profile that a file holds.
//
//     measure(...) ----> thread: read the values, replay, take medians ----> wake() ----> take()
//     a newer request or cancel(): the one before is dropped, and nothing is delivered for it
#pragma once

#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/planning/measure_replay.h>
#include <tapedeck/viewer/planning/told_progress.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// Only one thread (the UI's) may use it.
class ReplayTask {
 public:
  struct Result {
    std::shared_ptr<const MeasuredRun> run;  // of measure() and read_profile()
    std::vector<MeasuredPoint> points;       // of measure_curve()
    std::string error;                       // why there is neither
  };

  // The thread of the task calls `wake` when a result is there, and at most ten times a second to tell of progress. `wake` must
  // only post a message.
  explicit ReplayTask(std::function<void()> wake) : wake_(std::move(wake)), task_(wake_) {}

  // `path` is the file that the values come from.
  void measure(std::shared_ptr<const PlanModel> model, std::string path);
  // Plans of the problem under several budgets, `shown` among them (-1: none).
  void measure_curve(std::shared_ptr<const PlanProblem> problem, std::string path, std::int64_t shown);
  // The profile that `tapedeck replay --profile --save` wrote into a .tape file. It must know a node of the model.
  void read_profile(std::shared_ptr<const PlanModel> model, std::string path);
  void cancel() { task_.cancel(); }

  bool busy() const { return task_.busy(); }  // a request is neither taken nor dropped
  double progress() const { return progress_.share(); }
  std::optional<Result> take() { return task_.take(); }  // once
  std::optional<Result> wait() { return task_.wait(); }  // blocks until the result is there; nothing if there is no request

  void set_effort(const MeasureEffort& effort) { effort_ = effort; }  // of requests from now on

 private:
  void start(std::function<Result(const MeasureWatch&)> work);

  std::function<void()> wake_;
  MeasureEffort effort_;
  ToldProgress progress_;
  AwaitedTask<Result> task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
