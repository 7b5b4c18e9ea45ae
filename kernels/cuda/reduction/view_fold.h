// Folds a view of any strides over any set of axes (fold.h). An Op says what is folded:
//
//     using In, A, Out             the elements, the accumulator, the results; In and Out may be Integer (elements.h)
//     kPacks                       whether kernels for packs are compiled
//     kShifts                      whether at() wants the first element of the sequence
//     A identity()
//     A at(x, first, i)            element i of a sequence whose first element is `first`
//     A combine(A a, A b)
//     Value<Out> finish(A total, first, length)
#pragma once

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cuda/fold.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

// Dimensions of a view that are walked row-major. Dimensions of size 1 are dropped, and neighbours are merged where the strides
// allow it.
struct Walked {
  int rank = 0;
  QuickDivisor sizes[kMaxRank];
  std::int64_t strides[kMaxRank], numel = 1;

  void append(std::int64_t size, std::int64_t stride) {
    numel *= size;
    if (size == 1) return;
    if (rank > 0 && strides[rank - 1] == stride * size) {
      sizes[rank - 1] = QuickDivisor(sizes[rank - 1].divisor * size);
      strides[rank - 1] = stride;
      return;
    }
    sizes[rank] = QuickDivisor(size);
    strides[rank++] = stride;
  }
  TAPEDECK_DEVICE std::int64_t offset(std::int64_t index) const {
    std::int64_t offset = 0;
    TAPEDECK_ROLLED
    for (int d = rank - 1; d > 0; --d) {
      const std::int64_t rest = numel <= QuickDivisor::kMost ? sizes[d].quick(index) : index / sizes[d].divisor;
      offset += (index - rest * sizes[d].divisor) * strides[d];
      index = rest;
    }
    return rank == 0 ? 0 : offset + index * strides[0];
  }
  std::int64_t size(int d) const { return sizes[d].divisor; }
  // Whether all strides are multiples of `width`, but for neighbours in the last dimension if `packed`, which holds whole
  // packs.
  bool fits_packs(std::int64_t width, bool packed) const {
    if (packed && (rank == 0 || strides[rank - 1] != 1 || size(rank - 1) % width != 0)) return false;
    for (int d = 0; d < (packed ? rank - 1 : rank); ++d)
      if (strides[d] % width != 0) return false;
    return true;
  }
  // The distance of two neighbours; 0 where there are none.
  std::int64_t step() const { return rank == 0 ? 0 : strides[rank - 1] < 0 ? -strides[rank - 1] : strides[rank - 1]; }
};

struct Split {
  Walked kept, reduced;

  Split(const View& x, const Ints& axes) {
    for (int d = 0; d < x.rank; ++d) {
      bool is_reduced = false;
      for (const std::int64_t axis : axes) is_reduced |= axis == d;
      (is_reduced ? reduced : kept).append(x.sizes[d], x.strides[d]);
    }
  }
  Pieces pieces() const { return {kept.numel, reduced.numel, across()}; }
  // Without packs, sequences of up to kShort elements are never cut, so that their bits depend on the shape alone.
  Pieces pieces_without_packs() const { return {kept.numel, reduced.numel, across() && reduced.numel > Pieces::kShort}; }
  // Short sequences, and sequences that lie side by side, are folded across.
  bool across() const {
    if (reduced.numel <= kWarp && kept.numel >= kWarp) return true;
    return kept.rank > 0 && reduced.rank > 0 && kept.size(kept.rank - 1) >= 16 && kept.step() < reduced.step();
  }
};

template <class Op>
struct ViewTask {
  using A = typename Op::A;
  using In = typename Op::In;
  struct Place {
    std::int64_t at;
    Value<In> first;
  };
  static constexpr int kWidth = sizeof(In) < 16 ? static_cast<int>(16 / sizeof(In)) : 1;
  using Packed = Pack<In, kWidth>;
  Op op;
  Split split;
  const void* from;
  void* to;
  DType from_dtype, to_dtype;

  TAPEDECK_DEVICE A identity() const { return op.identity(); }
  TAPEDECK_DEVICE A combine(const A& a, const A& b) const { return op.combine(a, b); }
  TAPEDECK_DEVICE Place place(std::int64_t result) const {
    Place p{};
    if (split.reduced.numel == 0) return p;
    p.at = split.kept.offset(result);
    if constexpr (Op::kShifts) p.first = load<In>(from, from_dtype, p.at);
    return p;
  }
  TAPEDECK_DEVICE A at(const Place& p, std::int64_t i) const {
    return op.at(load<In>(from, from_dtype, p.at + split.reduced.offset(i)), p.first, i);
  }
  TAPEDECK_DEVICE Packed pack(const Place& p, std::int64_t i) const {
    return *reinterpret_cast<const Packed*>(static_cast<const In*>(from) + p.at + split.reduced.offset(i));
  }
  TAPEDECK_DEVICE A of_pack(const Place& p, const Packed& x, int e, std::int64_t i) const {
    return op.at(x.element[e], p.first, i);
  }
  TAPEDECK_DEVICE void finish(std::int64_t result, const A& total) const {
    store<typename Op::Out>(to, to_dtype, result, op.finish(total, place(result).first, split.reduced.numel));
  }
};

template <class Op>
void fold_view(const KernelCall& call, const Ints& axes, const Op& op) {
  const View &in = call.inputs[0], &out = call.outputs[0];
  const Split split(in, axes);
  const ViewTask<Op> task{op, split, in.data, out.data, in.dtype, out.dtype};
  const bool across = split.across();
  if constexpr (Op::kPacks) {
    constexpr int kWidth = ViewTask<Op>::kWidth;
    if (is_aligned(task.from, 16) && split.kept.fits_packs(kWidth, across) && split.reduced.fits_packs(kWidth, !across)) {
      if (across) return fold_across_by_packs(call, task, split.pieces(), call.workspace);
      if (split.reduced.numel >= kSlots) return fold_along_by_packs(call, task, split.pieces(), call.workspace);
    }
  }
  fold(call, task, split.pieces_without_packs(), across, call.workspace);
}

// The workspace of fold_view for an accumulator of at most `accumulator` bytes.
inline std::int64_t view_workspace(const KernelCall& call, const Ints& axes, std::size_t accumulator) {
  return Split(call.inputs[0], axes).pieces().bytes(accumulator);
}

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
