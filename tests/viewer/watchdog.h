// Finds work in the UI thread: the times between two passes of the event loop while it runs.
#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>

#include <algorithm>

namespace tapedeck::viewer {

class Watchdog {
 public:
  // Times longer than `bound` milliseconds count as blocks.
  explicit Watchdog(double bound = 16) : bound_(bound) {
    clock_.start();
    timer_.setInterval(1);
    QObject::connect(&timer_, &QTimer::timeout, [this] { note(); });
    timer_.start();
  }
  double longest() const { return longest_; }  // in milliseconds
  int blocks() const { return blocks_; }
  void restart() {
    longest_ = 0;
    blocks_ = 0;
    clock_.restart();
  }

 private:
  void note() {
    const double ms = static_cast<double>(clock_.nsecsElapsed()) / 1e6;
    longest_ = std::max(longest_, ms);
    if (ms > bound_) ++blocks_;
    clock_.restart();
  }

  double bound_;
  QTimer timer_;
  QElapsedTimer clock_;
  double longest_ = 0;
  int blocks_ = 0;
};

}  // namespace tapedeck::viewer
