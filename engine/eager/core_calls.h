// The author functions that the engine itself calls outside of op blocks: in backward, in writes in place, and in loops.
//
// Every op block includes this header (through op_block.h), so a declaration that differs from its definition is a compile
// error or a link error. Default arguments stand in the header of the op's family. add(), cast() and copy() are defined here,
// because they are inline.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <vector>

namespace tapedeck TAPEDECK_API {

// ---- of ops/elementwise.h ----
inline Tensor add(const Arg& a, const Arg& b) {
  if (same_dtype(a, b)) return apply(ops::add, {&a.tensor(), &b.tensor()}, nullptr, a.site());
  auto [x, y] = promoted("add", a, b);
  return apply(ops::add, {&x, &y}, nullptr, a.site());
}
inline Tensor copy(const Arg& x) { return apply(ops::copy, {&x.tensor()}, nullptr, x.site()); }
// Returns x itself if it already has the dtype.
inline Tensor cast(const Arg& x, DType dtype) {
  if (x.tensor().defined() && x.tensor().dtype() == dtype) return x.tensor();
  const CastAttrs attrs{dtype};
  return apply(ops::cast, {&x.tensor()}, &attrs, x.site());
}

// ---- of ops/special.h ----
Tensor full(const Shape& shape, double value, DType dtype, Site site);

// ---- of ops/movement.h ----
Tensor alias(const Arg& x);
Tensor broadcast_to(const Arg& x, const Shape& shape);
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis, Site site);
Tensor pad(const Arg& x, const Ints& before, const Ints& after);
Tensor reshape(const Arg& x, const Shape& shape);
Tensor slice(const Arg& x, const Ints& starts, const Ints& stops, const Ints& steps);
Tensor stop_gradient(const Arg& x);

// ---- of ops/rearrange.h ----
Tensor movedim(const Arg& x, std::int64_t from, std::int64_t to);
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis, Site site);
std::vector<Tensor> unbind(const Arg& x, std::int64_t axis);

// ---- of ops/statistics.h ----
Tensor count_nonzero(const Arg& x, const Ints& axes, bool keepdims);

}  // namespace TAPEDECK_API
