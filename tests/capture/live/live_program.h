// A child process that trains a little net: this test program itself, which runs one disabled test.
#pragma once

#include <tapedeck/capture/live/live_folder.h>
#include <tapedeck/capture/live/live_records.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tapedeck::live {

inline bool wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class Child {
 public:
  // `settings` are variables of the environment. The warnings of the child go to the file `errors`.
  Child(const std::string& test, const std::map<std::string, std::string>& settings, const std::string& errors = "/dev/null") {
    // All memory is taken before the fork: other threads may hold locks of the allocator.
    std::vector<std::string> texts;
    for (char** at = ::environ; *at; ++at) {
      const std::string text = *at;
      const bool is_set = settings.count(text.substr(0, text.find('='))) > 0;
      if (!is_set && !text.starts_with("GTEST_"))
        texts.push_back(text);  // the child has one test, whatever shard this process is
    }
    for (const auto& setting : settings) texts.push_back(setting.first + "=" + setting.second);
    std::string filter = "--gtest_filter=" + test, name = "live_child", disabled = "--gtest_also_run_disabled_tests";
    std::vector<char*> arguments = {name.data(), filter.data(), disabled.data(), nullptr}, environment;
    for (std::string& text : texts) environment.push_back(text.data());
    environment.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    const int out = ::open("/dev/null", O_WRONLY), err = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, 1), ::dup2(err, 2);
    ::execve("/proc/self/exe", arguments.data(), environment.data());
    ::_exit(99);
  }
  ~Child() {
    if (process_ > 0) kill(SIGKILL);
  }
  Child(const Child&) = delete;

  int wait() {  // for the exit code; -1: a signal
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill(int signal) {
    ::kill(process_, signal);
    wait();
  }

 private:
  pid_t process_ = 0;
};

// All records of a folder, chunk by chunk.
inline std::vector<Record> records_of(const std::string& folder) {
  std::vector<std::string> chunks;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("chunk-")) chunks.push_back(entry.path().string());
  std::sort(chunks.begin(), chunks.end());
  std::vector<Record> all;
  for (const std::string& chunk : chunks) {
    const std::string bytes = read_all(chunk);
    std::span<const unsigned char> rest(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    rest = rest.subspan(std::min(rest.size(), kChunkHeaderBytes));
    RecordReader reader;
    Record record;
    for (std::size_t taken = 0; reader.next(rest, &record, &taken); rest = rest.subspan(taken)) all.push_back(record);
    EXPECT_EQ(reader.damage(), "");
  }
  return all;
}

template <class R>
std::vector<R> records_of(const std::string& folder) {
  std::vector<R> found;
  for (const Record& record : records_of(folder))
    if (const R* r = std::get_if<R>(&record)) found.push_back(*r);
  return found;
}

inline std::string only_program(const std::string& base) {
  std::string folder;
  wait_until([&] {
    const std::vector<RunningProgram> programs = running_programs(base);
    if (programs.size() == 1) folder = programs[0].folder;
    return !folder.empty();
  });
  return folder;
}

// As a viewer does it: the request appears whole.
inline void ask(const std::string& folder, const std::string& request) {
  write_all(folder + "/.request", request);
  std::filesystem::rename(folder + "/.request", folder + "/request");
}

}  // namespace tapedeck::live
