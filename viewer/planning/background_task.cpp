#include <tapedeck/viewer/planning/background_task.h>

#include <tapedeck/viewer/planning/giving_way.h>

#include <utility>

namespace tapedeck::viewer {

BackgroundTask::BackgroundTask(Pace pace) : thread_([this, pace] { loop(pace); }) {}

BackgroundTask::~BackgroundTask() {
  cancel();
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundTask::run(Work work) {
  auto piece = std::make_shared<Piece>();
  piece->work = std::move(work);
  std::lock_guard lock(mutex_);
  if (running_) running_->cancelled = true;
  waiting_ = std::move(piece);
  changed_.notify_all();
}

void BackgroundTask::cancel() {
  std::lock_guard lock(mutex_);
  if (running_) running_->cancelled = true;
  waiting_.reset();
}

bool BackgroundTask::busy() const {
  std::lock_guard lock(mutex_);
  return waiting_ || (running_ && !running_->cancelled);
}

void BackgroundTask::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_ && !running_; });
}

void BackgroundTask::loop(Pace pace) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || waiting_; });
    if (quit_) return;
    running_ = std::exchange(waiting_, nullptr);
    const std::shared_ptr<Piece> piece = running_;
    lock.unlock();
    try {
      if (pace == Pace::gives_way)
        give_way([&] { piece->work(piece->cancelled); });
      else
        piece->work(piece->cancelled);
    } catch (...) {
      // Cancelled work ends so, too; what it had to say of an error, it has handed over.
    }
    lock.lock();
    running_.reset();
    changed_.notify_all();
  }
}

}  // namespace tapedeck::viewer
