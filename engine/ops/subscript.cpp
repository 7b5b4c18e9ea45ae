// Subscripts, in two steps:
//
//       x[{2, Range{0, 4}, newaxis, rows, columns}]
//       kept  = x with positions, ranges and new axes        slice, flip, reshape; a view unless a range runs backwards
//       result = kept with tensors and masks                 index_select for one tensor, gather_nd for several,
//                                                            boolean_mask for a mask alone
#include <tapedeck/engine/ops/subscript.h>

#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/eager/call_scope.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tapedeck {
namespace {

using Kind = Index::Kind;

// The elements start, start + step, ... before `stop` of an axis; `backwards` takes them in the opposite order.
struct Steps {
  std::int64_t start = 0, stop = 0, step = 1;
  bool backwards = false;
};

// The elements that a range chooses of an axis of n elements, by Python's rules. REQUIRES: the step is not 0.
Steps steps_of(const Range& range, std::int64_t n) {
  auto place = [n](const std::optional<std::int64_t>& end, std::int64_t absent, std::int64_t least, std::int64_t most) {
    return end ? std::clamp(*end < 0 ? *end + n : *end, least, most) : absent;
  };
  const std::int64_t longest = std::max<std::int64_t>(n, 1);  // longer steps take one element too
  if (range.step > 0) {
    const std::int64_t start = place(range.start, 0, 0, n), stop = place(range.stop, n, 0, n);
    return {start, std::max(start, stop), std::min(range.step, longest), false};
  }
  const std::int64_t step = range.step < -longest ? longest : -range.step;
  const std::int64_t from = place(range.start, n - 1, -1, n - 1), to = place(range.stop, -1, -1, n - 1);
  if (from <= to) return {0, 0, 1, true};
  return {from - (from - to - 1) / step * step, from + 1, step, true};
}

bool is_mask(const Index& index) { return index.kind() == Kind::tensor && index.tensor().dtype() == DType::boolean; }

// A tensor of a subscript, and the axes that it indexes.
struct Taken {
  Tensor tensor;
  int axis = 0;
  bool mask = false;
};

class Subscript {
 public:
  Subscript(const Arg& x, std::span<const Index> at) : x_(x.tensor()), site_(x.site()) {
    if (!x_.defined()) refuse("the tensor is undefined");
    const int named = named_axes(at);
    const int rank = x_.rank();
    if (named > rank) refuse(fmt::format("the subscripts name {} axes; {} has {}", named, to_string(x_.type()), rank));
    bool filled = false;
    for (const Index& index : at) {
      note_order(index.kind() == Kind::tensor || index.kind() == Kind::position);
      filled |= index.kind() == Kind::ellipsis;
      add(index, rank - named);
    }
    if (!filled)
      for (int left = rank - named; left > 0; --left) add_range({});
    if (kept_.size() > static_cast<std::size_t>(kMaxRank)) refuse_rank(static_cast<int>(kept_.size()));
  }

  bool has_tensors() const { return !taken_.empty(); }
  bool runs_backwards() const { return flips_.size > 0; }

  // x with the positions, ranges and new axes.
  Tensor kept() const {
    Tensor y = x_;
    if (cut_) y = slice(at(y), starts_, stops_, steps_);
    if (flips_.size > 0) y = flip(at(y), flips_);
    const Shape shape{std::span<const std::int64_t>(kept_)};
    return reshaped_ ? reshape(at(y), shape) : y;
  }

  Tensor result() const {
    const CallScope call(site_);
    const Tensor y = kept();
    if (taken_.empty()) return y;
    if (taken_.size() == 1 && taken_[0].mask) return by_mask(y, taken_[0]);
    return by_tensors(y);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw TypeError(error_text("index", why, site_)); }
  [[noreturn]] void refuse_rank(int rank) const {
    refuse(fmt::format("the result would have {} dimensions, and no tensor has more than {}", rank, kMaxRank));
  }
  Arg at(const Tensor& t) const { return Arg(t, site_.file, site_.line); }
  int axis() const { return starts_.size; }  // the next axis of x that has no subscript yet

  // The number of axes that the subscripts name. Checks the tensors among them.
  int named_axes(std::span<const Index> at) const {
    int named = 0, fillers = 0;
    for (const Index& index : at) {
      fillers += index.kind() == Kind::ellipsis;
      if (index.kind() == Kind::tensor) check_tensor(index.tensor());
      if (index.kind() == Kind::position || index.kind() == Kind::range) ++named;
      if (index.kind() == Kind::tensor) named += is_mask(index) ? index.tensor().rank() : 1;
    }
    if (fillers > 1) refuse("only one `ellipsis` may stand in a subscript");
    return named;
  }

