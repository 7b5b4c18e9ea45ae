// Attributes of loops: which operands and results of a loop play which part. See engine/ops/control.h.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// while scan: the loop runs its region once per pass.
struct LoopAttrs {
  std::int64_t carried = 0;  // how many operands pass from one pass to the next
  std::int64_t scanned = 0;  // how many operands give each pass one slice along their first axis
  // While: the largest number of passes, -1 = no bound; scan: the number of passes, -1 = the number of slices.
  std::int64_t trips = -1;
  bool reverse = false;        // scan only: begin with the last slice
  std::int64_t residuals = 0;  // how many results, the last ones, hold values of each pass for backward
  // Which carried values are kept for backward: 0 = those of every pass, n = those of every n-th pass, or one of the two
  // constants below.
  std::int64_t checkpoint = 0;
  ATTR_FIELDS(ATTR_REQUIRED(LoopAttrs, carried), ATTR_FIELD(LoopAttrs, scanned), ATTR_FIELD(LoopAttrs, trips),
              ATTR_FIELD(LoopAttrs, reverse), ATTR_FIELD(LoopAttrs, residuals), ATTR_FIELD(LoopAttrs, checkpoint))
};

// Keep the carried values at the start of each block of about sqrt(passes) passes.
inline constexpr std::int64_t kCheckpointSqrt = -1;
// Keep a logarithmic number of snapshots (the binomial schedule of Griewank and Walther, 2000).
inline constexpr std::int64_t kCheckpointLog = -2;

// The backward of a loop. The fields of the same name are those of LoopAttrs.
struct LoopGradAttrs {
  std::int64_t carried = 0;
  std::int64_t scanned = 0;
  // The largest number of passes; -1 = no bound, and then the tape of the loop is not part of the plan.
  std::int64_t trips = -1;
  bool reverse = false;
  std::int64_t checkpoint = 0;
  // One character for every operand of the loop, in the order carried, scanned, captured:
  //   '0'  the gradient is not needed
  //   '1'  the gradient is needed
  //   '2'  the gradient of a captured operand is needed, and no earlier gradient was added up for it. If the loop makes no
  //   pass,
  //        the gradient is zero.
  Name needs;
  ATTR_FIELDS(ATTR_REQUIRED(LoopGradAttrs, carried), ATTR_FIELD(LoopGradAttrs, scanned), ATTR_FIELD(LoopGradAttrs, trips),
              ATTR_FIELD(LoopGradAttrs, reverse), ATTR_FIELD(LoopGradAttrs, checkpoint), ATTR_REQUIRED(LoopGradAttrs, needs))
};

}  // namespace TAPEDECK_API
