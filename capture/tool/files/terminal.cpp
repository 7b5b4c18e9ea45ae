// Progress lines, and Ctrl-C as a flag that long work asks.
#include <tapedeck/capture/tool/files/terminal.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace tapedeck::tool {

namespace {

std::atomic<bool> interrupt_flag{false};

sigset_t interrupt_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

void wait_for_interrupts() {
  const sigset_t set = interrupt_signals();
  for (int signal = 0; sigwait(&set, &signal) == 0;)
    if (interrupt_flag.exchange(true)) std::_Exit(130);  // a second Ctrl-C does not wait
}

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::at(double fraction) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  const int percent = static_cast<int>(fraction * 100);
  if (!terminal || percent == last_) return;
  last_ = percent;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s %d %%", what_.c_str(), percent);
  std::fflush(stderr);
}

const std::atomic<bool>& interrupted() { return interrupt_flag; }

// No handler: it would run on the stack of a thread that computes, and oneDNN's products point the stack pointer into small
// buffers on the heap, which a signal's frame does not fit into. All threads block the signal, one waits for it.
void catch_interrupts() {
  std::signal(SIGINT, SIG_DFL);  // a shell's background jobs inherit that it is ignored
  const sigset_t set = interrupt_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_interrupts).detach();
}

void pass_interrupts_on() {
  const sigset_t set = interrupt_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tapedeck::tool
