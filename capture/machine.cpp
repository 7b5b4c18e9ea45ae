#include <tapedeck/capture/machine.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

namespace tapedeck {

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2, 100);
  }
  return "unknown processor";
}

std::int64_t measure_clock() {
  constexpr int kPairs = 1001;
  std::vector<std::int64_t> gaps;
  for (int i = 0; i < kPairs; ++i) {
    const auto first = std::chrono::steady_clock::now(), second = std::chrono::steady_clock::now();
    gaps.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(second - first).count());
  }
  std::nth_element(gaps.begin(), gaps.begin() + kPairs / 2, gaps.end());
  return gaps[kPairs / 2];
}

}  // namespace

std::string machine_name() {
  static const std::string name = fmt::format("{} x {}", processor(), std::max(1u, std::thread::hardware_concurrency()));
  return name;
}

std::int64_t clock_read_ns() {
  static const std::int64_t ns = measure_clock();
  return ns;
}

}  // namespace tapedeck
