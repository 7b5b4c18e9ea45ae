// Progress lines, Ctrl-C as a flag that long work asks, and the end by a signal, which leaves no temporary files.
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/tool/line/command.h>

#include <tapedeck/capture/formats/temporary_file.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace tapedeck::tool {

namespace {

std::atomic<bool> interrupt_flag{false};
std::mutex child_mutex;
pid_t child = 0;  // it gets the signals; 0: there is none

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

bool shows_progress() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal && !talk().quiet;
}

// The one progress line. A part of the work that has told how far it is goes before the clock of the whole command.
class Line {
 public:
  void begin_part() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++parts_;
    told_ = false;
  }
  void end_part() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --parts_;
    told_ = false;
    remove();
  }
  void show(const std::string& text, bool by_part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!by_part && parts_ > 0 && told_) return;
    told_ = told_ || by_part;
    is_shown_ = true;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    remove();
  }

 private:
  void remove() {
    if (is_shown_) std::fprintf(stderr, "\r\033[K"), std::fflush(stderr);
    is_shown_ = false;
  }

  std::mutex mutex_;
  int parts_ = 0;
  bool told_ = false, is_shown_ = false;
};

Line& line() {
  static Line* const line = new Line;  // threads may use it until the process ends
  return *line;
}

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

// The keys of a terminal send a signal to the child as well, so that one is not sent twice.
bool passed_to_child(int signal, const siginfo_t& info) {
  const std::lock_guard<std::mutex> lock(child_mutex);
  if (child == 0) return false;
  if (info.si_code != SI_KERNEL) ::kill(child, signal);
  return true;
}

// The first Ctrl-C sets the flag. A second one does not wait, and neither do the other signals.
void wait_for_signals(sigset_t set) {
  siginfo_t info = {};
  for (;;) {
    const int signal = sigwaitinfo(&set, &info);
    if (signal < 0 && errno == EINTR) continue;
    if (signal < 0) return;
    if (passed_to_child(signal, info)) continue;
    if (signal == SIGINT && !interrupt_flag.exchange(true)) continue;
    remove_temporary_files();
    if (signal == SIGINT) std::_Exit(130);
    end_by(signal);
  }
}

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (shows_progress()) line().begin_part();
}

Progress::~Progress() {
  if (shows_progress()) line().end_part();
  if (!talk().verbose) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
  std::fprintf(stderr, "tapedeck: %s: %.3f s\n", what_.c_str(), took.count());
}

void Progress::at(double fraction) {
  const int percent = static_cast<int>(fraction * 100);
  if (!shows_progress() || percent == last_) return;
  last_ = percent;
  line().show(what_ + " " + std::to_string(percent) + " %", true);
}

Working::Working(std::string what) : what_(std::move(what)) {
  if (shows_progress()) thread_ = std::thread([this] { tick(); });
}

Working::~Working() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(waiting_);
    ended_ = true;
  }
  ended_signal_.notify_all();
  thread_.join();
  line().clear();
}

void Working::tick() {
  std::unique_lock<std::mutex> lock(waiting_);
  for (int seconds = 1; !ended_signal_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; }); ++seconds)
    line().show(what_ + " " + std::to_string(seconds) + " s", false);
}

void clear_progress() {
  if (shows_progress()) line().clear();
}

void note(const std::string& text) {
  if (talk().quiet) return;
  clear_progress();
  std::fprintf(stderr, "tapedeck: %s\n", text.c_str());
}

PassSignalsTo::PassSignalsTo(int pid) {
  const std::lock_guard<std::mutex> lock(child_mutex);
  child = pid;
}
PassSignalsTo::~PassSignalsTo() {
  const std::lock_guard<std::mutex> lock(child_mutex);
  child = 0;
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
