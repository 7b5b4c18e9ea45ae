// Attributes of sort, argsort, topk and searchsorted.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct SortAttrs {  // sort argsort
  std::int64_t axis = -1;
  bool descending = false;
  ATTR_FIELDS(ATTR_FIELD(SortAttrs, axis), ATTR_FIELD(SortAttrs, descending))
};

struct TopkAttrs {  // topk: not sorted means in order of place
  std::int64_t k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  ATTR_FIELDS(ATTR_REQUIRED(TopkAttrs, k), ATTR_FIELD(TopkAttrs, axis), ATTR_FIELD(TopkAttrs, largest),
              ATTR_FIELD(TopkAttrs, sorted))
};

struct SearchAttrs {  // searchsorted: right = behind equal elements
  bool right = false;
  ATTR_FIELDS(ATTR_FIELD(SearchAttrs, right))
};

}  // namespace TAPEDECK_API
