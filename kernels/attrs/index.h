// Attributes of the indexing ops.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

// embedding_grad: the number of rows of the table.
struct RowsAttrs {
  std::int64_t rows = 0;
  ATTR_FIELDS(ATTR_REQUIRED(RowsAttrs, rows))
};

// nonzero masked_select: the number of elements of the result, which is fixed before the op runs.
struct CountAttrs {
  std::int64_t count = 0;
  ATTR_FIELDS(ATTR_REQUIRED(CountAttrs, count))
};

// bincount: the number of bins.
struct BinsAttrs {
  std::int64_t bins = 0;
  ATTR_FIELDS(ATTR_REQUIRED(BinsAttrs, bins))
};

// gather_nd: the number of leading dimensions that x and the indices share.
struct GatherNdAttrs {
  std::int64_t batch_dims = 0;
  ATTR_FIELDS(never_size(ATTR_FIELD(GatherNdAttrs, batch_dims)))
};

// scatter_reduce: how an element of src meets the element at its place: "mul", "max" or "min".
struct ScatterReduceAttrs {
  std::int64_t axis = -1;
  Name reduction;
  ATTR_FIELDS(never_size(ATTR_FIELD(ScatterReduceAttrs, axis)), ATTR_REQUIRED(ScatterReduceAttrs, reduction))
};

// scatter_nd: "none" replaces the old element; "add", "mul", "max" and "min" combine it with the new one. `batch_dims` as in
// GatherNdAttrs.
struct ScatterNdAttrs {
  Name reduction = "none";
  std::int64_t batch_dims = 0;
  ATTR_FIELDS(ATTR_FIELD(ScatterNdAttrs, reduction), never_size(ATTR_FIELD(ScatterNdAttrs, batch_dims)))
};

}  // namespace TAPEDECK_API
