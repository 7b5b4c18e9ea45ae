// How fast ops run on one machine: rates that `tapedeck calibrate` measures once and keeps for the user. With rates, the
// estimates of the planner are microseconds of this machine. Without rates, they are microseconds of a nominal core, the same
// everywhere.
#pragma once

#include <tapedeck/capture/cost/machine_peaks.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// us = call + flops * per_flop + bytes * per_byte + bytes beyond the near cache * per_far_byte; all finite and >= 0.
struct OpRates {
  int version = 1;  // of the op that was measured
  double call_us = 0;
  double us_per_flop = 0;
  double us_per_byte = 0;
  double us_per_far_byte = 0;  // on top of us_per_byte
  int points = 0;              // sizes measured
  bool operator==(const OpRates&) const = default;
};

// About the number of bytes that the caches of one core hold. Each byte beyond costs more.
inline constexpr double kNearBytes = 1 << 20;

// An op without measurements is scaled by the median of its kin: measured time over built-in estimate.
enum class OpKin : std::uint8_t { elementwise, counted, moving };  // counted: the op says its flops and bytes
inline constexpr int kOpKinCount = 3;
const char* kin_name(OpKin kin);
OpKin kin_of(const Op& op);

struct Calibration {
  std::string machine;  // machine_name() where it was measured
  std::string program;  // version of Tapedeck whose kernels were measured
  bool quick = false;
  std::map<std::string, OpRates> ops;  // by name
  std::array<double, kOpKinCount> kin_ratio = {1, 1, 1};
  std::vector<ThreadPeaks> peaks;  // by number of threads, ascending; empty: not measured
  bool operator==(const Calibration&) const = default;
};

// The flops and bytes that the cost model counts for an op: the numbers that the op says, or its operands and results moved
// once.
Cost counted_cost(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

// Like cost_us() (engine/ir/op.h), for the calibrated machine. Views and ops without cost cost nothing here either.
double calibrated_us(const Calibration& calibration, const Op& op, std::span<const Type> inputs, std::span<const Type> outputs,
                     const void* attrs);

struct CostPoint {  // one measurement
  double flops = 0, bytes = 0, us = 0;
};

// Whether rates can be computed from the points: two points or more, one of them large.
bool can_carry_rates(std::span<const CostPoint> points);

// Rates, none of them negative, whose sum of ln(us by the rates / us measured)^2 no change of one rate makes smaller. Empty if
// the points cannot carry rates.
std::optional<OpRates> fit_rates(std::span<const CostPoint> points);

// Rates and peaks as JSON text, and back. The text of a calibration without peaks does not mention them. parse_calibration()
// throws FileError for impossible rates and peaks.
std::string calibration_to_json(const Calibration& calibration);
Calibration parse_calibration(std::string_view json);

// The file of this user: TAPEDECK_CALIBRATION, else $XDG_CACHE_HOME/tapedeck/calibration.json, else
// ~/.cache/tapedeck/calibration.json. Empty if TAPEDECK_CALIBRATION=off or if the user has no home.
std::string calibration_path();

// Writes the file whole or not at all, and makes its folders. Throws FileError.
void save_calibration(const std::string& path, const Calibration& calibration);

// Empty if there is no such file, or if it is damaged or of another machine or program; `why` says which.
std::optional<Calibration> load_calibration(const std::string& path, std::string* why);

}  // namespace TAPEDECK_API
