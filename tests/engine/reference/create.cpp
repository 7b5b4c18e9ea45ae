// References of ops that make tensors without reading elements: arange, linspace and eye.
#include <tapedeck/tests/engine/reference/places.h>

#include <tapedeck/kernels/attrs/create.h>

namespace tapedeck::testing {
namespace {

const AddReference arange_("arange", [](const Example& e, const Arrays&, const Types& out) {
  const auto a = attributes_of<ArangeAttrs>(e);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = a.start + static_cast<double>(i) * a.step;
  return Arrays{y};
});

const AddReference linspace_("linspace", [](const Example& e, const Arrays&, const Types& out) {
  const auto a = attributes_of<LinspaceAttrs>(e);
  Array y = blank(out[0], a.start);
  for (std::size_t i = 0; i < y.v.size() && a.count > 1; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(a.count - 1);
    y.v[i] = a.start * (1 - part) + a.stop * part;
  }
  return Arrays{y};
});

const AddReference eye_("eye", [](const Example&, const Arrays&, const Types& out) {
  Array y = blank(out[0]);
  for (std::int64_t i = 0; i < std::min(out[0].shape[0], out[0].shape[1]); ++i) y.v[at(i * out[0].shape[1] + i)] = 1;
  return Arrays{y};
});

}  // namespace
}  // namespace tapedeck::testing
