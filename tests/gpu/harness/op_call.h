// One call of an op's kernel on a device, with everything that it may touch in one block of memory: operands, results and
// workspace, with guards of 256 bytes between them. All bytes that are no elements of operands are poisoned. After the call
// every byte that is no element of a result, and no workspace, must be as it was.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/tests/gpu/harness/device.h>

#include <string>
#include <vector>

namespace tapedeck::gpu {

// The layout that the operands and results of a call are asked to have. An operand or result whose kernel does not take it is
// dense.
struct Arrangement {
  const char* name = "dense";
  bool reversed = false;    // memory holds the dimensions in reverse order
  bool columns = false;     // memory holds the last two dimensions in reverse order
  std::int64_t gap = 1;     // factor on every stride
  std::int64_t offset = 0;  // elements before the first one, and after each row
  bool rows_apart = false;  // only the stride of the first dimension is larger than dense
  unsigned repeated = 0;    // a bit for each dimension in which operands repeat their first slice
  bool strided_results = false;
  bool in_place = false;  // results lie on the operands that the op pairs them with
};

struct Outcome {
  std::string error;                                // empty, or what went wrong
  std::vector<std::vector<unsigned char>> results;  // the elements of each result in row-major order
};

class OpCall {
 public:
  // Operands are dense. Those of an elementwise op, and the leading dimensions of a product, are broadcast to the first result.
  OpCall(const Op& op, const void* attrs, const std::vector<Tensor>& operands, const std::vector<Type>& results,
         const Arrangement& arrangement);

  // Whether the arrangement has changed anything.
  bool differs_from_dense() const { return differs_; }
  // Runs the kernel once. Two runs on one device must give the same bits.
  Outcome run(Device& device) const;

 private:
  struct Place {
    View view;           // data is null
    std::size_t at = 0;  // where the first element lies in the block
  };
  using Bytes = std::vector<unsigned char>;

  Place place(const Type& type, const std::int64_t* strides, std::int64_t offset, std::int64_t extent);
  void place_operand(int i, const Tensor& dense, const Arrangement& arrangement);
  void place_result(int k, const Type& type, const Arrangement& arrangement);
  bool shares(int k, const Arrangement& arrangement);
  void broadcast(View* view, const Shape& result) const;
  std::vector<View> views_in(unsigned char* block) const;
  void allow(const Place& place);
  std::string touched(const Bytes& after, std::size_t workspace_end) const;

  const Op& op_;
  const void* attrs_;
  int n_operands_ = 0;
  bool differs_ = false;
  std::vector<Place> places_;  // operands, then results
  Bytes image_;                // the block before the call, without the workspace
  Bytes may_change_;           // a byte for each byte of the image
};

// Calls f(offset, n), in elements, for runs of n elements that lie side by side, in row-major order: all elements at once if
// the view is dense, otherwise one by one.
template <class F>
void for_runs(const View& view, F&& f) {
  if (view.numel() == 0) return;
  if (view.dense()) return f(std::int64_t{0}, view.numel());
  std::int64_t at[kMaxRank] = {}, offset = 0;
  for (std::int64_t left = view.numel(); left > 0; --left) {
    f(offset, std::int64_t{1});
    for (int d = view.rank - 1; d >= 0; --d) {
      offset += view.strides[d];
      if (++at[d] < view.sizes[d]) break;
      offset -= view.sizes[d] * view.strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace tapedeck::gpu
