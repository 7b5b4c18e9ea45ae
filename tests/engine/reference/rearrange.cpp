// References of flips, rolls, triangles and pads: a function says from where each element comes.
#include <tapedeck/tests/engine/reference/places.h>

#include <tapedeck/kernels/attrs/rearrange.h>

#include <algorithm>

namespace tapedeck::testing {
namespace {

const AddReference flip_("flip", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<FlipAttrs>(e);
  return Arrays{gather(x[0], out[0], [&](At here) {
    for (std::int64_t axis : a.axes) here[at(axis)] = out[0].shape.sizes[axis] - 1 - here[at(axis)];
    return here;
  })};
});

const AddReference roll_("roll", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<RollAttrs>(e);
  return Arrays{gather(x[0], out[0], [&](At here) {
    for (int k = 0; k < a.axes.size; ++k) {
      const std::int64_t n = out[0].shape.sizes[a.axes[k]];
      here[at(a.axes[k])] = (here[at(a.axes[k])] - a.shifts[k] + n) % n;
    }
    return here;
  })};
});

Reference triangle(bool lower) {
  return [lower](const Example& e, const Arrays& x, const Types& out) {
    const std::int64_t diagonal = attributes_of<TriangleAttrs>(e).diagonal;
    return Arrays{gather(x[0], out[0], [&](const At& here) {
      const std::int64_t above = here[here.size() - 1] - here[here.size() - 2];
      return (lower ? above <= diagonal : above >= diagonal) ? here : At{};
    })};
  };
}
const AddReference tril_("tril", triangle(true));
const AddReference triu_("triu", triangle(false));

const AddReference pad_constant_("pad_constant", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<PadConstantAttrs>(e);
  return Arrays{gather(
      x[0], out[0],
      [&](At here) {
        for (std::size_t d = 0; d < here.size(); ++d) {
          here[d] -= a.before[static_cast<int>(d)];
          if (here[d] < 0 || here[d] >= x[0].type.shape[static_cast<int>(d)]) return At{};
        }
        return here;
      },
      a.value)};
});

// The place in `inner` that place `here` of the padded shape shows.
At shown(const PadModeAttrs& a, const Shape& inner, At here) {
  for (std::size_t d = 0; d < here.size(); ++d) {
    const std::int64_t n = inner[static_cast<int>(d)], i = here[d] - a.before[static_cast<int>(d)];
    if (a.mode == Name("reflect"))
      here[d] = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    else if (a.mode == Name("replicate"))
      here[d] = std::clamp<std::int64_t>(i, 0, n - 1);
    else
      here[d] = (i + n) % n;
  }
  return here;
}

const AddReference pad_mode_("pad_mode", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<PadModeAttrs>(e);
  return Arrays{gather(x[0], out[0], [&](const At& here) { return shown(a, x[0].type.shape, here); })};
});
const AddReference pad_mode_grad_("pad_mode_grad", [](const Example& e, const Arrays& x, const Types& out) {
  const auto a = attributes_of<PadModeAttrs>(e);
  return Arrays{scatter_add(x[0], out[0], [&](const At& here) { return shown(a, out[0].shape, here); })};
});

}  // namespace
}  // namespace tapedeck::testing
