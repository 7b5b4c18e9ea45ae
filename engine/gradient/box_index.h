// Boxes of integer coordinates (windows of a tensor), and an index that finds the boxes that overlap a given box.
//
// The index is a forest of bounding-volume trees whose sizes are powers of two (the logarithmic method of Bentley and Saxe).
// To add n boxes costs O(n log^2 n) in all, in any order. If the boxes are disjoint, a search costs O(log^2 n) plus the
// number of boxes found.
#pragma once

#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/attrs.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// A box holds the indices [low, high) in every dimension.
struct Box {
  int rank = 0;
  std::int64_t low[kMaxRank] = {}, high[kMaxRank] = {};

  static Box whole(const Shape& shape);
  bool operator==(const Box& o) const;
  std::int64_t numel() const;
  Shape shape() const;
  bool overlaps(const Box& o) const;  // whether both share an element; two boxes of rank 0 always do
  Box common(const Box& o) const;     // the elements in both boxes; REQUIRES: the boxes overlap
  // The elements of this box that are not in `hole`, as disjoint boxes. REQUIRES: the boxes overlap.
  std::vector<Box> without(const Box& hole) const;
};

class BoxIndex {
 public:
  void add(const Box& box, std::int32_t id);
  void remove(std::int32_t id);
  // The ids of the boxes that overlap `box`, in ascending order.
  std::vector<std::int32_t> overlapping(const Box& box) const;

 private:
  struct Item {
    Box box;
    std::int32_t id;
  };
  struct Span {  // a node of a tree: items [first, last) and the box around them. Its halves are the next span and span `right`
                 // (0: a leaf)
    Box bounds;
    std::int32_t first, last, right;
  };
  struct Tree {
    std::vector<Item> items;
    std::vector<Span> spans;
  };
  static void build(Tree* tree, std::int32_t first, std::int32_t last);
  void search(const Tree& tree, std::int32_t span, const Box& box, std::vector<std::int32_t>* found) const;

  std::vector<Tree> trees_;    // tree k is empty or holds up to 2^k items
  std::vector<bool> removed_;  // for each id
};

}  // namespace tapedeck
