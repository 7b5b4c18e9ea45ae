// Subscripts as in NumPy: index(x, {...}), x[i] and x[{...}] choose elements by position, range, tensor or mask.
//
//     x[2]  x[-1]                       one position of the first axis; the axis is dropped
//     x[Range{1, 3}]                    positions 1 and 2, as 1:3 in Python. Range{} is all of an axis, as :
//     x[Range{.start = -2}]             the last two, as -2:
//     x[Range{.step = 2}]               every second, as ::2
//     x[{0, Range{}, -1}]               one subscript for each axis, the first axis first; axes that are not named stay whole
//     x[{ellipsis, 0}]                  the last axis; `ellipsis` stands for all axes that are not named
//     x[{newaxis, Range{}}]             a new axis of size 1
//     x[rows]  x[{rows, columns}]       the positions in tensors of i32 or i64; these tensors broadcast to each other
//     x[x > 0]                          where a tensor of bool, which covers as many axes as it has, is true
//
// The rules are those of Python and NumPy: negative positions count from the end, and ranges are limited to the axis. Several
// tensors take elements together, as zip() does. Their common shape stands where the axes that they index stood, if these
// subscripts follow each other directly, and else in front of all other axes; beside tensors, positions count as tensors here.
// A mask counts as the tensors that nonzero() gives.
//
// With positions, ranges of positive steps, `newaxis` and `ellipsis` alone, the result is a view: it shares the bytes of x. A
// range of negative step, a tensor or a mask makes a copy, and so a write into the result does not reach x; index_put_() and
// `+=` refuse it.
//
// All of it is made of recorded ops (slice, reshape, flip, index_select, gather_nd, nonzero): gradients pass, and it can stand
// in captures, checkpoints and abstract mode. The shape of a result of a mask depends on the elements of the mask, which are
// read on the host: an abstract mask is a TypeError; in a capture a mask must be the only tensor of its subscript.
//
// Throws TypeError "[index] ..." with the place of the call if a position lies outside of its axis, if there are more
// subscripts than axes, if a tensor is of another dtype, if a mask does not fit its axes, if a step is 0, or if the result
// would have more than kMaxRank dimensions. A number outside of its axis in a tensor is an ExecutionError when the op runs.
// O(1) for views, else O(elements of the result), plus O(elements of x) if x must be laid out anew first: several tensors, or a
// mask, whose axes are not the first ones of x.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>

namespace tapedeck TAPEDECK_API {

// start:stop:step. What is left out is the end of the axis from which, or towards which, the step goes.
struct Range {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;
};

struct NewAxis {};
inline constexpr NewAxis newaxis{};

struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};

// One subscript, with the place of the user's call. It is made implicitly from an integer, Range, newaxis, ellipsis or Tensor.
class Index {
 public:
  enum class Kind : std::uint8_t { position, range, newaxis, ellipsis, tensor };

  template <std::integral Integer>
  Index(Integer position, Site site = {__builtin_FILE(), __builtin_LINE()})  // NOLINT
      : kind_(Kind::position), position_(position_of(position)), site_(site) {}
  Index(const Range& range, Site site = {__builtin_FILE(), __builtin_LINE()})  // NOLINT
      : kind_(Kind::range), range_(range), site_(site) {}
  Index(NewAxis, Site site = {__builtin_FILE(), __builtin_LINE()})  // NOLINT
      : kind_(Kind::newaxis), site_(site) {}
  Index(Ellipsis, Site site = {__builtin_FILE(), __builtin_LINE()})  // NOLINT
      : kind_(Kind::ellipsis), site_(site) {}
  Index(const Tensor& tensor, Site site = {__builtin_FILE(), __builtin_LINE()})  // NOLINT
      : kind_(Kind::tensor), tensor_(tensor), site_(site) {}
  Index(bool) = delete;  // in NumPy a mask without dimensions; no position
  template <std::floating_point Real>
  Index(Real) = delete;  // a position is an integer

  Kind kind() const { return kind_; }
  std::int64_t position() const { return position_; }  // of Kind::position
  const Range& range() const { return range_; }        // of Kind::range
  const Tensor& tensor() const { return tensor_; }     // of Kind::tensor
  Site site() const { return site_; }

 private:
  // No axis is as long as the largest integer, so a larger position may count as that one.
  template <class Integer>
  static std::int64_t position_of(Integer position) {
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) == sizeof(std::int64_t))
      if (position > static_cast<Integer>(INT64_MAX)) return INT64_MAX;
    return static_cast<std::int64_t>(position);
  }

  Kind kind_;
  std::int64_t position_ = 0;
  Range range_;
  Tensor tensor_;
  Site site_;
};

Tensor index(const Arg& x, std::span<const Index> at);
Tensor index(const Arg& x, std::initializer_list<Index> at);

// x[at] = value, in place (inplace.h), and returns x. The value is a number or a tensor that broadcasts to x[at]. The
// subscripts make a view, or are one mask of the shape of x beside a number. Throws TypeError for others, and names the op to
// call.
const Tensor& index_put_(const Tensor& x, std::initializer_list<Index> at, const Arg& value);

}  // namespace TAPEDECK_API
