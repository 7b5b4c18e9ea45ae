// Whether the gradient of a tensor is fresh (gradient/fresh_gradient.h). The mark lies beside the gradient, in the data that
// only a few tensors have: tensor.cpp makes every detail::Extra as a MarkedExtra.
#pragma once

#include <tapedeck/engine/eager/tensor_impl.h>

namespace tapedeck::detail {

struct MarkedExtra : Extra {
  bool fresh = false;  // true only if `grad` is defined
};

// REQUIRES: the tensor has such data.
inline bool& fresh_mark(TensorImpl& t) { return static_cast<MarkedExtra*>(t.extra)->fresh; }

}  // namespace tapedeck::detail