  void check_tensor(const Tensor& t) const {
    if (!t.defined()) refuse("a tensor among the subscripts is undefined");
    if (t.dtype() == DType::boolean && t.rank() == 0) refuse("a mask needs at least one dimension");
    if (t.dtype() != DType::boolean && t.dtype() != DType::i32 && t.dtype() != DType::i64)
      refuse(fmt::format("a tensor among the subscripts must be i32, i64 or bool, not {}", to_string(t.type())));
  }

  // Finds out where the axes of the tensors go: in front if something stands between the tensors. `chooses`: the subscript is a
  // tensor or a position, which counts as a tensor beside one.
  void note_order(bool chooses) {
    if (!chooses) {
      parted_ = chosen_;
      return;
    }
    if (!chosen_) place_ = static_cast<int>(kept_.size());
    apart_ |= parted_;
    chosen_ = true;
  }

  void add(const Index& index, int unnamed) {
    switch (index.kind()) {
      case Kind::position:
        return add_position(index.position());
      case Kind::range:
        return add_range(index.range());
      case Kind::newaxis:
        kept_.push_back(1);
        reshaped_ = true;
        return;
      case Kind::ellipsis:
        for (int left = unnamed; left > 0; --left) add_range({});
        return;
      case Kind::tensor:
        return add_tensor(index);
    }
  }

  void add_steps(const Steps& steps) {
    const std::int64_t n = x_.shape().sizes[axis()];
    if (steps.backwards) flips_.push_back(axis());
    cut_ |= steps.start != 0 || steps.stop != n || steps.step != 1;
    starts_.push_back(steps.start);
    stops_.push_back(steps.stop);
    steps_.push_back(steps.step);
  }

  void add_position(std::int64_t position) {
    const std::int64_t n = x_.shape().sizes[axis()], start = position < 0 ? position + n : position;
    if (start < 0 || start >= n)
      refuse(fmt::format("position {} is outside axis {} of {}, which has size {}", position, axis(), to_string(x_.type()), n));
    add_steps({start, start + 1, 1, false});
    reshaped_ = true;
  }

  void add_range(const Range& range) {
    if (range.step == 0) refuse(fmt::format("the step of axis {} is 0", axis()));
    const Steps steps = steps_of(range, x_.shape().sizes[axis()]);
    add_steps(steps);
    kept_.push_back((steps.stop - steps.start + steps.step - 1) / steps.step);
  }

  void add_tensor(const Index& index) {
    const Tensor& t = index.tensor();
    taken_.push_back({t, static_cast<int>(kept_.size()), is_mask(index)});
    if (is_mask(index))
      for (int d = 0; d < t.rank(); ++d)
        if (t.shape()[d] != x_.shape().sizes[axis() + d])
          refuse(fmt::format("the mask {} does not fit {} from axis {} on", to_string(t.type()), to_string(x_.type()), axis()));
    for (int left = is_mask(index) ? t.rank() : 1; left > 0; --left) add_range({});
  }

  // ---- tensors and masks ----

  // Where the axes of the tensors stand in the result.
  int place() const { return apart_ ? 0 : place_; }

  // y with these axes first.
  Tensor in_front(const Tensor& y, const Ints& axes) const {
    Ints order = axes;
    for (int d = 0; d < y.rank(); ++d)
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) order.push_back(d);
    return std::is_sorted(order.begin(), order.end()) ? y : transpose(at(y), order);
  }

  // y with the `n` axes from `from` on moved to `to`.
  Tensor moved(const Tensor& y, int from, int n, int to) const {
    if (from == to || n == 0) return y;
    std::vector<std::int64_t> order;
    for (int d = 0; d < y.rank(); ++d)
      if (d < from || d >= from + n) order.push_back(d);
    for (int d = 0; d < n; ++d) order.insert(order.begin() + to + d, from + d);
    Ints axes;
    for (std::int64_t d : order) axes.push_back(d);
    return transpose(at(y), axes);
  }

  // No attribute may hold the number of true elements: in a capture, a replay may count another number.
  Tensor by_mask(const Tensor& y, const Taken& mask) const {
    Ints axes;
    for (int d = 0; d < mask.tensor.rank(); ++d) axes.push_back(mask.axis + d);
    return moved(boolean_mask(at(in_front(y, axes)), mask.tensor), 0, 1, place());
  }

