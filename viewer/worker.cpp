#include <tapedeck/viewer/worker.h>

#include <exception>
#include <utility>

namespace tapedeck::viewer {

PlanWorker::PlanWorker(std::function<void()> wake, Solve solve) : wake_(std::move(wake)), solve_(std::move(solve)) {
  if (!solve_) solve_ = [this](const auto& graph, const PlanOptions& options) { return plans_.plan(graph, options); };
  thread_ = std::thread([this] { run(); });
}

PlanWorker::~PlanWorker() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
    cancel_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t PlanWorker::request(std::shared_ptr<const Graph> graph, const PlanOptions& options) {
  std::lock_guard lock(mutex_);
  if (!plans_.prepares(graph.get())) {
    cancel_ = true;
    progress_ = 0;
  }
  waiting_ = Job{++newest_, std::move(graph), options};
  done_.reset();
  changed_.notify_all();
  return newest_;
}

void PlanWorker::cancel() {
  std::lock_guard lock(mutex_);
  waiting_.reset();
  done_.reset();
  solved_ = ++newest_;  // the plan in progress is out of date now
  cancel_ = true;
}

std::optional<PlanWorker::Result> PlanWorker::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(done_, std::nullopt);
}

bool PlanWorker::busy() const {
  std::lock_guard lock(mutex_);
  return solved_ != newest_ || done_.has_value();
}

std::optional<PlanWorker::Result> PlanWorker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return solved_ == newest_; });
  return std::exchange(done_, std::nullopt);
}

PlanWorker::Result PlanWorker::solve(const Job& job) {
  PlanOptions options = job.options;
  options.cancel = &cancel_;
  options.progress = [&](double share) {
    progress_ = share;
    wake_();
  };
  Result result;
  result.number = job.number;
  try {
    result.model = PlanModel::of(solve_(job.graph, options));
  } catch (const std::exception& error) {
    result.error = error.what();
  } catch (...) {
    result.error = "an error of an unknown kind";
  }
  return result;
}

void PlanWorker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || waiting_; });
    if (quit_) return;
    const Job job = *std::exchange(waiting_, std::nullopt);
    cancel_ = false;
    lock.unlock();
    Result result = solve(job);
    lock.lock();
    if (job.number != newest_) continue;
    solved_ = job.number;
    done_ = std::move(result);
    changed_.notify_all();
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace tapedeck::viewer
