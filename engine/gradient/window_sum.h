// The sum of gradient pieces that arrive in windows. A piece is the gradient of one window of a tensor, and is zero
// elsewhere.
//
//       %a = slice(%x) {starts=[0], stops=[2]}    %b = slice(%x) {starts=[2], stops=[4]}      x: f32[4]
//       the gradient of %x:  concat(%da, %db)  and not  add(pad(%da), pad(%db))
//
// The sum is kept as disjoint cells. A new piece that covers exactly one cell is added to the cell. A new piece that overlaps
// part of a cell cuts the cell (with slices, which are views), and the common part is added. At the end the cells are
// concatenated, with zeros in the gaps only. Every element is the sum of its pieces in the order of their arrival, and the
// first piece is written. A piece that overlaps many cells at once is refused; the caller then writes the whole tensor and
// adds in place, which is cheaper.
//
// ccv accumulates gradients of aliases in a similar way, and avoids filling with zeros by coordinate compression with fixed
// limits. This class has no such limits. n pieces cost O(n log^2 n) if each overlaps a bounded number of others.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/gradient/box_index.h>

#include <map>
#include <vector>

namespace tapedeck {

class WindowSum {
 public:
  WindowSum(const Type& whole, Site site) : whole_(whole), site_(site) {}
  // Adds a piece. `window` has the form that slice() takes. Returns false, and adds nothing, if the window has steps or if
  // the piece overlaps too many cells.
  bool add(const Tensor& piece, const SliceAttrs& window);
  // The whole gradient, put together from the cells.
  Tensor assemble();

 private:
  struct Cell {
    Box box;
    Tensor piece;
    bool gone = false;
  };
  struct Cut {  // a cut of a region across `axis` at coordinate `at`
    int axis = 0;
    std::int64_t at = 0;
  };
  using Ids = std::vector<std::int32_t>;
  struct Joining {  // a region that is being put together from its boxes, one after the other
    int axis = 0;
    std::vector<Box> boxes;
    std::vector<Ids> cells;  // of each box; if the cut divides cells, all cells of the region, in the first entry
    bool divides_cells = false;
    std::vector<Tensor> parts;  // of the first boxes
  };

  const Box& box(std::int32_t id) const { return cells_[id].box; }
  void insert(const Box& box, const Tensor& piece);
  void merge(const Box& box, const Tensor& piece, const Ids& overlapped);
  Tensor part(const Tensor& piece, const Box& of, const Box& box) const;
  Tensor zeros_of(const Shape& shape);
  Tensor put_together(const Box& region, Ids ids);
  Tensor begin(const Box& region, Ids ids, std::vector<Joining>* open);
  Tensor single(const Box& region, const Cell& cell) const;
  std::vector<Box> strips(const Box& region, int axis, Ids* ids, std::vector<Ids>* cells) const;
  Cut best_cut(const Box& region, const Ids& ids) const;
  Joining cut_in_two(const Box& region, Ids ids) const;
  Ids divide_cells(const Box& side, const Ids& ids);

  Type whole_;
  Site site_;
  std::vector<Cell> cells_;
  BoxIndex index_;
  Tensor zero_;
  std::map<std::vector<std::int64_t>, Tensor> gaps_;  // zeros by shape
};

}  // namespace tapedeck
