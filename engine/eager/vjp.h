// The view that the vjp of an op has of one recorded node: its operands, its results, the gradients of its results, and the
// place for the gradients of its operands. A vjp consists of ordinary calls of ops. On real tensors it computes eager
// backward. On abstract tensors it shows which values backward reads.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

class Vjp {
 public:
  // Operand i and result i. If the vjp does not read its data (according to derive_saved.h), the tensor is abstract: its type
  // is known, but it has no data.
  const Tensor& x(int i) const { return xs[i]; }
  const Tensor& y(int i = 0) const { return ys[i]; }
  const Tensor& dy(int i = 0) const { return dys[i]; }
  bool needs(int i) const { return need[i]; }
  int n_inputs() const { return static_cast<int>(xs.size()); }
  Site site() const { return where; }
  template <class A>
  const A& attributes() const {
    return *static_cast<const A*>(attrs);
  }
  // Adds a piece to the gradient of operand i. If the operand was broadcast, the piece is summed over the broadcast
  // dimensions. Does nothing if the operand needs no gradient.
  void dx(int i, const Tensor& piece);
  // Adds a piece that is zero outside of a window of operand i. `window` has the form that slice() takes. Only the elements
  // in the window are added (gradient/window_sum.h).
  void dx_window(int i, const Tensor& piece, const SliceAttrs& window);

  // For control flow, whose gradient adds up pass by pass. Takes over the gradient that operand i has so far, or an undefined
  // tensor. dx() must then give the whole sum. So pieces add up in the order of an ordinary loop. If one tensor is an operand
  // twice, only the last of the two can take it.
  Tensor take(int i);

  // The members below are set by the walk.
  std::vector<Tensor> so_far;  // for each operand: the gradient so far; undefined if it cannot be taken
  std::vector<bool> taken;
  struct Window {
    int operand = 0;
    Tensor piece;
    SliceAttrs at;
  };
  std::vector<Tensor> xs, ys, dys, dxs;
  std::vector<Window> windows;
  std::vector<bool> need;
  const void* attrs = nullptr;
  std::span<const Region> regions = {};  // the regions of a control-flow node
  Site where;
};

// Sums t over the dimensions along which `shape` was broadcast to t's shape.
Tensor sum_to(const Tensor& t, const Shape& shape, Site site);

}  // namespace TAPEDECK_API
