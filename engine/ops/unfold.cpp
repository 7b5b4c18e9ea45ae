#include <tapedeck/engine/ops/unfold.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

namespace tapedeck {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;

void require_pair(const Infer& f, const Ints& list, const char* name, std::int64_t least) {
  if (list.size != 2) f.fail(fmt::format("{} lists {} numbers, not height and width", name, list.size));
  for (std::int64_t v : list)
    if (v < least || v > kLargest) f.fail(fmt::format("{} cannot be {}", name, v));
}

// The number of windows on an image of h x w.
template <class Attrs>
std::int64_t count_windows(const Infer& f, const Attrs& a, std::int64_t h, std::int64_t w) {
  require_pair(f, a.window, "window", 1);
  require_pair(f, a.stride, "stride", 1);
  require_pair(f, a.padding, "padding", 0);
  require_pair(f, a.dilation, "dilation", 1);
  const std::int64_t counts[] = {windows_along(a, 0, h), windows_along(a, 1, w)};
  if (counts[0] == 0 || counts[1] == 0) f.fail(fmt::format("the window does not fit an image of [{},{}]", h, w));
  if (checked_bytes(f.inputs[0].dtype, counts) < 0) f.fail("there are too many windows");
  return counts[0] * counts[1];
}

void infer_unfold(Infer& f) {
  const Type& x = f.inputs[0];
  const auto& a = f.attributes<UnfoldAttrs>();
  if (x.shape.rank != 4) f.fail(fmt::format("needs [n,c,h,w], got {}", to_string(x)));
  const std::int64_t windows = count_windows(f, a, x.shape[2], x.shape[3]);
  const std::int64_t rows[] = {x.shape[1], a.window[0], a.window[1]};
  if (checked_bytes(x.dtype, rows) < 0) f.fail("the window is too large");
  f.outputs.assign(1, Type{x.dtype, {x.shape[0], rows[0] * rows[1] * rows[2], windows}});
}

void infer_fold(Infer& f) {
  const Type& x = f.inputs[0];
  const auto& a = f.attributes<FoldAttrs>();
  infer_require_float(f, x);
  require_pair(f, a.size, "size", 0);
  if (x.shape.rank != 3) f.fail(fmt::format("needs [n, c kh kw, windows], got {}", to_string(x)));
  const std::int64_t windows = count_windows(f, a, a.size[0], a.size[1]), places = a.window[0] * a.window[1];
  if (x.shape[1] % places != 0) f.fail(fmt::format("rows of {} do not come in windows of {}", to_string(x), places));
  if (x.shape[2] != windows) f.fail(fmt::format("{} has {} columns, the image {} windows", to_string(x), x.shape[2], windows));
  f.outputs.assign(1, Type{x.dtype, {x.shape[0], x.shape[1] / places, a.size[0], a.size[1]}});
}

}  // namespace

Tensor unfold(const Arg& x, const UnfoldAttrs& attrs) { return apply(ops::unfold, {&x.tensor()}, &attrs, x.site()); }
Tensor fold(const Arg& columns, const FoldAttrs& attrs) {
  return apply(ops::fold, {&columns.tensor()}, &attrs, columns.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/unfold.h>
