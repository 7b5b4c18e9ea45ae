#include <tapedeck/capture/tool/files/child.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

extern char** environ;

namespace tapedeck::tool {

namespace {

constexpr std::size_t kMostOutput = 65536;

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// This process's variables, but for those that `added` sets.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> result = added;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_set = false;
    for (const std::string& item : added) is_set = is_set || (!name.empty() && item.starts_with(name));
    if (!is_set) result.emplace_back(text);
  }
  return result;
}

// The signals are as a shell would give them: this process blocks those that it waits for, and ignores SIGXFSZ.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

class Streams {
 public:
  Streams() { posix_spawn_file_actions_init(&actions_); }
  ~Streams() { posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  void set_stdout(int descriptor) { posix_spawn_file_actions_adddup2(&actions_, descriptor, STDOUT_FILENO); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

void read_all(int descriptor, std::string* text) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    if (text->size() < kMostOutput) text->append(buffer, static_cast<std::size_t>(n));
  }
}

// The child stays a zombie until the signals of this process go to it no more, so that its number belongs to no other process.
ChildEnd wait_for(pid_t pid, int output, std::string* text) {
  {
    const PassSignalsTo passing(pid);
    if (text) read_all(output, text);
    siginfo_t info;
    while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return {.error = errno};
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0, .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& words, const ChildOptions& options) {
  std::vector<std::string> arguments = words, environment = environment_with(options.environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  const Attributes attributes;
  Streams streams;
  int ends[2] = {-1, -1};
  if (options.output) {
    if (::pipe2(ends, O_CLOEXEC) < 0) return {.error = errno};
    streams.set_stdout(ends[1]);
  }
  if (options.stdout_to_stderr) streams.set_stdout(STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], streams.get(), attributes.get(), argv.data(), envp.data());
  if (ends[1] >= 0) ::close(ends[1]);
  const ChildEnd end = error ? ChildEnd{.error = error} : wait_for(pid, ends[0], options.output);
  if (ends[0] >= 0) ::close(ends[0]);
  return end;
}

}  // namespace tapedeck::tool
