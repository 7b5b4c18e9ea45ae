// Plans in the background: one thread, newer requests replace older ones, and the UI thread never waits.
//
// request() and take() are called by one thread (the UI's). A request cancels the one being solved and forgets the one waiting;
// each gets a number, and only the result of the newest is ever handed out.
#pragma once

#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/viewer/model/plan_model.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tapedeck::viewer {

class PlanWorker {
 public:
  struct Result {
    std::uint64_t number = 0;
    std::shared_ptr<const PlanModel> model;  // null if planning failed
    std::string error;
  };
  using Solve = std::function<Plan(const Graph&, const PlanOptions&)>;

  // `wake` is called from the worker's thread when a result waits, and now and then while solving; it must only post a message.
  explicit PlanWorker(std::function<void()> wake, Solve solve = make_plan);
  ~PlanWorker();  // cancels and joins
  PlanWorker(const PlanWorker&) = delete;

  std::uint64_t request(std::shared_ptr<const Graph> graph, const PlanOptions& options);
  void cancel();                 // forgets everything asked for
  std::optional<Result> take();  // the newest request's result, once
  bool busy() const;             // asked for and not yet taken
  double progress() const { return progress_.load(); }
  // For unattended rendering, where there is nothing else to do: blocks until the newest request is solved, then takes its
  // result.
  std::optional<Result> wait();

 private:
  struct Job {
    std::uint64_t number = 0;
    std::shared_ptr<const Graph> graph;
    PlanOptions options;
  };
  void run();
  Result solve(const Job& job);

  std::function<void()> wake_;
  Solve solve_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> waiting_;
  std::optional<Result> done_;
  std::uint64_t newest_ = 0, solved_ = 0;
  bool quit_ = false;
  std::atomic<bool> cancel_{false};
  std::atomic<double> progress_{0};
  std::thread thread_;
};

}  // namespace tapedeck::viewer
