// Ops that move elements without reading their values: shapes, slices, joins, pads.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace tapedeck::onnx {

namespace {

Integers sizes_of(const Tensor& t) { return {t.shape().begin(), t.shape().end()}; }

// The sizes of x from `start` to `end`, both of which may be negative.
Tensors shape_of(NodeCall& n) {
  const Integers sizes = sizes_of(n[0]);
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = bound(n.integer("start", 0)), end = std::max(start, bound(n.integer("end", rank)));
  return {known_integers({sizes.begin() + start, sizes.begin() + end})};
}

Tensors size_of(NodeCall& n) {
  const std::int64_t count = n[0].numel();
  return {known_tensor({DType::i64, {}}, &count)};
}

Tensors reshape_to(NodeCall& n) {
  Integers sizes = n.integers(1);
  const bool allows_zero = n.flag("allowzero");
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !allows_zero) {
      n.require(i < static_cast<std::size_t>(n[0].rank()), "a size of 0 copies a dimension that the operand does not have");
      sizes[i] = n[0].size(static_cast<int>(i));
    }
    n.require(sizes[i] >= -1, "a size must not be negative");
    if (sizes[i] == -1) {
      n.require(open < 0, "only one size can be -1");
      open = static_cast<std::int64_t>(i);
    } else {
      n.require(!__builtin_mul_overflow(known, sizes[i], &known), "the sizes are too large");
    }
  }
  if (open >= 0) {
    n.require(known > 0 && n[0].numel() % known == 0, "no size in the place of -1 gives as many elements");
    sizes[static_cast<std::size_t>(open)] = n[0].numel() / known;
  }
  return {reshape(n.arg(0), n.shape(sizes))};
}

Tensors flatten_to_matrix(NodeCall& n) {
  const Integers sizes = sizes_of(n[0]);
  const std::int64_t given = n.integer("axis", 1), rank = n[0].rank(), axis = given < 0 ? given + rank : given;
  n.require(axis >= 0 && axis <= rank, "the axis does not exist");
  const auto product = [&](std::int64_t from, std::int64_t to) {
    return std::accumulate(sizes.begin() + from, sizes.begin() + to, std::int64_t{1}, std::multiplies<>());
  };
  return {reshape(n.arg(0), {product(0, axis), product(axis, rank)})};
}

Tensors squeeze_axes(NodeCall& n) {
  const Integers given = n.integers(1, "axes"), sizes = sizes_of(n[0]);
  std::vector<bool> drops(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) drops[i] = given.empty() && !n.has(1) && sizes[i] == 1;
  for (std::int64_t a : given) {
    const auto axis = static_cast<std::size_t>(n.axis(a, n[0].rank()));
    n.require(sizes[axis] == 1, "a dimension that is dropped must have the size 1");
    drops[axis] = true;
  }
  Integers left;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!drops[i]) left.push_back(sizes[i]);
  return {reshape(n.arg(0), n.shape(left))};
}

Tensors unsqueeze_axes(NodeCall& n) {
  const Integers given = n.integers(1, "axes");
  const std::int64_t rank = n[0].rank() + static_cast<std::int64_t>(given.size());
  n.require(rank <= kMaxRank, "the result has too many dimensions");
  std::vector<bool> added(static_cast<std::size_t>(rank));
  for (std::int64_t a : given) {
    const auto axis = static_cast<std::size_t>(n.axis(a, rank));
    n.require(!added[axis], "an axis is given twice");
    added[axis] = true;
  }
  Integers sizes;
  int next = 0;
  for (bool is_added : added) sizes.push_back(is_added ? 1 : n[0].size(next++));
  return {reshape(n.arg(0), n.shape(sizes))};
}

