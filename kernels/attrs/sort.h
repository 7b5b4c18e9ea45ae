// Attributes of sort, argsort, topk and searchsorted.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// sort argsort: both are stable.
struct SortAttrs {
  std::int64_t axis = -1;
  bool descending = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(SortAttrs, axis)), ATTR_FIELD(SortAttrs, descending))
};

// topk: the k largest (or smallest) elements. sorted = false keeps them in the order of their places in the input.
struct TopkAttrs {
  std::int64_t k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  ATTR_FIELDS(ATTR_REQUIRED(TopkAttrs, k), never_size(ATTR_FIELD(TopkAttrs, axis)), ATTR_FIELD(TopkAttrs, largest),
              ATTR_FIELD(TopkAttrs, sorted))
};

// searchsorted: the place of a value among sorted elements. right = true puts it behind equal elements, false in front of them.
struct SearchAttrs {
  bool right = false;
  ATTR_FIELDS(ATTR_FIELD(SearchAttrs, right))
};

}  // namespace TAPEDECK_API
