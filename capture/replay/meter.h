// Tells the caller which fraction of the cost of a step is done: one call at a time, and not too often.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace tapedeck::replay {

class Meter {
 public:
  void begin(const std::function<void(double)>* tell, double done, double total);
  bool on() const { return tell_ != nullptr; }
  // False once `tell` has thrown: it is not called again.
  bool add(double cost) noexcept;
  // Tells that all is done, if it is. Throws the exception that `tell` threw.
  void end(bool complete);

 private:
  bool say(double fraction) noexcept;

  const std::function<void(double)>* tell_ = nullptr;
  double total_ = 1;
  std::atomic<double> done_{0};
  std::mutex telling_;  // guards the members below
  std::int64_t told_ns_ = 0;
  double told_ = 0;
  std::exception_ptr thrown_;
};

std::int64_t now_ns();  // of a clock that only goes forward

}  // namespace tapedeck::replay