Tensors transpose_axes(NodeCall& n) {
  Integers axes(static_cast<std::size_t>(n[0].rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return {transpose(n.arg(0), n.list(n.integers("perm", axes)))};
}

Tensors join(NodeCall& n) { return {concat(n.all(), n.axis(n.integer("axis"), n[0].rank()), n.site())}; }

Tensors split_axis(NodeCall& n) {
  const std::int64_t axis = n.axis(n.integer("axis", 0), n[0].rank()), size = n[0].size(static_cast<int>(axis));
  Integers sizes = n.opset() < 13 ? n.integers("split") : n.has(1) ? n.integers(1) : Integers();
  if (sizes.empty()) {
    const std::int64_t parts = n.integer("num_outputs", static_cast<std::int64_t>(n.results()));
    n.require(parts > 0 && parts == static_cast<std::int64_t>(n.results()), "it must have a name for each part");
    const std::int64_t each = (size + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<std::int64_t>(size - i * each, 0, each));
  }
  for (std::int64_t s : sizes) n.require(s >= 0 && s <= size, "the sizes of the parts do not fit");
  return split(n.arg(0), sizes, axis);
}

// Steps may be negative: the axis is turned around first.
Tensors slice_axes(NodeCall& n) {
  const bool by_attributes = n.opset() < 10;
  const Integers starts = by_attributes ? n.integers("starts") : n.integers(1);
  const Integers ends = by_attributes ? n.integers("ends") : n.integers(2);
  Integers axes = by_attributes ? n.integers("axes") : n.has(3) ? n.integers(3) : Integers();
  Integers steps = !by_attributes && n.has(4) ? n.integers(4) : Integers();
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  n.require(starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
            "starts, ends, axes and steps must be equally many");
  Tensor x = n[0];
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = n.axis(axes[i], x.rank()), size = x.size(static_cast<int>(axis));
    n.require(steps[i] != 0, "a step must not be 0");
    const auto from_start = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
      return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, least, most);
    };
    if (steps[i] > 0) {
      const std::int64_t start = from_start(starts[i], 0, size), end = std::max(start, from_start(ends[i], 0, size));
      x = slice_along(n.arg(x), axis, start, end, std::min(steps[i], std::max<std::int64_t>(size, 1)));
      continue;
    }
    const std::int64_t start = from_start(starts[i], size > 0 ? 0 : -1, size - 1),
                       end = std::min(start, from_start(ends[i], -1, size - 1));
    const std::int64_t step = steps[i] < -size ? std::max<std::int64_t>(size, 1) : -steps[i];
    x = slice_along(n.arg(flip(n.arg(x), {axis})), axis, size - 1 - start, size - 1 - end, step);
  }
  return {x.impl() == n[0].impl() ? alias(n.arg(0)) : x};
}

// Negative pads cut off.
Tensors pad_axes(NodeCall& n) {
  const bool by_attributes = n.opset() < 11;
  const Integers pads = by_attributes ? n.integers("pads") : n.integers(1);
  Integers axes(static_cast<std::size_t>(n[0].rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (!by_attributes && n.has(3)) axes = n.integers(3);
  n.require(pads.size() == 2 * axes.size(), "there must be two pads for each axis");
  Integers before(static_cast<std::size_t>(n[0].rank())), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(n.axis(axes[i], n[0].rank()));
    before[axis] = pads[i];
    after[axis] = pads[i + axes.size()];
  }
  for (std::int64_t p : pads) n.require(p > -(std::int64_t{1} << 45) && p < std::int64_t{1} << 45, "a pad is too large");
  Tensor x = n[0];
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::int64_t size = x.size(static_cast<int>(i)), first = std::max<std::int64_t>(0, -before[i]);
    const std::int64_t last = size - std::max<std::int64_t>(0, -after[i]);
    if (first > 0 || last < size) {
      n.require(first <= last, "the pads cut off more than there is");
      x = slice_along(n.arg(x), static_cast<std::int64_t>(i), first, last);
    }
    before[i] = std::max<std::int64_t>(0, before[i]);
    after[i] = std::max<std::int64_t>(0, after[i]);
  }
  const std::string mode = n.text("mode", "constant");
  if (mode == "constant") {
    const double value = by_attributes ? n.real("value", 0) : n.has(2) ? n.real(2) : 0;
    return {pad(n.arg(x), n.list(before), n.list(after), "constant", value)};
  }
  n.require(mode == "reflect" || mode == "edge" || mode == "wrap", "the mode '" + mode + "' is not supported");
  return {pad(n.arg(x), n.list(before), n.list(after), mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : "reflect")};
}

Tensors expand_to(NodeCall& n) {
  Shape both;
  const Shape wanted = n.shape(n.integers(1));
  n.require(broadcast_shapes(n[0].shape(), wanted, &both), "the operand does not broadcast to the shape");
  n.require(checked_bytes(n[0].dtype(), {both.begin(), both.end()}) >= 0, "the result is too large");
  return {broadcast_to(n.arg(0), both)};
}

