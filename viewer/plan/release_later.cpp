#include <tapedeck/viewer/plan/release_later.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBC__  // the headers above tell
#include <malloc.h>
#endif

namespace tapedeck::viewer {

namespace {

// The allocator of glibc keeps what is freed, and a large plan is a gigabyte of small pieces. What small plans leave is used
// again soon. The allocator visits all free pieces when it is asked how much is free, so it is asked when nothing was handed
// over for a moment.
constexpr std::chrono::milliseconds kMoment(200);

void give_back_free_memory() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  constexpr std::size_t kMuch = std::size_t{256} << 20;
  if (mallinfo2().fordblks > kMuch) malloc_trim(0);
#endif
}

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
    const auto has_work = [&] { return quit_ || !waiting_.empty(); };
    std::unique_lock lock(mutex_);
    while (true) {
      if (!changed_.wait_for(lock, kMoment, has_work)) {
        lock.unlock();
        give_back_free_memory();
        lock.lock();
        changed_.wait(lock, has_work);
      }
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
