// Boxes, and a search for the boxes that overlap a given box. The index is a list of trees; tree k has at most 2^k boxes. A
// new box is a tree of one. Trees of equal size are merged, as a carry in binary addition:
//
//       trees of 1, 2, 4 boxes   + 1 box   ->   one tree of 8 boxes
#include <tapedeck/engine/gradient/box_index.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

// ---- boxes ----

Box Box::whole(const Shape& shape) {
  Box box;
  box.rank = shape.rank;
  for (int d = 0; d < shape.rank; ++d) box.high[d] = shape[d];
  return box;
}

bool Box::operator==(const Box& o) const {
  return rank == o.rank && std::equal(low, low + rank, o.low) && std::equal(high, high + rank, o.high);
}

std::int64_t Box::numel() const { return shape().numel(); }

Shape Box::shape() const {
  Shape s;
  s.rank = rank;
  for (int d = 0; d < rank; ++d) s.sizes[d] = high[d] - low[d];
  return s;
}

bool Box::overlaps(const Box& o) const {
  for (int d = 0; d < rank; ++d)
    if (std::max(low[d], o.low[d]) >= std::min(high[d], o.high[d])) return false;
  return true;
}

Box Box::common(const Box& o) const {
  Box box;
  box.rank = rank;
  for (int d = 0; d < rank; ++d) {
    box.low[d] = std::max(low[d], o.low[d]);
    box.high[d] = std::min(high[d], o.high[d]);
  }
  return box;
}

// Cuts off the parts of the box below and above the hole in the first dimension. Then cuts the rest in the second dimension,
// and so on.
std::vector<Box> Box::without(const Box& hole) const {
  std::vector<Box> parts;
  Box rest = *this;
  for (int d = 0; d < rank; ++d) {
    if (hole.low[d] > rest.low[d]) {
      parts.push_back(rest);
      parts.back().high[d] = hole.low[d];
      rest.low[d] = hole.low[d];
    }
    if (hole.high[d] < rest.high[d]) {
      parts.push_back(rest);
      parts.back().low[d] = hole.high[d];
      rest.high[d] = hole.high[d];
    }
  }
  return parts;
}

// ---- the index ----

void BoxIndex::add(const Box& box, std::int32_t id) {
  if (static_cast<std::size_t>(id) >= removed_.size()) removed_.resize(static_cast<std::size_t>(id) + 1);
  Tree fresh;
  fresh.items.push_back({box, id});
  std::size_t k = 0;
  for (; k < trees_.size() && !trees_[k].items.empty(); ++k) {
    for (const Item& item : trees_[k].items)
      if (!removed_[item.id]) fresh.items.push_back(item);
    trees_[k] = Tree();
  }
  if (k == trees_.size()) trees_.emplace_back();
  build(&fresh, 0, static_cast<std::int32_t>(fresh.items.size()));
  trees_[k] = std::move(fresh);
}

void BoxIndex::remove(std::int32_t id) { removed_[id] = true; }

// Builds the subtree of items [first, last). It splits the items at the median of the boxes' middles, in the dimension in
// which the middles are spread most.
void BoxIndex::build(Tree* tree, std::int32_t first, std::int32_t last) {
  constexpr std::int32_t kLeaf = 4;
  Box bounds = tree->items[first].box;
  std::int64_t low[kMaxRank], high[kMaxRank];
  const auto middle = [](const Box& box, int d) { return box.low[d] + box.high[d]; };
  for (int d = 0; d < bounds.rank; ++d) low[d] = high[d] = middle(bounds, d);
  for (std::int32_t i = first; i < last; ++i) {
    const Box& box = tree->items[i].box;
    for (int d = 0; d < bounds.rank; ++d) {
      bounds.low[d] = std::min(bounds.low[d], box.low[d]);
      bounds.high[d] = std::max(bounds.high[d], box.high[d]);
      low[d] = std::min(low[d], middle(box, d));
      high[d] = std::max(high[d], middle(box, d));
    }
  }
  const std::size_t at = tree->spans.size();
  tree->spans.push_back({bounds, first, last, 0});
  if (last - first <= kLeaf) return;
  int widest = 0;
  for (int d = 1; d < bounds.rank; ++d)
    if (high[d] - low[d] > high[widest] - low[widest]) widest = d;
  const std::int32_t half = first + (last - first) / 2;
  std::nth_element(tree->items.begin() + first, tree->items.begin() + half, tree->items.begin() + last,
                   [&](const Item& a, const Item& b) {
                     return std::pair(middle(a.box, widest), a.id) < std::pair(middle(b.box, widest), b.id);
                   });
  build(tree, first, half);
  tree->spans[at].right = static_cast<std::int32_t>(tree->spans.size());
  build(tree, half, last);
}

void BoxIndex::search(const Tree& tree, std::int32_t span, const Box& box, std::vector<std::int32_t>* found) const {
  const Span& at = tree.spans[span];
  if (!at.bounds.overlaps(box)) return;
  if (at.right != 0) {
    search(tree, span + 1, box, found);
    search(tree, at.right, box, found);
    return;
  }
  for (std::int32_t i = at.first; i < at.last; ++i) {
    const Item& item = tree.items[i];
    if (item.box.overlaps(box) && !removed_[item.id]) found->push_back(item.id);
  }
}

std::vector<std::int32_t> BoxIndex::overlapping(const Box& box) const {
  std::vector<std::int32_t> found;
  for (const Tree& tree : trees_)
    if (!tree.items.empty()) search(tree, 0, box, &found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tapedeck
