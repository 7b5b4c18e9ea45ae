// Makes plans in the background, so that a dragged budget is answered at once and the UI never waits.
//
//     problem -----> draft search (milliseconds) ---> plans that are being improved --+
//        |                                                                            +---> take()
//        +---------> full search (seconds) ---------> plans that are final -----------+
//                                                       |
//                                                       +---> archive: budgets that nobody asked for yet, while idle
//
// Two threads work: one prepares the full search, and the other answers budgets. A final plan is the plan that make_plan gives,
// but for addresses. A newer budget of the same problem never cancels what it needs itself: the searches. A plan that is being
// made from the draft is finished and shown; a plan from the full search gives way to the newer budget. Addresses stay where
// they were while the peak stays: a draft whose peak is that of the plan before, and which costs no less, gives way to that
// plan, and a final plan that differs from the shown one in addresses only takes its addresses. Only one thread (the UI's) may
// call request(), take() and cancel().
#pragma once

#include <tapedeck/viewer/planning/plan_archive.h>
#include <tapedeck/viewer/planning/plan_source.h>
#include <tapedeck/viewer/planning/prepared_search.h>
#include <tapedeck/viewer/planning/told_progress.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tapedeck::viewer {

class PlanWorker {
 public:
  struct Result {
    std::uint64_t number = 0;                // of the request
    std::shared_ptr<const PlanModel> model;  // null if planning failed
    std::string error;
    bool improving = false;  // a final plan for the same request follows
  };

  // The worker's threads call `wake` when a result or a point of the curve is there, and at most ten times a second to tell of
  // progress. `wake` must only post a message.
  // `fills`: plan budgets that nobody asked for while nobody waits.
  explicit PlanWorker(std::function<void()> wake, MakeSource make_source = search_plans, bool fills = true);
  ~PlanWorker();  // cancels and joins
  PlanWorker(const PlanWorker&) = delete;

  // Asks for the plan of a problem under a budget; it replaces the request before. Problems are told apart by their address.
  // The searches of the last few problems are kept until cancel().
  std::uint64_t request(std::shared_ptr<const PlanProblem> problem, const Budget& budget);
  // Prepares the searches of a problem, and fills its archive, without asking for a plan. `shown`: a plan of it that is shown
  // already; may be null.
  void prepare(std::shared_ptr<const PlanProblem> problem, std::shared_ptr<const PlanModel> shown = nullptr);
  // Keeps a search that somebody else has made of its problem, so that a request for the problem need not make it again.
  void adopt(std::unique_ptr<PreparedSearch> search);
  void cancel();  // drops the request and the problem

  std::optional<Result> take();  // the newest result of the newest request, once
  bool busy() const;             // true if the newest request has no final result yet, or it was not taken
  double progress() const { return progress_.share(); }  // of the full search, 0 to 1
  // Blocks until the newest request has its final result, and takes it. Only for unattended rendering, which has no UI to
  // block.
  std::optional<Result> wait();

  std::vector<KnownPlan> known() const;               // of the newest problem, ascending by budget
  std::shared_ptr<const PlanModel> keep_all() const;  // the plan that keeps everything; null while it is not known
  void pause_filling(bool paused);                    // while paused, nothing is planned that nobody asked for
  bool fills() const;  // true while budgets that nobody asked for are planned, or the search is prepared

 private:
  struct Job;      // a problem with its searches
  struct Request;  // a budget, and how far it is answered
  enum class Step : std::uint8_t { none, draft, final_plan, fill };

  void prepare_searches();  // runs in one thread
  void answer_requests();   // runs in the other
  void start(std::shared_ptr<const PlanProblem> problem);
  void keep_former(std::shared_ptr<Job> job);
  Step next_step() const;
  void do_step(Step step, std::unique_lock<std::mutex>& lock);
  void answer_from_draft(std::unique_lock<std::mutex>& lock);
  void answer_from_search(std::unique_lock<std::mutex>& lock);
  void fill_archive(std::unique_lock<std::mutex>& lock);
  void deliver(Result result);

  std::function<void()> wake_;
  MakeSource make_source_;
  const bool fills_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Job> job_;                 // of the newest problem; null: none
  std::deque<std::shared_ptr<Job>> former_;  // problems whose search is prepared: an undone wish comes back at once
  std::unique_ptr<Request> request_;
  std::optional<Result> done_;
  std::uint64_t numbers_ = 0;
  bool quit_ = false, paused_ = false;
  bool answered_ = false;  // something was delivered since cancel()
  ToldProgress progress_;  // a search tells of it in both threads
  std::thread preparing_, answering_;
};

}  // namespace tapedeck::viewer
