// Attributes of control flow: how the operands and results of a loop are sorted. See engine/ops/control.h.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct LoopAttrs {
  std::int64_t carried = 0;    // operands handed from pass to pass
  std::int64_t scanned = 0;    // operands of which each pass reads one slice along the first axis
  std::int64_t trips = -1;     // while: the most passes, -1 = no bound; scan: how many, -1 = as many as there are slices
  bool reverse = false;        // scan: the last slice first
  std::int64_t residuals = 0;  // the last results: what each pass keeps for backward
  std::int64_t checkpoint =
      0;  // what backward keeps of the carried values: 0 = those of every pass, n = of every n-th, or kSqrt, kLog
  ATTR_FIELDS(ATTR_REQUIRED(LoopAttrs, carried), ATTR_FIELD(LoopAttrs, scanned), ATTR_FIELD(LoopAttrs, trips),
              ATTR_FIELD(LoopAttrs, reverse), ATTR_FIELD(LoopAttrs, residuals), ATTR_FIELD(LoopAttrs, checkpoint))
};

inline constexpr std::int64_t kCheckpointSqrt = -1;  // blocks of about the square root of the number of passes
inline constexpr std::int64_t kCheckpointLog = -2;   // a logarithmic number of snapshots, by the binomial schedule

struct LoopGradAttrs {
  std::int64_t carried = 0;
  std::int64_t scanned = 0;
  std::int64_t trips = -1;  // the most passes, -1 = no bound: then the tape is not part of the plan
  bool reverse = false;
  std::int64_t checkpoint = 0;
  // For every operand of the loop - carried, scanned, captured - a '0' if its gradient is not wanted, else a '1', or '2' if it
  // is captured and nothing has come together for it before: where no pass comes, its gradient is zero.
  Name needs;
  ATTR_FIELDS(ATTR_REQUIRED(LoopGradAttrs, carried), ATTR_FIELD(LoopGradAttrs, scanned), ATTR_FIELD(LoopGradAttrs, trips),
              ATTR_FIELD(LoopGradAttrs, reverse), ATTR_FIELD(LoopGradAttrs, checkpoint), ATTR_REQUIRED(LoopGradAttrs, needs))
};

}  // namespace TAPEDECK_API
