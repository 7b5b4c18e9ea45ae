// Work in the background whose result the UI takes when it is there. A newer request drops the one before, and a dropped
// request delivers nothing.
//
//     start(work) ----> thread: work ----> wake() ----> take()
#pragma once

#include <tapedeck/viewer/planning/background_task.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace tapedeck::viewer {

// `Result` can be made empty, and has a text `error`, which says why there is nothing else in it. Only one thread (the UI's)
// may use the task.
template <class Result>
class AwaitedTask {
 public:
  using Work = std::function<Result(const std::atomic<bool>& cancelled)>;

  // The thread of the task calls `wake` when a result is there; `wake` must only post a message.
  explicit AwaitedTask(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Drops the request before. An exception of the work becomes the error of its result.
  void start(Work work) {
    std::uint64_t number = 0;
    {
      std::lock_guard lock(mutex_);
      number = wanted_ = ++numbers_;
      done_.reset();
    }
    task_.run([this, number, work = std::move(work)](const std::atomic<bool>& cancelled) {
      Result result;
      try {
        result = work(cancelled);
      } catch (const std::exception& error) {
        result.error = error.what();
      } catch (...) {
        result.error = "an error of an unknown kind";
      }
      deliver(number, std::move(result));
    });
  }

  // Drops the request.
  void cancel() {
    {
      std::lock_guard lock(mutex_);
      wanted_ = 0;
      done_.reset();
    }
    task_.cancel();
  }

  // A request was started and is neither taken nor dropped.
  bool busy() const {
    std::lock_guard lock(mutex_);
    return wanted_ != 0;
  }

  // The result, once.
  std::optional<Result> take() {
    std::lock_guard lock(mutex_);
    if (done_) wanted_ = 0;
    return std::exchange(done_, std::nullopt);
  }

  // Blocks until the result is there. Nothing if there is no request.
  std::optional<Result> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ || wanted_ == 0; });
    wanted_ = 0;
    return std::exchange(done_, std::nullopt);
  }

 private:
  void deliver(std::uint64_t number, Result result) {
    std::lock_guard lock(mutex_);
    if (number != wanted_) return;
    done_ = std::move(result);
    wake_();
    changed_.notify_all();
  }

  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t numbers_ = 0, wanted_ = 0;  // 0: no request
  std::optional<Result> done_;
  BackgroundTask task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
