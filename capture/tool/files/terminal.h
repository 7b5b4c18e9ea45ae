// The terminal while a command runs: progress lines, Ctrl-C, and other signals that end the process.
#pragma once

#include <tapedeck/engine/ir/interruption.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tapedeck::tool {

// One part of the work: a progress line on stderr while it lives, if stderr is a terminal, and with --verbose a line at its end
// that says how long it took.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void at(double fraction);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int last_ = -1;
};

// While it lives, and once a second has passed, a terminal shows that the command is at work and for how long, where no part of
// the work shows its progress. One at a time.
class Working {
 public:
  explicit Working(std::string what);
  ~Working();
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  void tick();

  std::string what_;
  std::mutex waiting_;
  std::condition_variable ended_signal_;
  bool ended_ = false;
  std::thread thread_;
};

// Removes the progress line, so that an answer can be printed to the same terminal.
void clear_progress();

// A remark on stderr that is no error: "tapedeck: ...". Not with --quiet.
void note(const std::string& text);

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

// While it lives, the signals that would end this process go to its child `pid` instead, which has the terminal. One at a time.
// Destroy it before the child is reaped.
class PassSignalsTo {
 public:
  explicit PassSignalsTo(int pid);
  ~PassSignalsTo();
  PassSignalsTo(const PassSignalsTo&) = delete;
  PassSignalsTo& operator=(const PassSignalsTo&) = delete;
};

void catch_signals();
void pass_signals_on();

}  // namespace tapedeck::tool
