// The terminal while a command runs: progress lines, and Ctrl-C.
#pragma once

#include <atomic>
#include <string>

namespace tapedeck::tool {

// A progress line on stderr while it lives, if stderr is a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void at(double fraction);

 private:
  std::string what_;
  bool shown_ = false;
  int last_ = -1;
};

// Set by Ctrl-C once catch_interrupts() has been called, before any other thread is started. Programs started from here get
// their Ctrl-C if pass_interrupts_on() is called between fork and exec.
const std::atomic<bool>& interrupted();
void catch_interrupts();
void pass_interrupts_on();

}  // namespace tapedeck::tool
