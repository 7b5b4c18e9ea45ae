// Attributes of the scans.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// cumsum cumprod. With `exclusive`, a result leaves out the element at its own place. With `reverse`, the scan starts at the
// end.
struct ScanAttrs {
  std::int64_t axis = -1;
  bool exclusive = false;
  bool reverse = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(ScanAttrs, axis)), ATTR_FIELD(ScanAttrs, exclusive), ATTR_FIELD(ScanAttrs, reverse))
};

// linear_scan logcumsumexp. With `reverse`, the scan starts at the end.
struct LinearScanAttrs {
  std::int64_t axis = -1;
  bool reverse = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(LinearScanAttrs, axis)), ATTR_FIELD(LinearScanAttrs, reverse))
};

}  // namespace TAPEDECK_API
