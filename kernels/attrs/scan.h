// Attributes of the scans.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct ScanAttrs {  // cumsum cumprod: exclusive leaves out the element itself; reverse starts at the end
  std::int64_t axis = -1;
  bool exclusive = false;
  bool reverse = false;
  ATTR_FIELDS(ATTR_FIELD(ScanAttrs, axis), ATTR_FIELD(ScanAttrs, exclusive), ATTR_FIELD(ScanAttrs, reverse))
};

struct LinearScanAttrs {  // linear_scan
  std::int64_t axis = -1;
  bool reverse = false;
  ATTR_FIELDS(ATTR_FIELD(LinearScanAttrs, axis), ATTR_FIELD(LinearScanAttrs, reverse))
};

}  // namespace TAPEDECK_API
