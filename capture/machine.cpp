#include <tapedeck/capture/machine.h>

#include <tapedeck/capture/bench.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
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

std::int64_t clock_read_ns() {
  static const std::int64_t ns = std::llround(measure_clock_read_ns());
  return ns;
}

}  // namespace tapedeck
