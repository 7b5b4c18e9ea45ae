// How fast ops run on one machine: rates measured once by `tapedeck calibrate` and kept per user. With them the planner's
// estimates are microseconds of this machine; without, those of a nominal core, the same everywhere.
#pragma once

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

// Bytes that one core's own caches hold, about: beyond, every byte costs more.
inline constexpr double kNearBytes = 1 << 20;

// Ops for which nothing was measured are as much faster or slower than the built-in estimate as the median of their kin.
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
  bool operator==(const Calibration&) const = default;
};

// What the cost model counts of an op: as the op says, or its operands and results moved once.
Cost counted_cost(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

// As cost_us() (engine/ir/op.h), of the calibrated machine. Views and what costs nothing cost nothing here either.
double calibrated_us(const Calibration& calibration, const Op& op, std::span<const Type> inputs, std::span<const Type> outputs,
                     const void* attrs);

struct CostPoint {  // one measurement
  double flops = 0, bytes = 0, us = 0;
};

// Whether rates can be told from the points at all: two or more, one of them large.
bool can_carry_rates(std::span<const CostPoint> points);

// Rates that are not negative for which the sum of ln(us by the rates / us measured)^2 cannot be bettered by changing one of
// them. Nothing if the points cannot carry rates.
std::optional<OpRates> fit_rates(std::span<const CostPoint> points);

// JSON text both ways. parse_calibration() throws FileError for rates that cannot be.
std::string calibration_to_json(const Calibration& calibration);
Calibration parse_calibration(std::string_view json);

// Where this user's is kept: TAPEDECK_CALIBRATION, else $XDG_CACHE_HOME/tapedeck/calibration.json, else
// ~/.cache/tapedeck/calibration.json; empty if TAPEDECK_CALIBRATION=off or the user has no home.
std::string calibration_path();

// Writes it whole or not at all, and makes the folders above. Throws FileError.
void save_calibration(const std::string& path, const Calibration& calibration);

// Nothing if there is no such file; also if it is damaged, or of another machine or program: then `why` says so.
std::optional<Calibration> load_calibration(const std::string& path, std::string* why);

}  // namespace TAPEDECK_API
