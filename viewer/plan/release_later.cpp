#include <tapedeck/viewer/plan/release_later.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

class Releaser {
 public:
  Releaser() : thread_([this] { work(); }) {}
  ~Releaser() {
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void take(std::shared_ptr<const void> reference) {
    {
      std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(reference));
    }
    changed_.notify_all();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return quit_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::vector<std::shared_ptr<const void>> taken = std::exchange(waiting_, {});
      lock.unlock();
      taken.clear();  // destructors may hand over further references
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<const void>> waiting_;
  bool quit_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace

void release_later(std::shared_ptr<const void> reference) {
  static Releaser releaser;
  if (reference) releaser.take(std::move(reference));
}

}  // namespace tapedeck::viewer
