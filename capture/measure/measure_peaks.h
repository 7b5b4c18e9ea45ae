// Measures the peaks of this machine (capture/cost/machine_peaks.h), for each of several numbers of threads.
//
//     flops     multiplications with additions on registers, and a large product by the kernel; the faster of the two
//     halves    a large product in bf16 by the kernel, or the number above if that is larger
//     a level   arrays that fill half of a cache, or several times the last cache, are read, copied, and updated in place;
//               the fastest of the three
//
// Every number is the best of several rounds: other programs on the machine can only slow a round down. Each thread has arrays
// of its own, and a round lasts from the start of its first thread to the end of its last.
#pragma once

#include <tapedeck/capture/cost/machine_peaks.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <functional>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct PeakOptions {
  std::vector<int> threads = {1};             // a number above that of the logical cores counts as their number
  bool quick = false;                         // a third of a second instead of one, for each number of threads
  const std::atomic<bool>* cancel = nullptr;  // checked between rounds; throws Cancelled
  std::function<void(double)> progress = {};  // 0..1, from the calling thread
};

// The peaks in ascending order of threads, each number once. Throws UsageError for a number of threads below 1.
std::vector<ThreadPeaks> measure_peaks(const PeakOptions& options = {});

// The number of threads whose peaks hold for a step on so many threads: no more than there are logical cores.
int peak_threads(int threads);

// The levels of this machine, with rates of zero. A cache counts once for each thread, but not more often than the machine has
// it (caches.h).
std::vector<LevelRate> memory_levels(int threads);

}  // namespace TAPEDECK_API
