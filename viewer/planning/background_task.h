// Work of a panel in the background, on one thread. A newer piece of work replaces an older one, and the UI never waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tapedeck::viewer {

// Only one thread (the UI's) may call run() and cancel(). The work hands over its results by itself.
class BackgroundTask {
 public:
  // The flag becomes true when the work is no longer wanted. An exception of the work ends it, and nobody is told.
  using Work = std::function<void(const std::atomic<bool>& cancelled)>;

  enum class Pace : std::uint8_t { ordinary, gives_way };  // to threads that draw, where it works for seconds (giving_way.h)
  explicit BackgroundTask(Pace pace = Pace::ordinary);
  ~BackgroundTask();  // cancels and joins
  BackgroundTask(const BackgroundTask&) = delete;

  void run(Work work);  // cancels the work before it
  void cancel();
  bool busy() const;
  void wait();  // blocks until the newest work is done; for unattended pictures

 private:
  struct Piece {
    Work work;
    std::atomic<bool> cancelled{false};
  };
  void loop(Pace pace);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Piece> waiting_, running_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace tapedeck::viewer
