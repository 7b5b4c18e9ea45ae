// The most that one machine does in a second, by the number of threads: floating-point operations, and bytes that each level of
// its memory moves. `tapedeck calibrate` measures them (capture/measure/measure_peaks.h) and keeps them in the calibration.
// `tapedeck bench --roofline` compares every node of a step with them.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

class JsonValue;
class JsonWriter;

// A cache, or the memory behind the caches.
struct LevelRate {
  std::int64_t bytes = 0;  // that the level holds for all of the threads together; 0: memory, which holds any number
  double gb_per_s = 0;     // bytes read and bytes written, in 1e9 per second, by the fastest of several loops
  bool operator==(const LevelRate&) const = default;
};

struct ThreadPeaks {
  int threads = 1;
  double gflop_per_s = 0;         // in f32, in 1e9 per second: multiplications and additions count as one each
  double matmul_gflop_per_s = 0;  // of a large f32 product by the kernel; never more than gflop_per_s
  double half_gflop_per_s = 0;    // of nodes with bf16 or f16 operands; never less than gflop_per_s
  std::vector<LevelRate> levels;  // the nearest first; the last one is memory
  bool operator==(const ThreadPeaks&) const = default;
};

// The index of the smallest level that holds so many bytes. REQUIRES: the peaks have levels.
std::size_t level_of(const ThreadPeaks& peaks, double bytes);

// "L1", "L2", ..., and "memory" for the last one. REQUIRES: level < peaks.levels.size().
std::string level_name(const ThreadPeaks& peaks, std::size_t level);

// The entry for so many threads; null if there is none.
const ThreadPeaks* peaks_for(std::span<const ThreadPeaks> peaks, int threads);

// The peaks as an array of JSON, and back. read_peaks() throws JsonError for peaks that no machine has: a rate that is
// negative, zero, infinite or no number, levels that do not grow, or a number of threads twice.
void write_peaks(JsonWriter* json, std::span<const ThreadPeaks> peaks);
std::vector<ThreadPeaks> read_peaks(JsonValue json);

}  // namespace TAPEDECK_API
