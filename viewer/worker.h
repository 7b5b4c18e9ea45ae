// Makes plans in the background, on one thread. A newer request replaces an older one, and the UI thread never waits.
//
// Only one thread (the UI's) may call request() and take(). A request cancels the plan in progress and drops the waiting
// request; but it does not cancel the preparations for all budgets of the same graph, which it needs itself. Every request gets
// a number, and take() returns the result of the newest request only.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/viewer/budget_plans.h>
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

// The worker of one window.
class PlanWorker {
 public:
  struct Result {
    std::uint64_t number = 0;
    std::shared_ptr<const PlanModel> model;  // null if planning failed
    std::string error;
  };
  using Solve = std::function<Plan(const std::shared_ptr<const Graph>&, const PlanOptions&)>;

  // The worker's thread calls `wake` when a result is ready, and from time to time during planning. `wake` must only post a
  // message. Without `solve`, plans are those of BudgetPlans.
  explicit PlanWorker(std::function<void()> wake, Solve solve = {});
  ~PlanWorker();  // cancels and joins
  PlanWorker(const PlanWorker&) = delete;

  std::uint64_t request(std::shared_ptr<const Graph> graph, const PlanOptions& options);
  void cancel();                 // drops all requests
  std::optional<Result> take();  // the result of the newest request, once
  bool busy() const;             // true if a request has no taken result yet
  double progress() const { return progress_.load(); }
  // Blocks until the newest request is solved, and takes its result. Only for unattended rendering, which has no UI to block.
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
  BudgetPlans plans_;
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
