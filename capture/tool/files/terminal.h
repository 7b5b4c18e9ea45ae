// The terminal while a command runs: progress lines, Ctrl-C, and other signals that end the process.
#pragma once

#include <tapedeck/engine/ir/interruption.h>

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

// Set by Ctrl-C once catch_signals() has been called, before any other thread is started. A second Ctrl-C, SIGTERM, SIGHUP,
// SIGQUIT and SIGXCPU end the process at once, and leave no temporary files. Programs started from here get their signals if
// pass_signals_on() is called between fork and exec.
const std::atomic<bool>& interrupted();

// While it lives, Ctrl-C ends the work of the command: it throws Cancelled (engine/ir/interruption.h). For commands that have
// nothing to show for work that is half done.
class StopAtInterrupt {
 private:
  HeedFlag heed_{interrupted()};
};

void catch_signals();
void pass_signals_on();

}  // namespace tapedeck::tool
