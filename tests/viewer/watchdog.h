// Finds work in the UI thread: the times between two passes of the event loop while it runs, on the clock and as the time in
// which the thread worked. The second hardly depends on other programs on the machine.
#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>

#include <algorithm>
#include <ctime>

namespace tapedeck::viewer {

class Watchdog {
 public:
  // Work of more than `bound` milliseconds at once counts as a block.
  explicit Watchdog(double bound = 16) : bound_(bound) {
    clock_.start();
    timer_.setInterval(1);
    QObject::connect(&timer_, &QTimer::timeout, [this] { note(); });
    timer_.start();
  }
  double longest() const { return longest_; }            // in milliseconds
  double longest_work() const { return longest_work_; }  // of the calling thread, without the times in which it waited
  int blocks() const { return blocks_; }
  static double thread_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
  void restart() {
    longest_ = longest_work_ = 0;
    blocks_ = 0;
    worked_ = thread_ms();
    clock_.restart();
  }

 private:
  void note() {
    const double ms = static_cast<double>(clock_.nsecsElapsed()) / 1e6;
    longest_ = std::max(longest_, ms);
    const double worked = thread_ms();
    longest_work_ = std::max(longest_work_, worked - worked_);
    if (worked - worked_ > bound_) ++blocks_;
    worked_ = worked;
    clock_.restart();
  }

  double bound_;
  QTimer timer_;
  QElapsedTimer clock_;
  double longest_ = 0, longest_work_ = 0;  // in milliseconds
  double worked_ = thread_ms();
  int blocks_ = 0;
};

}  // namespace tapedeck::viewer
