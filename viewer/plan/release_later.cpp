#include <tapedeck/viewer/plan/release_later.h>

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
// again soon.
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
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return quit_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::vector<std::shared_ptr<const void>> taken = std::exchange(waiting_, {});
      lock.unlock();
      taken.clear();  // destructors may hand over further references
      give_back_free_memory();
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
