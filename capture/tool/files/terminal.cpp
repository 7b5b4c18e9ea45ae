// Progress lines, Ctrl-C as a flag that long work asks, and the end by a signal, which leaves no temporary files.
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/formats/temporary_file.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace tapedeck::tool {

namespace {

std::atomic<bool> interrupt_flag{false};

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

bool is_ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// The signals of kEndingSignals but for those that the process ignores: a process under `nohup` ignores SIGHUP.
sigset_t signals_to_wait_for() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEndingSignals)
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

[[noreturn]] void end_by(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::raise(signal);
  std::_Exit(128 + signal);
}

// The first Ctrl-C sets the flag. A second one does not wait, and neither do the other signals.
void wait_for_signals(sigset_t set) {
  for (int signal = 0; sigwait(&set, &signal) == 0;) {
    if (signal == SIGINT && !interrupt_flag.exchange(true)) continue;
    remove_temporary_files();
    if (signal == SIGINT) std::_Exit(130);
    end_by(signal);
  }
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
// buffers on the heap, which a signal's frame does not fit into. All threads block the signals, one waits for them.
void catch_signals() {
  std::signal(SIGINT, SIG_DFL);   // a shell's background jobs inherit that it is ignored
  std::signal(SIGXFSZ, SIG_IGN);  // then the write fails, and that is reported
  const sigset_t set = signals_to_wait_for();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_signals, set).detach();
}

void pass_signals_on() {
  std::signal(SIGXFSZ, SIG_DFL);
  const sigset_t set = signals_to_wait_for();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tapedeck::tool
