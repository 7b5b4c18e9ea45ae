// Measures how fast this machine runs every op, in well under a minute.
#pragma once

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct CalibrateOptions {
  bool quick = false;  // some 5 seconds instead of 30, with fewer and smaller sizes
  // The seconds after which no further size of an op is measured, unless the op still has too few points for its rates. 0
  // means 0.02 if `quick` is set, and 0.15 otherwise.
  double op_seconds = 0;
  std::vector<std::string> ops = {};          // only these; none: every op that can be measured
  const std::atomic<bool>* cancel = nullptr;  // checked between measurements; throws Cancelled
  std::function<void(double)> progress = {};  // 0..1, from the calling thread
};

// One measured size of an example.
struct CalibrationPoint {
  std::string op;
  std::string types;  // of the operands
  CostPoint cost;
};

// Every op's examples at their own sizes and at larger ones that inference accepts, each replayed alone on one thread, so that
// the measured time is the time of a replay; then fit_rates(). An op whose examples cannot be enlarged, or whose kernel refuses
// the random operands, has no rates. Throws UsageError for an op that does not exist. `points`, if not null, receives every
// measurement.
Calibration calibrate(const CalibrateOptions& options = {}, std::vector<CalibrationPoint>* points = nullptr);

}  // namespace TAPEDECK_API
