// What an op's vjp sees: the operands and results of one recorded node, the gradients of its results, and where to put the
// gradients of its operands. A vjp is ordinary calls of ops on tensors. Run on real tensors it is eager backward; run on
// abstract tensors it tells what backward reads.
#pragma once

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/tensor.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

class Vjp {
 public:
  // Operand and result. Where the derived save set says that backward does not read the data, this is an abstract tensor: its
  // type can be asked, its data cannot be used.
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
  // A piece of operand i's gradient. A piece of a broadcast operand is summed over the broadcast dimensions. Ignored if the
  // operand needs no gradient.
  void dx(int i, const Tensor& piece);
  // A piece that is zero outside a window of operand i, which is given as slice takes it: only the window is summed
  // (window_sum.h).
  void dx_window(int i, const Tensor& piece, const SliceAttrs& window);

  // Of control flow, which adds up pass by pass: takes over the gradient that operand i has so far, or an undefined tensor.
  // dx() then gives the whole sum, so that pieces add up in the order in which an ordinary loop adds them. Of a tensor that
  // stands twice the last operand does.
  Tensor take(int i);

  // Set up by the tape.
  std::vector<Tensor> so_far;  // by operand; empty where nothing can be taken
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
  std::span<const Region> regions = {};  // of a node of control flow
  Site where;
};

// t summed down to `shape`, from which it was broadcast.
Tensor sum_to(const Tensor& t, const Shape& shape, Site site);

}  // namespace TAPEDECK_API
