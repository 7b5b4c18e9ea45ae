// References of the views and movements: which element of which operand stands at each place of the result.
#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {
namespace {

using At = std::vector<std::int64_t>;

// from(coordinates in the result) gives coordinates in the operand; none: zero stands there.
Reference taken(std::function<At(const Example&, const Array& x, const At&)> from) {
  return [=](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    Array y = blank(out[0]);
    for (std::size_t i = 0; i < y.v.size(); ++i) {
      const At source = from(e, x[0], coordinates(static_cast<std::int64_t>(i), out[0].shape));
      if (source.size() == static_cast<std::size_t>(x[0].type.shape.rank))
        y.v[i] = x[0].v[static_cast<std::size_t>(index_of(source, x[0].type.shape))];
    }
    return std::vector<Array>{y};
  };
}
const At kZero(kMaxRank + 1);  // more coordinates than any operand has

std::vector<Array> same_elements(const Example&, const std::vector<Array>& x, const std::vector<Type>& out) { return {{out[0], x[0].v}}; }

At transposed(const Example& e, const Array&, const At& at) {
  const Ints& axes = attributes_of<PermuteAttrs>(e).axes;
  At from(at.size());
  for (std::size_t d = 0; d < at.size(); ++d) from[static_cast<std::size_t>(axes[static_cast<int>(d)])] = at[d];
  return from;
}

At sliced(const Example& e, const Array&, const At& at) {
  const auto& a = attributes_of<SliceAttrs>(e);
  At from = at;
  for (int d = 0; d < static_cast<int>(at.size()); ++d) {
    auto& c = from[static_cast<std::size_t>(d)];
    c = a.starts[d] + c * (a.steps.size ? a.steps[d] : 1);
  }
  return from;
}

At repeated(const Example&, const Array& x, const At& at) {
  const Shape& shape = x.type.shape;
  At from(at.end() - shape.rank, at.end());
  for (int d = 0; d < shape.rank; ++d)
    if (shape[d] == 1) from[static_cast<std::size_t>(d)] = 0;
  return from;
}

At padded(const Example& e, const Array& x, const At& at) {
  const auto& a = attributes_of<PadAttrs>(e);
  At from = at;
  for (int d = 0; d < static_cast<int>(at.size()); ++d) {
    auto& c = from[static_cast<std::size_t>(d)];
    c -= a.before[d];
    if (c < 0 || c >= x.type.shape[d]) return kZero;
  }
  return from;
}

// Each operand is written at its place along the axis.
std::vector<Array> joined(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto axis = static_cast<std::size_t>(attributes_of<AxisAttrs>(e).axis);
  Array y = blank(out[0], -1);
  std::int64_t before = 0;
  for (const Array& part : x) {
    for (std::size_t i = 0; i < part.v.size(); ++i) {
      At at = coordinates(static_cast<std::int64_t>(i), part.type.shape);
      at[axis] += before;
      y.v[static_cast<std::size_t>(index_of(at, out[0].shape))] = part.v[i];
    }
    before += part.type.shape[static_cast<int>(axis)];
  }
  return {y};
}

const AddReference movements[] = {
    {"reshape", same_elements},       {"stop_gradient", same_elements}, {"transpose", taken(transposed)}, {"slice", taken(sliced)},
    {"broadcast_to", taken(repeated)}, {"pad", taken(padded)},           {"concat", joined},
};

}  // namespace
}  // namespace tapedeck::testing
