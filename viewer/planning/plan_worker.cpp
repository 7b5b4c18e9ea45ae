// The two threads of the worker; see plan_worker.h. A job and a request are replaced under the lock. A thread that works
// without the lock holds its job by a shared pointer, and looks afterwards whether the job is still the newest. The searches of
// a large graph take long to destroy, so the UI thread leaves that to another thread (release_later.h).
#include <tapedeck/viewer/planning/plan_worker.h>

#include <tapedeck/capture/plan/wished_values.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/planning/giving_way.h>
#include <tapedeck/viewer/planning/same_addresses.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace tapedeck::viewer {

namespace {

std::shared_ptr<const PlanModel> model_of(Plan plan, const PlanProblem& problem,
                                          decltype(PlanModel::of)& made = PlanModel::of) {
  return made(std::move(plan), problem.options.costs, with_program_wishes(*problem.graph, problem.options.wishes));
}

}  // namespace

struct PlanWorker::Job {
  explicit Job(std::shared_ptr<const PlanProblem> asked) : problem(std::move(asked)), archive(problem->graph->nodes.size()) {}

  std::shared_ptr<const PlanProblem> problem;
  std::atomic<bool> cancel_draft{false};
  std::shared_ptr<std::atomic<bool>> cancel_full = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<PlanSource> draft;  // of the answering thread
  std::unique_ptr<PlanSource> full;   // of the preparing thread until it is there, then of the answering thread
  std::string error;                  // why there is no full search
  std::optional<Plan> known_plan;     // that an adopted search has made for `known_budget`; of the answering thread
  std::int64_t known_budget = -1;
  bool has_no_draft = false;              // the draft failed; the full search says why
  bool interruptible = false;             // the full search makes a plan that a newer request may cancel
  PlanArchive archive;                    // under the lock
  std::shared_ptr<const PlanModel> last;  // the plan that was delivered last; under the lock

  bool prepared() const { return full || !error.empty(); }
  void stop() { cancel_draft = *cancel_full = true; }
  // The plan before instead of a draft, where the draft would only move addresses.
  std::shared_ptr<const PlanModel> steady(std::shared_ptr<const PlanModel> draft, std::int64_t budget) const {
    if (!draft || !last || !fits(*last, budget)) return draft;
    const Plan &before = last->plan(), &next = draft->plan();
    return before.peak_bytes == next.peak_bytes && before.cost_us <= next.cost_us ? last : draft;
  }
  // From the full search. REQUIRES that it is there.
  Plan plan(std::int64_t budget) {
    if (known_plan && budget == known_budget) return *std::exchange(known_plan, std::nullopt);
    return full->plan(budget);
  }
  // The final plan at the addresses that are shown, where it differs from the shown plan in nothing else.
  std::shared_ptr<const PlanModel> at_shown_addresses(std::shared_ptr<const PlanModel> final,
                                                      const std::shared_ptr<const PlanModel>& shown) const {
    if (!shown || shown == final) return final;
    std::optional<Plan> moved = with_addresses_of(shown->plan(), final->plan());
    return moved ? model_of(std::move(*moved), *problem) : final;
  }
  // Whether the draft search is worth making while nobody waits: the first budget of a drag needs it at once.
  bool wants_draft() const { return !draft && !has_no_draft && !prepared(); }
  // REQUIRES: called by the answering thread, without the lock.
  void make_draft(const MakeSource& make) {
    if (!draft) draft = make(*problem, {SearchEffort::draft, &cancel_draft, {}});
  }
  // The same. If it fails, the full search fails too, and says why.
  void try_draft(const MakeSource& make) {
    try {
      make_draft(make);
    } catch (const Cancelled&) {
      // Another problem came; this one may come back.
    } catch (...) {
      has_no_draft = true;
    }
  }
  std::optional<std::int64_t> next_to_fill() const {
    return full ? archive.next_to_fill(full->floor(), full->keep_all_peak()) : std::nullopt;
  }
};

struct PlanWorker::Request {
  std::uint64_t number = 0;
  Budget budget;
  std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
  bool drafted = false, final = false;
  bool waited_for = false;  // somebody waits for the final plan

  // While budgets come faster than this, drafts answer them: a final plan would be cancelled by the next one.
  std::chrono::steady_clock::time_point rests_at() const { return asked + std::chrono::milliseconds(60); }
  bool rests() const { return waited_for || std::chrono::steady_clock::now() >= rests_at(); }
};

namespace {

constexpr std::size_t kMostFormer = 2;

constexpr std::size_t kManyNodes = 20'000;  // of a graph whose first picture does not wait for the tables

// The limits of the full search are those of the graph, so that the scale of the pictures is the same for drafts.
void take_limits(const PlanSource& full, Plan* plan) {
  plan->keep_all_peak_bytes = full.keep_all_peak();
  plan->floor_bytes = full.floor();
}

std::string message_of_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an error of an unknown kind";
  }
}

}  // namespace

