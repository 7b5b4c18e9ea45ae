// The peaks of this machine for the commands that compare with them: those of the calibration, or measured on the spot.
#pragma once

#include <tapedeck/capture/cost/machine_peaks.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

class Peaks {
 public:
  // `quick`: peaks that are measured here are measured in a third of a second.
  explicit Peaks(bool quick) : quick_(quick) {}

  struct Found {
    ThreadPeaks peaks;
    std::string source;  // calibration, measured
  };
  // For a step on so many threads. What the calibration of this machine lacks is measured, shows its progress, is said on
  // stderr and kept until the end of the command. Throws Cancelled after Ctrl-C.
  Found of(int threads);

 private:
  void load();

  const bool quick_;
  bool loaded_ = false;
  std::vector<ThreadPeaks> calibrated_, measured_;
};

// "1 thread: 104.2 Gflop/s (matmul 97.1, halves 104.2), L1 32 KiB 201.5 GB/s, ..., memory 21.4 GB/s"
std::string peaks_text(const ThreadPeaks& peaks);

}  // namespace tapedeck::tool