Tensors repeat(NodeCall& n) {
  const Integers repeats = n.integers(1);
  n.require(repeats.size() == static_cast<std::size_t>(n[0].rank()), "there must be one number of repeats for each dimension");
  Integers sizes;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    std::int64_t size = 0;
    n.require(repeats[i] >= 0 && !__builtin_mul_overflow(repeats[i], n[0].size(static_cast<int>(i)), &size),
              "the numbers of repeats are too large");
    sizes.push_back(size);
  }
  n.shape(sizes);
  return {tile(n.arg(0), n.list(repeats))};
}

// The four-dimensional x as [n, six factors], in the order that the mode says.
Tensors depth_to_space(NodeCall& n) {
  const std::int64_t b = n.integer("blocksize");
  n.require(n[0].rank() == 4 && b > 0 && b <= 1 << 15 && n[0].size(1) % (b * b) == 0,
            "the channels of [n,c,h,w] must be a multiple of the block");
  const std::int64_t batch = n[0].size(0), c = n[0].size(1) / (b * b), h = n[0].size(2), w = n[0].size(3);
  const bool crd = n.text("mode", "DCR") == "CRD";
  const Tensor parts = crd ? reshape(n.arg(0), {batch, c, b, b, h, w}) : reshape(n.arg(0), {batch, b, b, c, h, w});
  const Tensor moved = transpose(n.arg(parts), crd ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return {reshape(n.arg(moved), {batch, c, h * b, w * b})};
}

Tensors space_to_depth(NodeCall& n) {
  const std::int64_t b = n.integer("blocksize");
  n.require(n[0].rank() == 4 && b > 0 && b <= 1 << 15 && n[0].size(2) % b == 0 && n[0].size(3) % b == 0,
            "height and width of [n,c,h,w] must be multiples of the block");
  const std::int64_t batch = n[0].size(0), c = n[0].size(1), h = n[0].size(2) / b, w = n[0].size(3) / b;
  const Tensor moved = transpose(n.arg(reshape(n.arg(0), {batch, c, h, b, w, b})), {0, 3, 5, 1, 2, 4});
  return {reshape(n.arg(moved), {batch, c * b * b, h, w})};
}

Tensors triangle(NodeCall& n) {
  const std::int64_t diagonal = n.has(1) ? n.integer(1) : 0;
  return {n.flag("upper", true) ? triu(n.arg(0), diagonal) : tril(n.arg(0), diagonal)};
}

// A window of the wanted size in the middle of each axis; zeros around what is too small.
Tensors centre(NodeCall& n) {
  const Integers wanted = n.integers(1);
  Integers axes(wanted.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes", axes);
  n.require(axes.size() == wanted.size(), "there must be one size for each axis");
  Tensor x = n[0];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    n.require(wanted[i] >= 0, "a size must not be negative");
    const std::int64_t axis = n.axis(axes[i], x.rank()), size = x.size(static_cast<int>(axis)), more = wanted[i] - size;
    if (more < 0) x = slice_along(n.arg(x), axis, -more / 2, -more / 2 + wanted[i]);
    if (more <= 0) continue;
    Integers before(static_cast<std::size_t>(x.rank())), after = before;
    before[static_cast<std::size_t>(axis)] = more / 2;
    after[static_cast<std::size_t>(axis)] = more - more / 2;
    x = pad(n.arg(x), n.list(before), n.list(after));
  }
  return {x.impl() == n[0].impl() ? alias(n.arg(0)) : x};
}

}  // namespace

std::vector<OnnxOp> shape_ops() {
  return {
      {"Shape", 1, "start end", shape_of},
      {"Size", 1, "", size_of},
      {"Reshape", 5, "allowzero", reshape_to},
      {"Flatten", 1, "axis", flatten_to_matrix},
      {"Squeeze", 1, "axes", squeeze_axes},
      {"Unsqueeze", 1, "axes", unsqueeze_axes},
      {"Transpose", 1, "perm", transpose_axes},
      {"Concat", 4, "axis", join},
      {"Split", 2, "axis split num_outputs", split_axis},
      {"Slice", 1, "starts ends axes", slice_axes},
      {"Pad", 2, "mode pads value", pad_axes},
      {"Expand", 8, "", expand_to},
      {"Tile", 6, "", repeat},
      {"Identity", 1, "", [](NodeCall& n) { return Tensors{alias(n.arg(0))}; }},
      {"DepthToSpace", 1, "blocksize mode", depth_to_space, 28},
      {"SpaceToDepth", 1, "blocksize", space_to_depth, 28},
      {"Trilu", 14, "upper", triangle},
      {"CenterCropPad", 18, "axes", centre},
  };
}

}  // namespace tapedeck::onnx
