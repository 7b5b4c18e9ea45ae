// A gradient that arrives in windows: pieces of a tensor, zero everywhere else.
//
//     %a = slice(%x) {starts=[0], stops=[2]}    %b = slice(%x) {starts=[2], stops=[4]}      x: f32[4]
//     the gradient of %x:  concat(%da, %db)  and not  add(pad(%da), pad(%db))
//
// Pieces are kept as they are, in disjoint cells. Where a piece falls on a cell it is added to it; where it falls on part of
// one the cells are cut (with slices, which are views). In the end the cells are put together by concatenation, zeros only in
// the gaps: what the cells cover is not filled with zeros first, however many they are. Every element is the sum of its pieces
// in the order in which they came, the first written. A piece that falls on very many cells at once is refused: then it is
// cheaper to write the whole and add in place.
//
// ccv accumulates gradients of aliases likewise and leaves zero-fill out by coordinate compression, with fixed limits; here
// there are none. n pieces that tile or overlap by a bounded number cost O(n log^2 n).
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/gradient/box_index.h>

#include <map>
#include <vector>

namespace tapedeck {

class WindowSum {
 public:
  WindowSum(const Type& whole, Site site) : whole_(whole), site_(site) {}
  // False: not added. `window` as slice() takes it; one with steps is refused.
  bool add(const Tensor& piece, const SliceAttrs& window);
  Tensor assemble();

 private:
  struct Cell {
    Box box;
    Tensor piece;
    bool gone = false;
  };
  struct Cut {  // of a region: across `axis`, between the cells of one side and those of the other
    int axis = 0;
    std::int64_t at = 0;
  };
  using Ids = std::vector<std::int32_t>;

  const Box& box(std::int32_t id) const { return cells_[id].box; }
  void insert(const Box& box, const Tensor& piece);
  void merge(const Box& box, const Tensor& piece, const Ids& overlapped);
  Tensor part(const Tensor& piece, const Box& of, const Box& box) const;
  Tensor zeros_of(const Shape& shape);
  Tensor put_together(const Box& region, Ids ids);
  std::vector<Box> strips(const Box& region, int axis, Ids* ids, std::vector<Ids>* cells) const;
  Cut best_cut(const Box& region, const Ids& ids) const;
  Tensor cut_in_two(const Box& region, const Ids& ids);

  Type whole_;
  Site site_;
  std::vector<Cell> cells_;
  BoxIndex index_;
  Tensor zero_;
  std::map<std::vector<std::int64_t>, Tensor> gaps_;  // by shape
};

}  // namespace tapedeck