PlanWorker::PlanWorker(std::function<void()> wake, MakeSource make_source, bool fills)
    : wake_(std::move(wake)), make_source_(std::move(make_source)), fills_(fills) {
  preparing_ = std::thread([this] { prepare_searches(); });
  answering_ = std::thread([this] { answer_requests(); });
}

PlanWorker::~PlanWorker() {
  cancel();
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  preparing_.join();
  answering_.join();
}

void PlanWorker::start(std::shared_ptr<const PlanProblem> problem) {
  if (job_ && job_->problem == problem) return;
  std::shared_ptr<Job> before = std::exchange(job_, nullptr);
  const auto same = [&](const std::shared_ptr<Job>& job) { return job->problem == problem; };
  const auto known = std::find_if(former_.begin(), former_.end(), same);
  if (known != former_.end()) {
    job_ = *known;
    former_.erase(known);
    job_->cancel_draft = *job_->cancel_full = false;
  } else {
    progress_.reset();
    job_ = std::make_shared<Job>(std::move(problem));
  }
  if (!before) return;
  before->stop();
  keep_former(std::move(before));  // a copy here could be the last one, and this thread would destroy the search
}

void PlanWorker::keep_former(std::shared_ptr<Job> job) {
  if (!job->full) return release_later(std::move(job));
  former_.push_front(std::move(job));
  if (former_.size() <= kMostFormer) return;
  release_later(std::exchange(former_.back(), nullptr));
  former_.pop_back();
}

std::uint64_t PlanWorker::request(std::shared_ptr<const PlanProblem> problem, const Budget& budget) {
  std::lock_guard lock(mutex_);
  start(std::move(problem));
  if (job_->interruptible) *job_->cancel_full = true;
  request_ = std::make_unique<Request>(Request{++numbers_, budget});
  done_.reset();
  changed_.notify_all();
  return numbers_;
}

void PlanWorker::prepare(std::shared_ptr<const PlanProblem> problem, std::shared_ptr<const PlanModel> shown) {
  std::lock_guard lock(mutex_);
  start(std::move(problem));
  if (shown) job_->last = std::move(shown);
  request_.reset();
  done_.reset();
  changed_.notify_all();
}

void PlanWorker::adopt(std::unique_ptr<PreparedSearch> search) {
  auto job = std::make_shared<Job>(std::move(search->problem));
  job->cancel_full = std::move(search->cancel);
  job->full = std::move(search->source);
  job->known_plan = std::move(search->plan);
  job->known_budget = search->budget;
  std::lock_guard lock(mutex_);
  keep_former(std::move(job));
}

void PlanWorker::cancel() {
  std::lock_guard lock(mutex_);
  answered_ = false;
  if (job_) job_->stop();
  release_later(std::exchange(job_, nullptr));
  for (std::shared_ptr<Job>& job : former_) release_later(std::exchange(job, nullptr));
  former_.clear();
  request_.reset();
  done_.reset();
  changed_.notify_all();
}

std::optional<PlanWorker::Result> PlanWorker::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(done_, std::nullopt);
}

bool PlanWorker::busy() const {
  std::lock_guard lock(mutex_);
  return (request_ && !request_->final) || done_.has_value();
}

std::optional<PlanWorker::Result> PlanWorker::wait() {
  std::unique_lock lock(mutex_);
  if (request_) request_->waited_for = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !request_ || request_->final; });
  return std::exchange(done_, std::nullopt);
}

std::vector<KnownPlan> PlanWorker::known() const {
  std::lock_guard lock(mutex_);
  return job_ ? job_->archive.points() : std::vector<KnownPlan>{};
}

std::shared_ptr<const PlanModel> PlanWorker::keep_all() const {
  std::lock_guard lock(mutex_);
  return job_ && job_->full ? job_->archive.find(job_->full->keep_all_peak()) : nullptr;
}

// The plan under way that nobody asked for is given up, and made another time.
void PlanWorker::pause_filling(bool paused) {
  std::lock_guard lock(mutex_);
  paused_ = paused;
  const bool is_asked = request_ && !request_->final;
  if (paused && !is_asked && job_ && job_->interruptible) *job_->cancel_full = true;
  changed_.notify_all();
}

bool PlanWorker::fills() const {
  std::lock_guard lock(mutex_);
  if (!job_) return false;
  if (!job_->prepared()) return true;
  return fills_ && job_->next_to_fill().has_value();
}

void PlanWorker::prepare_searches() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || (job_ && !job_->prepared()); });
    if (quit_) return;
    const std::shared_ptr<Job> job = job_;
    lock.unlock();
    std::unique_ptr<PlanSource> made;
    std::string error;
    try {
      const SourceWork work{SearchEffort::full, job->cancel_full.get(), [this](double share) { progress_.tell(share, wake_); }};
      give_way([&] { made = make_source_(*job->problem, work); });
    } catch (...) {
      error = message_of_exception();
    }
    lock.lock();
    if (job != job_) continue;  // it was cancelled
    job->full = std::move(made);
    if (!job->full) job->error = error;
    changed_.notify_all();
  }
}

