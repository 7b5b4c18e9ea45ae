#include <tapedeck/viewer/planning/paused_step.h>

#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/planning/available_memory.h>
#include <tapedeck/viewer/planning/measure_replay.h>
#include <tapedeck/viewer/planning/replay_values.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

// The executor is of the thread of the task alone.
struct PausedStep::Run {
  std::shared_ptr<const PlanModel> model;
  std::string path;
  std::atomic<bool> pause{false};
  ReplayValues values;  // the state is bound, so they outlive the executor
  std::unique_ptr<Executor> executor;
  std::vector<NodeId> order;  // in which one thread runs the plan
  bool is_at_end = false;

  // How many nodes of the step have run. A step that failed has none.
  std::int32_t done() const {
    const auto all = static_cast<std::int32_t>(order.size());
    return is_at_end ? all : executor->nodes_left() == 0 ? 0 : all - executor->nodes_left();
  }
  void prepare();
  void begin_step();
  void move(const StepRequest& request, Result* result);
  std::int32_t place_behind(const StepRequest& request) const;
  Breakpoints breakpoints(const StepRequest& request) const;
  LookedAt look(ValueId v) const;
  void note_place(Result* result) const;
};

void PausedStep::Run::prepare() {
  if (executor) return;
  const Plan& plan = model->plan();
  require_memory("a replay of this plan", bytes_to_replay(plan), available_memory_bytes());
  values = replay_values(path, model->graph());
  for (const Segment& s : plan.segments) order.insert(order.end(), s.nodes.begin(), s.nodes.end());
  auto made = std::make_unique<Executor>(plan, ExecutorOptions{std::max(plan.threads, 1), "cpu"});
  set_values(made.get(), values);
  made->keep_steps();
  executor = std::move(made);
  begin_step();
}

void PausedStep::Run::begin_step() {
  executor->step(0);
  is_at_end = false;
}

void PausedStep::Run::move(const StepRequest& request, Result* result) {
  if (request.move == StepMove::stay) return;
  if (request.move == StepMove::back) {
    if (done() > 0) executor->back(1);
  } else if (const std::int32_t beyond = done() - place_behind(request); beyond > 0 && request.move == StepMove::to_node) {
    executor->back(beyond);
  } else {
    if (executor->nodes_left() == 0) begin_step();
    result->stop = executor->run_until(breakpoints(request));
  }
  is_at_end = executor->nodes_left() == 0;
}

// How many nodes have run when the step stands behind the node of the request.
std::int32_t PausedStep::Run::place_behind(const StepRequest& request) const {
  return static_cast<std::int32_t>(std::find(order.begin(), order.end(), request.node) - order.begin()) + 1;
}

Breakpoints PausedStep::Run::breakpoints(const StepRequest& request) const {
  Breakpoints at{.nan = request.stops_at_nan, .pause = &pause};
  if (request.move == StepMove::to_node) at.nodes = {request.node};
  if (request.move == StepMove::next) at.nodes = order;
  if (request.move != StepMove::next && !request.stops_at.empty()) at.names = {request.stops_at};
  return at;
}

LookedAt PausedStep::Run::look(ValueId v) const {
  try {
    return look_at(v, executor->inspect(v));
  } catch (const std::exception& error) {
    LookedAt nothing;
    nothing.value = v;
    nothing.error = error.what();
    return nothing;
  }
}

void PausedStep::Run::note_place(Result* result) const {
  result->done = done();
  result->behind = result->done == 0 ? kNone : order[static_cast<std::size_t>(result->done) - 1];
  result->kept = executor->kept_bytes();
  result->stand_ins = values.stand_ins;
}

void PausedStep::begin(std::shared_ptr<const PlanModel> model, std::string path, const StepRequest& first) {
  end();
  run_ = std::make_shared<Run>();
  run_->model = std::move(model);
  run_->path = std::move(path);
  start(first);
}

void PausedStep::go(const StepRequest& request) { start(request); }

void PausedStep::start(const StepRequest& request) {
  run_->pause = false;
  task_.start([run = run_, request](const std::atomic<bool>&) {
    Result result;
    run->prepare();
    result.begun = true;
    try {
      run->move(request, &result);
    } catch (const std::exception& error) {
      result.error = error.what();
      run->is_at_end = false;
    }
    run->note_place(&result);
    if (request.value != kNone) result.seen = run->look(request.value);
    return result;
  });
}

void PausedStep::pause() {
  if (run_) run_->pause = true;
}

void PausedStep::end() {
  pause();
  task_.cancel();
  if (run_) release_later(std::exchange(run_, nullptr));
}

const PlanModel* PausedStep::model() const { return run_ ? run_->model.get() : nullptr; }

}  // namespace tapedeck::viewer
