// Attributes of the indexing ops.
#pragma once

#include <tapedeck/kernels/attrs.h>

namespace tapedeck TAPEDECK_API {

struct RowsAttrs {  // embedding_grad: rows of the table
  std::int64_t rows = 0;
  ATTR_FIELDS(ATTR_REQUIRED(RowsAttrs, rows))
};

struct CountAttrs {  // nonzero masked_select: how many elements there are, known beforehand
  std::int64_t count = 0;
  ATTR_FIELDS(ATTR_REQUIRED(CountAttrs, count))
};

struct BinsAttrs {  // bincount
  std::int64_t bins = 0;
  ATTR_FIELDS(ATTR_REQUIRED(BinsAttrs, bins))
};

struct GatherNdAttrs {  // gather_nd: so many leading dimensions are common to x and the indices
  std::int64_t batch_dims = 0;
  ATTR_FIELDS(ATTR_FIELD(GatherNdAttrs, batch_dims))
};

struct ScatterNdAttrs {  // scatter_nd: what meets an element: "none" replaces it, "add" adds to it
  Name reduction = "none";
  std::int64_t batch_dims = 0;
  ATTR_FIELDS(ATTR_FIELD(ScatterNdAttrs, reduction), ATTR_FIELD(ScatterNdAttrs, batch_dims))
};

}  // namespace TAPEDECK_API