// A request is answered from the draft once, as long as there is no final plan. Where the full search is there too, the draft
// answers the budgets of a drag, which come faster than final plans.
PlanWorker::Step PlanWorker::next_step() const {
  if (!job_) return Step::none;
  if (request_ && !request_->final) {
    if (!request_->drafted && !job_->has_no_draft && job_->error.empty()) return Step::draft;
    return job_->prepared() && request_->rests() ? Step::final_plan : Step::none;
  }
  return fills_ && !paused_ && (job_->wants_draft() || job_->next_to_fill()) ? Step::fill : Step::none;
}

void PlanWorker::answer_requests() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (quit_) return;
    if (const Step step = next_step(); step != Step::none)
      do_step(step, lock);
    else if (job_ && job_->prepared() && request_ && !request_->final)
      changed_.wait_until(lock, request_->rests_at());
    else
      changed_.wait(lock);
  }
}

void PlanWorker::do_step(Step step, std::unique_lock<std::mutex>& lock) {
  switch (step) {
    case Step::draft:
      return answer_from_draft(lock);
    case Step::final_plan:
      return answer_from_search(lock);
    case Step::fill:
      return fill_archive(lock);
    case Step::none:
      return;
  }
}

// REQUIRES the lock; wakes without it would be as good, but `wake` only posts a message.
void PlanWorker::deliver(Result result) {
  answered_ = true;
  if (result.model) job_->last = result.model;
  done_ = std::move(result);
  changed_.notify_all();
  wake_();
}

void PlanWorker::answer_from_draft(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> job = job_;
  const Request asked = *request_;
  request_->drafted = true;
  if (asked.budget.bytes >= 0)
    if (auto known = job->archive.cheapest_within(asked.budget.bytes))
      deliver({asked.number, job->steady(std::move(known), asked.budget.bytes), {}, true});
  const bool first = !answered_ && job->problem->graph->nodes.size() >= kManyNodes;
  const bool knows_limits = job->full != nullptr;  // once it is there, only this thread uses it
  if (knows_limits && job->known_plan && job->full->bytes_of(asked.budget) == job->known_budget) return;
  lock.unlock();
  std::shared_ptr<const PlanModel> model;
  std::int64_t budget = -1;
  bool failed = false;
  try {
    job->make_draft(make_source_);
    budget = job->draft->bytes_of(asked.budget);
    Plan plan = job->draft->plan(budget);
    if (knows_limits) take_limits(*job->full, &plan);
    model = model_of(std::move(plan), *job->problem, first ? PlanModel::pictures_of : PlanModel::of);
  } catch (...) {
    failed = true;  // the full search fails too, and its error is the one to show
  }
  lock.lock();
  if (job != job_) return;
  job->has_no_draft = failed;
  const bool is_newest = request_ && request_->number == asked.number;
  if (is_newest && request_->final) return;
  // An older answer is shown as well: while a person drags, each picture is a plan for a budget that was just passed.
  if (budget >= 0)
    if (auto known = job->archive.cheapest_within(budget))
      if (!model || !model->plan().feasible || known->plan().cost_us <= model->plan().cost_us) model = std::move(known);
  if (!model || (budget >= 0 && !model->plan().feasible)) return;
  model = job->steady(std::move(model), budget);
  deliver({asked.number, model, {}, true});
  if (model->is_complete()) return;
  lock.unlock();
  model->complete();
  lock.lock();
  wake_();
}

void PlanWorker::answer_from_search(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> job = job_;
  const Request asked = *request_;
  Result result{asked.number, nullptr, job->error, false};
  if (job->full) {
    const std::int64_t budget = job->full->bytes_of(asked.budget);
    const std::shared_ptr<const PlanModel> shown = job->last, known = job->archive.find(budget);
    *job->cancel_full = false;
    job->interruptible = true;
    lock.unlock();
    try {
      result.model = job->at_shown_addresses(known ? known : model_of(job->plan(budget), *job->problem), shown);
    } catch (...) {
      result.error = message_of_exception();
    }
    lock.lock();
    job->interruptible = false;
    if (job == job_ && result.model) job->archive.put(budget, result.model);
  }
  if (job != job_ || !request_ || request_->number != asked.number) return;
  request_->final = true;
  deliver(std::move(result));
}

void PlanWorker::fill_archive(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> job = job_;
  if (job->wants_draft()) {
    lock.unlock();
    job->try_draft(make_source_);
    lock.lock();
    return;
  }
  const std::int64_t budget = *job->next_to_fill();
  *job->cancel_full = false;
  job->interruptible = true;
  lock.unlock();
  std::shared_ptr<const PlanModel> model;
  bool failed = false;
  try {
    model = model_of(job->full->plan(budget), *job->problem);
  } catch (const Cancelled&) {
    // A request came; this budget is planned another time.
  } catch (...) {
    failed = true;  // nobody asked for this plan, so nobody is told
  }
  lock.lock();
  job->interruptible = false;
  if (model) job->archive.put(budget, std::move(model));
  if (failed) job->archive.stop_filling();
  if (job != job_) return;
  wake_();
}

}  // namespace tapedeck::viewer
