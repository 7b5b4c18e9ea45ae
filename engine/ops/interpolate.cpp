#include <tapedeck/engine/ops/interpolate.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

// The type of the result: [n,c] of the input, then `size`.
void infer_size(Infer& f, const Ints& size) {
  const Type& x = f.inputs[0];
  if (size.size != x.shape.rank - 2) f.fail(fmt::format("size lists {} numbers for {}", size.size, to_string(x)));
  Type out = x;
  for (int d = 0; d < size.size; ++d) {
    if (size[d] < 1 || size[d] > INT32_MAX || x.shape[d + 2] < 1 || x.shape[d + 2] > INT32_MAX)
      f.fail(fmt::format("cannot resample {} to {} in dimension {}", to_string(x), size[d], d + 2));
    out.shape[d + 2] = size[d];
  }
  f.outputs.assign(1, out);
}

void infer_nearest(Infer& f) {
  const int rank = f.inputs[0].shape.rank;
  if (rank < 3 || rank > 5) f.fail(fmt::format("needs [n,c] and one to three dimensions, got {}", to_string(f.inputs[0])));
  infer_size(f, f.attributes<InterpolateNearestAttrs>().size);
}

void infer_bilinear(Infer& f) {
  infer_require_float(f, f.inputs[0]);
  if (f.inputs[0].shape.rank != 4) f.fail(fmt::format("needs [n,c,h,w], got {}", to_string(f.inputs[0])));
  infer_size(f, f.attributes<InterpolateBilinearAttrs>().size);
}

// Applies `op` to dy, with the size of x. Each op and its gradient op resample to each other's size.
Tensor resampled(const Op& op, Vjp& b) {
  Ints size;
  for (int d = 2; d < b.x(0).rank(); ++d) size.push_back(b.x(0).size(d));
  if (&op == &ops::interpolate_nearest || &op == &ops::interpolate_nearest_grad) {
    const InterpolateNearestAttrs attrs{size};
    return apply(op, {&b.dy()}, &attrs, b.site());
  }
  const InterpolateBilinearAttrs attrs{size, b.attributes<InterpolateBilinearAttrs>().align_corners};
  return apply(op, {&b.dy()}, &attrs, b.site());
}

std::int64_t bytes_of_taps(const Type& large) {
  return static_cast<std::int64_t>(sizeof(Tap)) * (large.shape[2] + large.shape[3]);
}

Cost cost_bilinear(std::span<const Type> in, std::span<const Type> out, const void*) {
  Cost cost = cost_like_copy(in, out, nullptr);
  cost.flops = 60.0 * static_cast<double>(std::max(in[0].numel(), out[0].numel()));  // mostly reads of elements and weights
  return cost;
}

}  // namespace

Tensor interpolate(const Arg& x, const Ints& size, std::string_view mode, bool align_corners) {
  if (mode == "nearest") {
    const InterpolateNearestAttrs attrs{size};
    if (align_corners) throw TypeError(error_text("interpolate", "align_corners is for bilinear only", x.site()));
    return apply(ops::interpolate_nearest, {&x.tensor()}, &attrs, x.site());
  }
  if (mode != "bilinear")
    throw TypeError(error_text("interpolate", fmt::format("mode must be nearest or bilinear, not '{}'", mode), x.site()));
  const InterpolateBilinearAttrs attrs{size, align_corners};
  return apply(ops::interpolate_bilinear, {&x.tensor()}, &attrs, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/interpolate.h>
