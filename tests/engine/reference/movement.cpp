// References of the ops that move elements: a function says from where each element comes.
#include <tapedeck/tests/engine/reference/places.h>

#include <tapedeck/kernels/attrs/movement.h>

namespace tapedeck::testing {
namespace {

std::function<At(const At&)> slice_map(const Example& e) {
  const auto a = attributes_of<SliceAttrs>(e);
  return [a](const At& here) {
    At there(here.size());
    for (std::size_t d = 0; d < here.size(); ++d) {
      const int i = static_cast<int>(d);
      there[d] = a.starts[i] + here[d] * (a.steps.size > 0 ? a.steps[i] : 1);
    }
    return there;
  };
}

// Place k of the diagonal (the last coordinate) is in row k + max(-offset, 0) and column k + max(offset, 0).
std::function<At(const At&)> diagonal_map(const Example& e) {
  const auto a = attributes_of<DiagonalAttrs>(e);
  return [a](const At& here) {
    At there(here.begin(), here.end() - 1);
    const std::int64_t row = here.back() + (a.offset < 0 ? -a.offset : 0), column = here.back() + (a.offset > 0 ? a.offset : 0);
    const bool row_first = a.axis1 < a.axis2;
    there.insert(there.begin() + (row_first ? a.axis1 : a.axis2), row_first ? row : column);
    there.insert(there.begin() + (row_first ? a.axis2 : a.axis1), row_first ? column : row);
    return there;
  };
}

Arrays same_elements(const Example&, const Arrays& x, const Types& out) { return {Array{out[0], x[0].v}}; }

const AddReference reshape_("reshape", same_elements);
const AddReference alias_("alias", same_elements);
const AddReference stop_gradient_("stop_gradient", same_elements);
const AddReference own_gradient_("own_gradient", same_elements);

const AddReference transpose_("transpose", [](const Example& e, const Arrays& x, const Types& out) {
  const auto axes = attributes_of<PermuteAttrs>(e).axes;
  return Arrays{gather(x[0], out[0], [&](const At& here) {
    At there(here.size());
    for (std::size_t d = 0; d < here.size(); ++d) there[at(axes[static_cast<int>(d)])] = here[d];
    return there;
  })};
});

const AddReference broadcast_to_("broadcast_to", [](const Example&, const Arrays& x, const Types& out) {
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i)
    y.v[i] = broadcast_at(x[0], coordinates(static_cast<std::int64_t>(i), out[0].shape));
  return Arrays{y};
});

const AddReference slice_("slice", [](const Example& e, const Arrays& x, const Types& out) {
  return Arrays{gather(x[0], out[0], slice_map(e))};
});
const AddReference slice_assign_("slice_assign", [](const Example& e, const Arrays& x, const Types&) {
  return Arrays{scatter(x[0], x[1], slice_map(e))};
});
const AddReference diagonal_("diagonal", [](const Example& e, const Arrays& x, const Types& out) {
  return Arrays{gather(x[0], out[0], diagonal_map(e))};
});
const AddReference diagonal_assign_("diagonal_assign", [](const Example& e, const Arrays& x, const Types&) {
  return Arrays{scatter(x[0], x[1], diagonal_map(e))};
});

const AddReference pad_("pad", [](const Example& e, const Arrays& x, const Types& out) {
  const auto before = attributes_of<PadAttrs>(e).before;
  return Arrays{gather(x[0], out[0], [&](const At& here) {
    At there(here.size());
    for (std::size_t d = 0; d < here.size(); ++d) {
      there[d] = here[d] - before[static_cast<int>(d)];
      if (there[d] < 0 || there[d] >= x[0].type.shape[static_cast<int>(d)]) return At{};
    }
    return there;
  })};
});

const AddReference concat_("concat", [](const Example& e, const Arrays& x, const Types& out) {
  const std::size_t axis = at(attributes_of<AxisAttrs>(e).axis);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    At here = coordinates(static_cast<std::int64_t>(i), out[0].shape);
    std::size_t part = 0;
    while (here[axis] >= x[part].type.shape[static_cast<int>(axis)]) here[axis] -= x[part++].type.shape[static_cast<int>(axis)];
    y.v[i] = x[part].v[at(index_of(here, x[part].type.shape))];
  }
  return Arrays{y};
});

}  // namespace
}  // namespace tapedeck::testing
