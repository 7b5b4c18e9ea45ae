#include <tapedeck/capture/cost/machine.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

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

}  // namespace

std::string machine_name() {
  static const std::string name = fmt::format("{} x {}", processor(), std::max(1u, std::thread::hardware_concurrency()));
  return name;
}

double measure_clock_read_ns() {
  using Clock = std::chrono::steady_clock;
  constexpr int kReads = 1000, kBatches = 20;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int b = 0; b < kBatches; ++b) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point end = begin;
    for (int i = 0; i < kReads; ++i) end = Clock::now();
    least = std::min<std::int64_t>(least, std::chrono::nanoseconds(end - begin).count());
  }
  return static_cast<double>(least) / kReads;
}

std::int64_t clock_read_ns() {
  static const std::int64_t ns = std::llround(measure_clock_read_ns());
  return ns;
}

}  // namespace tapedeck
