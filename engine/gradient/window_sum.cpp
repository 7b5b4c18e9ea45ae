// Keeps gradient pieces in disjoint cells, and concatenates the cells at the end (window_sum.h). To concatenate, a region is
// cut into strips along an axis at places that divide no cell, then each strip is cut along another axis, and so on:
//
//       | a a | c c |        strips by columns: [a / b] and [c];   the first strip by rows: [a] and [b]
//       | b b | c c |        result: concat(concat(a, b), c)
#include <tapedeck/engine/gradient/window_sum.h>

#include <tapedeck/engine/eager/core_calls.h>

#include <algorithm>
#include <utility>

namespace tapedeck {

// ---- taking pieces ----

bool WindowSum::add(const Tensor& piece, const SliceAttrs& window) {
  constexpr std::size_t kFew = 4;  // a piece that overlaps more cells than this is refused
  if (window.steps.size) return false;
  if (piece.numel() == 0) return true;
  Box box = Box::whole(whole_.shape);
  for (int d = 0; d < box.rank; ++d) {
    box.low[d] = window.starts[d];
    box.high[d] = window.stops[d];
  }
  const Ids overlapped = index_.overlapping(box);
  if (overlapped.empty()) {
    insert(box, piece);
  } else if (overlapped.size() == 1 && this->box(overlapped[0]) == box) {
    Tensor& sum = cells_[overlapped[0]].piece;
    sum = tapedeck::add(Arg(sum, site_.file, site_.line), piece);
  } else if (overlapped.size() <= kFew) {
    merge(box, piece, overlapped);
  } else {
    return false;
  }
  return true;
}

void WindowSum::insert(const Box& box, const Tensor& piece) {
  index_.add(box, static_cast<std::int32_t>(cells_.size()));
  cells_.push_back({box, piece, false});
}

// Adds a piece that overlaps cells: cuts the cells and the piece, and adds their common parts.
void WindowSum::merge(const Box& box, const Tensor& piece, const Ids& overlapped) {
  std::vector<Box> rest = {box};
  for (std::int32_t id : overlapped) {
    const Cell cell = cells_[id];
    const Box common = box.common(cell.box);
    const Tensor sum = tapedeck::add(part(cell.piece, cell.box, common), part(piece, box, common));
    index_.remove(id);
    cells_[id] = {cell.box, Tensor(), true};
    for (const Box& beside : cell.box.without(common)) insert(beside, part(cell.piece, cell.box, beside));
    insert(common, sum);
    std::vector<Box> left;
    for (const Box& b : rest) {
      if (!b.overlaps(common))
        left.push_back(b);
      else
        for (const Box& beside : b.without(b.common(common))) left.push_back(beside);
    }
    rest = std::move(left);
  }
  for (const Box& b : rest) insert(b, part(piece, box, b));
}

// The elements of `box`, from a piece that covers the box `of`.
Tensor WindowSum::part(const Tensor& piece, const Box& of, const Box& box) const {
  if (of == box) return piece;
  Ints starts, stops;
  for (int d = 0; d < box.rank; ++d) {
    starts.push_back(box.low[d] - of.low[d]);
    stops.push_back(box.high[d] - of.low[d]);
  }
  return slice(Arg(piece, site_.file, site_.line), starts, stops, {});
}

// ---- putting together ----

Tensor WindowSum::assemble() {
  Ids ids;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (!cells_[i].gone) ids.push_back(static_cast<std::int32_t>(i));
  return put_together(Box::whole(whole_.shape), std::move(ids));
}

// Zeros of this shape: one element, broadcast.
Tensor WindowSum::zeros_of(const Shape& shape) {
  if (!zero_.defined()) zero_ = full({}, 0, whole_.dtype, site_);
  Tensor& gap = gaps_[std::vector<std::int64_t>(shape.begin(), shape.end())];
  if (!gap.defined()) gap = broadcast_to(Arg(zero_, site_.file, site_.line), shape);
  return gap;
}

// Cuts the region across the axis at every place where the cut divides no cell, and returns the strips. `cells` gets the
// cells of each strip. The function sorts `ids` along the axis.
std::vector<Box> WindowSum::strips(const Box& region, int axis, Ids* ids, std::vector<Ids>* cells) const {
  std::sort(ids->begin(), ids->end(),
            [&](std::int32_t a, std::int32_t b) { return std::pair(box(a).low[axis], a) < std::pair(box(b).low[axis], b); });
  std::vector<Box> all;
  const auto begin_strip = [&](std::int64_t low, std::int64_t high) {
    all.push_back(region);
    all.back().low[axis] = low;
    all.back().high[axis] = high;
    cells->emplace_back();
  };
  std::int64_t end = region.low[axis];
  for (std::int32_t id : *ids) {
    const std::int64_t low = box(id).low[axis], high = box(id).high[axis];
    if (low > end) begin_strip(end, low);  // a gap
    if (low >= end) begin_strip(low, high);
    all.back().high[axis] = end = std::max(all.back().high[axis], high);
    cells->back().push_back(id);
  }
  if (end < region.high[axis]) begin_strip(end, region.high[axis]);
  return all;
}

// A region whose boxes are not all put together yet waits in a list, because its boxes may be cut again as often as there are
// cells.
Tensor WindowSum::put_together(const Box& region, Ids ids) {
  std::vector<Joining> open;
  Tensor done = begin(region, std::move(ids), &open);
  while (!open.empty()) {
    if (done.defined()) open.back().parts.push_back(std::exchange(done, Tensor()));
    Joining& joining = open.back();
    const std::size_t k = joining.parts.size();
    if (k == joining.boxes.size()) {
      done = concat(joining.parts, joining.axis, site_);
      open.pop_back();
      continue;
    }
    const Box box = joining.boxes[k];
    done = begin(box, joining.divides_cells ? divide_cells(box, joining.cells[0]) : std::move(joining.cells[k]), &open);
  }
  return done;
}

// Returns the region if it holds one cell or none. Otherwise the region is cut into boxes and joins the list, and the result is
// undefined.
Tensor WindowSum::begin(const Box& region, Ids ids, std::vector<Joining>* open) {
  if (ids.empty()) return zeros_of(region.shape());
  if (ids.size() == 1) return single(region, cells_[ids[0]]);
  Joining best;
  for (int axis = 0; axis < region.rank; ++axis) {
    std::vector<Ids> cells;
    std::vector<Box> boxes = strips(region, axis, &ids, &cells);
    if (boxes.size() <= best.boxes.size()) continue;
    best.boxes = std::move(boxes);
    best.cells = std::move(cells);
    best.axis = axis;
  }
  open->push_back(best.boxes.size() == 1 ? cut_in_two(region, std::move(ids)) : std::move(best));
  return {};
}

// The region around one cell, with zeros where the cell does not reach.
Tensor WindowSum::single(const Box& region, const Cell& cell) const {
  if (cell.box == region) return cell.piece;
  Ints before, after;
  for (int d = 0; d < region.rank; ++d) {
    before.push_back(cell.box.low[d] - region.low[d]);
    after.push_back(region.high[d] - cell.box.high[d]);
  }
  return pad(Arg(cell.piece, site_.file, site_.line), before, after);
}

// The cut for cells between which no straight cut exists (a pinwheel): it divides the fewest cells, and is the first of
// several such cuts.
WindowSum::Cut WindowSum::best_cut(const Box& region, const Ids& ids) const {
  Cut best;
  std::size_t fewest = ids.size() + 1;
  for (int axis = 0; axis < region.rank; ++axis) {
    std::vector<std::int64_t> lows, highs;
    for (std::int32_t id : ids) {
      lows.push_back(box(id).low[axis]);
      highs.push_back(box(id).high[axis]);
    }
    std::sort(lows.begin(), lows.end());
    std::sort(highs.begin(), highs.end());
    for (const auto* list : {&lows, &highs})
      for (std::int64_t at : *list) {
        if (at <= region.low[axis] || at >= region.high[axis]) continue;
        const auto begun = static_cast<std::size_t>(std::lower_bound(lows.begin(), lows.end(), at) - lows.begin());
        const auto ended = static_cast<std::size_t>(std::upper_bound(highs.begin(), highs.end(), at) - highs.begin());
        if (begun - ended >= fewest) continue;
        fewest = begun - ended;
        best = {axis, at};
      }
  }
  return best;
}

WindowSum::Joining WindowSum::cut_in_two(const Box& region, Ids ids) const {
  const auto [axis, at] = best_cut(region, ids);
  Joining sides{axis, {region, region}, {std::move(ids)}, true, {}};
  sides.boxes[0].high[axis] = sides.boxes[1].low[axis] = at;
  return sides;
}

// The cells of one side of a cut. A cell that reaches beyond the side becomes a new cell, the part of it that lies inside.
WindowSum::Ids WindowSum::divide_cells(const Box& side, const Ids& ids) {
  Ids inside;
  for (std::int32_t id : ids) {
    const Cell cell = cells_[id];
    if (!cell.box.overlaps(side)) continue;
    const Box common = cell.box.common(side);
    if (common == cell.box) {
      inside.push_back(id);
    } else {
      inside.push_back(static_cast<std::int32_t>(cells_.size()));
      cells_.push_back({common, part(cell.piece, cell.box, common), false});
    }
  }
  return inside;
}

}  // namespace tapedeck
