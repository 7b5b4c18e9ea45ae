// Boxes in a lattice - windows of a tensor - and which of them overlap a given one.
//
// A forest of bounding-volume trees whose sizes are powers of two (Bentley and Saxe's logarithmic method): adding n boxes costs
// O(n log^2 n) in all, in whatever order they come, a question O(log^2 n) and what it finds where boxes are disjoint.
#pragma once

#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/attrs.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// [low, high) in every dimension.
struct Box {
  int rank = 0;
  std::int64_t low[kMaxRank] = {}, high[kMaxRank] = {};

  static Box whole(const Shape& shape);
  bool operator==(const Box& o) const;
  std::int64_t numel() const;
  Shape shape() const;
  bool overlaps(const Box& o) const;  // they share an element; boxes of rank 0 always do
  Box common(const Box& o) const;     // REQUIRES: they overlap
  // Disjoint boxes that make up this one without `hole`. REQUIRES: they overlap.
  std::vector<Box> without(const Box& hole) const;
};

class BoxIndex {
 public:
  void add(const Box& box, std::int32_t id);
  void remove(std::int32_t id);
  // Ids of the boxes that overlap this one, in ascending order.
  std::vector<std::int32_t> overlapping(const Box& box) const;

 private:
  struct Item {
    Box box;
    std::int32_t id;
  };
  struct Span {  // items [first, last) of a tree and the box around them; halves: the next span, and `right` (0: a leaf)
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
  std::vector<bool> removed_;  // by id
};

}  // namespace tapedeck
