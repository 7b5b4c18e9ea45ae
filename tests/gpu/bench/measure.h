// Times work on the GPU: rounds of many runs, each round between two synchronisations.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::gpu {

using Clock = std::chrono::steady_clock;

inline double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Times {
  double us = 0, low = 0, high = 0;  // of one run: the median of the rounds, the fastest and the slowest round
  // The time in which the host gives one run to the device, the median of the rounds; none if the run waits for its end.
  std::optional<double> launch_us;
  int rounds = 0, runs = 0;  // runs of one round
};

inline double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

// Seven rounds of about `round_ms`, and at least `least` and at most `most` runs in each, while `seconds` last; at least three
// rounds. `wait` is empty if run() waits for its end. The driver takes about a thousand launches; then a launch waits.
inline Times measure(const std::function<void()>& run, const std::function<void()>& wait, double seconds, int least = 3,
                     double round_ms = 60, int most = 2000) {
  const auto begin = Clock::now();
  const auto finish = [&] {
    if (wait) wait();
  };
  run();
  finish();
  auto start = Clock::now();
  run();
  finish();
  const double once = std::max(us_since(start), 0.5);
  Times t;
  t.runs = std::clamp(static_cast<int>(round_ms * 1000 / once), least, most);
  std::vector<double> us, launch;
  while (t.rounds < 3 || (t.rounds < 7 && us_since(begin) < seconds * 1e6)) {
    start = Clock::now();
    for (int i = 0; i < t.runs; ++i) run();
    launch.push_back(us_since(start) / t.runs);
    finish();
    us.push_back(us_since(start) / t.runs);
    ++t.rounds;
  }
  t.us = median(us);
  if (wait) t.launch_us = median(launch);
  t.low = *std::min_element(us.begin(), us.end()), t.high = *std::max_element(us.begin(), us.end());
  return t;
}

// Writes one line of JSON for each row, and one of text to stdout.
class Rows {
 public:
  explicit Rows(const std::string& path) : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "w")) {}
  ~Rows() {
    if (file_) std::fclose(file_);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  using Fields = std::vector<std::pair<std::string, std::string>>;  // values as JSON
  void add(const std::string& name, const Times& t, const Fields& more) {
    std::string json = fmt::format(R"({{"bench": "{}", "us": {:.3f}, "low": {:.3f}, "high": {:.3f}, "rounds": {}, "runs": {})",
                                   name, t.us, t.low, t.high, t.rounds, t.runs);
    std::string text = fmt::format("{:<58} {:>11.2f} us  [{:.2f} .. {:.2f}]", name, t.us, t.low, t.high);
    if (t.launch_us) {
      json += fmt::format(R"(, "launch_us": {:.3f})", *t.launch_us);
      text += fmt::format("  launch {:.2f}", *t.launch_us);
    }
    for (const auto& [key, value] : more) {
      json += fmt::format(R"(, "{}": {})", key, value);
      text += fmt::format("  {} {}", key, value);
    }
    write(json + "}", text);
  }
  void failed(const std::string& name, const std::string& why) {
    std::string quoted;
    for (const char c : why) quoted += c == '"' || c == '\\' ? '\'' : c == '\n' ? ' ' : c;
    write(fmt::format(R"({{"bench": "{}", "failed": "{}"}})", name, quoted), fmt::format("{:<58} FAILED: {}", name, why));
    ++failures_;
  }
  int failures() const { return failures_; }
  // One row as JSON and as text.
  void write(const std::string& json, const std::string& text) {
    fmt::print("{}\n", text);
    std::fflush(stdout);
    if (!file_) return;
    fmt::print(file_, "{}\n", json);
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
  int failures_ = 0;
};

}  // namespace tapedeck::gpu
