// Peaks as data: which level holds how many bytes, and the array of JSON in the file of the calibration.
//     [{"threads":1,"gflop_per_s":104.1,...,"levels":[{"bytes":32768,"gb_per_s":201.5},...,{"bytes":0,"gb_per_s":22.4}]}, ...]
#include <tapedeck/capture/cost/machine_peaks.h>

#include <tapedeck/capture/formats/json.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

std::size_t level_of(const ThreadPeaks& peaks, double bytes) {
  for (std::size_t i = 0; i + 1 < peaks.levels.size(); ++i)
    if (bytes <= static_cast<double>(peaks.levels[i].bytes)) return i;
  return peaks.levels.size() - 1;
}

std::string level_name(const ThreadPeaks& peaks, std::size_t level) {
  return level + 1 == peaks.levels.size() ? std::string("memory") : fmt::format("L{}", level + 1);
}

const ThreadPeaks* peaks_for(std::span<const ThreadPeaks> peaks, int threads) {
  const auto it = std::find_if(peaks.begin(), peaks.end(), [&](const ThreadPeaks& p) { return p.threads == threads; });
  return it == peaks.end() ? nullptr : &*it;
}

// ---- as text ----

void write_peaks(JsonWriter* json, std::span<const ThreadPeaks> peaks) {
  json->open('[');
  for (const ThreadPeaks& p : peaks) {
    json->line().open('{').key("threads").value(static_cast<std::int64_t>(p.threads));
    json->key("gflop_per_s").value(p.gflop_per_s).key("matmul_gflop_per_s").value(p.matmul_gflop_per_s);
    json->key("half_gflop_per_s").value(p.half_gflop_per_s).key("levels").open('[');
    for (const LevelRate& level : p.levels)
      json->open('{').key("bytes").value(level.bytes).key("gb_per_s").value(level.gb_per_s).close('}');
    json->close(']').close('}');
  }
  json->close(']');
}

namespace {

constexpr double kMostRate = 1e9;  // in 1e9 per second
constexpr std::int64_t kMostThreads = 1 << 20;
constexpr std::uint32_t kMostLevels = 16;

double peak_rate(JsonValue object, const char* key) {
  const JsonValue value = object.member(key);
  const double number = value.as_real();
  if (!(number > 0 && number <= kMostRate)) throw JsonError(fmt::format("{} is {}, on line {}", key, number, value.line()));
  return number;
}

std::vector<LevelRate> read_levels(JsonValue json) {
  std::vector<LevelRate> levels;
  if (json.kind() != JsonKind::array || json.size() == 0 || json.size() > kMostLevels)
    throw JsonError(fmt::format("levels is no list of 1 to {} levels, on line {}", kMostLevels, json.line()));
  for (const JsonValue item : json.items()) {
    const bool memory = levels.size() + 1 == json.size();
    const JsonValue bytes = item.member("bytes");
    const std::int64_t holds = bytes.as_integer();
    const std::int64_t before = levels.empty() ? 0 : levels.back().bytes;
    if (memory ? holds != 0 : holds <= before) throw JsonError(fmt::format("bytes is {}, on line {}", holds, bytes.line()));
    levels.push_back({holds, peak_rate(item, "gb_per_s")});
  }
  return levels;
}

ThreadPeaks read_one(JsonValue json) {
  ThreadPeaks peaks;
  const JsonValue threads = json.member("threads");
  const std::int64_t number = threads.as_integer();
  if (number < 1 || number > kMostThreads) throw JsonError(fmt::format("threads is {}, on line {}", number, threads.line()));
  peaks.threads = static_cast<int>(number);
  peaks.gflop_per_s = peak_rate(json, "gflop_per_s");
  peaks.matmul_gflop_per_s = peak_rate(json, "matmul_gflop_per_s");
  peaks.half_gflop_per_s = peak_rate(json, "half_gflop_per_s");
  if (peaks.matmul_gflop_per_s > peaks.gflop_per_s || peaks.half_gflop_per_s < peaks.gflop_per_s)
    throw JsonError(fmt::format("the rates of {} threads contradict each other, on line {}", number, json.line()));
  peaks.levels = read_levels(json.member("levels"));
  return peaks;
}

}  // namespace

std::vector<ThreadPeaks> read_peaks(JsonValue json) {
  std::vector<ThreadPeaks> peaks;
  for (const JsonValue item : json.items()) {
    ThreadPeaks one = read_one(item);
    if (!peaks.empty() && one.threads <= peaks.back().threads)
      throw JsonError(fmt::format("the peaks are not in order of threads, on line {}", item.line()));
    peaks.push_back(std::move(one));
  }
  return peaks;
}

}  // namespace tapedeck