  Tensor by_tensors(const Tensor& y) const {
    std::vector<Tensor> parts;
    Ints axes;
    for (const Taken& taken : taken_) add_parts(taken, &parts, &axes);
    const Shape common = common_shape(parts);
    const int rank = common.rank + y.rank() - axes.size;
    if (rank > kMaxRank) refuse_rank(rank);
    if (parts.size() == 1) return by_one(y, parts[0], static_cast<int>(axes[0]));
    if (common.rank == kMaxRank) refuse(fmt::format("several tensors may have at most {} dimensions", kMaxRank - 1));
    for (Tensor& part : parts) part = broadcast_to(at(cast(at(part), DType::i64)), common);
    const Tensor result = gather_nd(at(in_front(y, axes)), stack(parts, -1, site_));
    return moved(result, 0, common.rank, place());
  }

  // Adds the tensor, or the ones that nonzero() gives for a mask.
  void add_parts(const Taken& taken, std::vector<Tensor>* parts, Ints* axes) const {
    if (!taken.mask) {
      parts->push_back(taken.tensor);
      axes->push_back(taken.axis);
      return;
    }
    if (capturing_counts())
      refuse_in_capture(
          *thread_state().tape,
          error_text("index", "a mask beside other tensors cannot be captured: a replay may count another number of elements",
                     site_));
    const Tensor places = nonzero(at(taken.tensor));
    for (int d = 0; d < taken.tensor.rank(); ++d) {
      parts->push_back(select(at(places), 1, d));
      axes->push_back(taken.axis + d);
    }
  }

  Shape common_shape(const std::vector<Tensor>& parts) const {
    Shape common;
    for (const Tensor& part : parts) {
      const Shape before = common;
      if (!broadcast_shapes(before, part.shape(), &common))
        refuse("the tensors do not broadcast to each other: " + listed(parts));
    }
    return common;
  }

  static std::string listed(const std::vector<Tensor>& parts) {
    std::string text;
    for (const Tensor& part : parts) text += (text.empty() ? "" : ", ") + to_string(part.type());
    return text;
  }

  Tensor by_one(const Tensor& y, const Tensor& part, int axis) const {
    const Tensor line = part.rank() == 1 ? part : reshape(at(part), Shape{part.numel()});
    const Tensor chosen = index_select(at(y), axis, line);
    if (part.rank() == 1) return moved(chosen, axis, 1, place());
    Shape shape;
    for (int d = 0; d < y.rank(); ++d) {
      if (d != axis)
        shape.sizes[shape.rank++] = y.shape()[d];
      else
        for (std::int64_t n : part.shape()) shape.sizes[shape.rank++] = n;
    }
    return moved(reshape(at(chosen), shape), axis, part.rank(), place());
  }

  const Tensor x_;
  const Site site_;
  Ints starts_, stops_, steps_;     // of the slice of x; one for each axis of x
  Ints flips_;                      // the axes of x that are taken backwards
  std::vector<std::int64_t> kept_;  // the shape of kept()
  std::vector<Taken> taken_;        // the tensors, with axes of kept()
  bool cut_ = false;                // the slice is not all of x
  bool reshaped_ = false;           // kept() drops or adds axes
  int place_ = 0;                   // the axis of kept() at the first tensor or position
  bool chosen_ = false;             // a tensor or a position was there
  bool parted_ = false;             // after it came another subscript
  bool apart_ = false;              // and then a tensor or a position again
};

}  // namespace

Tensor index(const Arg& x, std::span<const Index> at) { return Subscript(x, at).result(); }

Tensor index(const Arg& x, std::initializer_list<Index> at) { return index(x, std::span<const Index>(at.begin(), at.size())); }

Tensor Tensor::operator[](const Index& at) const {
  return index(Arg(*this, at.site().file, at.site().line), std::span<const Index>(&at, 1));
}

Tensor Tensor::operator[](std::initializer_list<Index> at) const {
  const Site site = at.size() > 0 ? at.begin()->site() : Site{};
  return index(Arg(*this, site.file, site.line), at);
}

const Tensor& index_put_(const Tensor& x, std::initializer_list<Index> at, const Arg& value) {
  const Site site = value.site();
  const Subscript subscript(Arg(x, site.file, site.line), {at.begin(), at.size()});
  auto refuse = [site](const char* why) { throw TypeError(error_text("index_put_", why, site)); };
  if (subscript.runs_backwards())
    refuse("a range of negative step makes a copy; write flip(value) into the same range forwards");
  if (!subscript.has_tensors()) {
    copy_(subscript.kept(), value);
    return x;
  }
  const bool number = value.is_scalar() || (value.tensor().defined() && value.tensor().rank() == 0);
  if (at.size() == 1 && is_mask(*at.begin()) && at.begin()->tensor().shape() == x.shape() && number)
    return masked_fill_(x, at.begin()->tensor(), value);
  refuse("tensors among the subscripts make a copy; call scatter(), index_add(), scatter_nd() or masked_fill_()");
  return x;
}

}  // namespace tapedeck
