// References of the indexing ops, element by element from the definitions.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/kernels/attrs/index.h>

#include <algorithm>

namespace tapedeck::testing {
namespace {

using At = std::vector<std::int64_t>;

std::int64_t wrapped(double index, std::int64_t n) {
  const auto at = static_cast<std::int64_t>(index);
  return at < 0 ? at + n : at;
}

double& element(Array& x, const At& at) { return x.v[index_of(at, x.type.shape)]; }
double element(const Array& x, const At& at) { return x.v[index_of(at, x.type.shape)]; }

// Calls f(flat position in index, coordinates in x) for every index, in row-major order.
template <class F>
void for_places(const Array& x, const Array& index, std::int64_t axis, F&& f) {
  for (std::size_t i = 0; i < index.v.size(); ++i) {
    At at = coordinates(static_cast<std::int64_t>(i), index.type.shape);
    at[axis] = wrapped(index.v[i], x.type.shape[static_cast<int>(axis)]);
    f(i, at);
  }
}

const AddReference gather("gather", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_places(x[0], x[1], attributes_of<AxisAttrs>(e).axis, [&](std::size_t i, const At& at) { y.v[i] = element(x[0], at); });
  return std::vector<Array>{y};
});

const AddReference scatter("scatter", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  Array y = x[0];
  for_places(x[0], x[1], attributes_of<AxisAttrs>(e).axis, [&](std::size_t i, const At& at) { element(y, at) = x[2].v[i]; });
  return std::vector<Array>{y};
});

const AddReference scatter_add("scatter_add", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  Array y = x[0];
  for_places(x[0], x[1], attributes_of<AxisAttrs>(e).axis, [&](std::size_t i, const At& at) { element(y, at) += x[2].v[i]; });
  return std::vector<Array>{y};
});

double combined(const Name& reduction, double old, double src) {
  if (reduction == Name("add")) return old + src;
  if (reduction == Name("mul")) return old * src;
  if (reduction == Name("max")) return std::max(old, src);
  if (reduction == Name("min")) return std::min(old, src);
  return src;
}

const AddReference scatter_reduce("scatter_reduce",
                                  [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
                                    const auto& a = attributes_of<ScatterReduceAttrs>(e);
                                    Array y = x[0];
                                    for_places(x[0], x[1], a.axis, [&](std::size_t i, const At& at) {
                                      element(y, at) = combined(a.reduction, element(y, at), x[2].v[i]);
                                    });
                                    return std::vector<Array>{y};
                                  });

const AddReference index_select("index_select",
                                [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
                                  const auto axis = static_cast<std::size_t>(attributes_of<AxisAttrs>(e).axis);
                                  Array y = blank(out[0]);
                                  for (std::size_t i = 0; i < y.v.size(); ++i) {
                                    At at = coordinates(static_cast<std::int64_t>(i), out[0].shape);
                                    at[axis] = wrapped(x[1].v[at[axis]], x[0].type.shape[static_cast<int>(axis)]);
                                    y.v[i] = element(x[0], at);
                                  }
                                  return std::vector<Array>{y};
                                });

const AddReference index_add("index_add", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  const auto axis = static_cast<std::size_t>(attributes_of<AxisAttrs>(e).axis);
  Array y = x[0];
  for (std::size_t i = 0; i < x[2].v.size(); ++i) {
    At at = coordinates(static_cast<std::int64_t>(i), x[2].type.shape);
    at[axis] = wrapped(x[1].v[at[axis]], x[0].type.shape[static_cast<int>(axis)]);
    element(y, at) += x[2].v[i];
  }
  return std::vector<Array>{y};
});

const AddReference embedding("embedding", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const std::int64_t d = x[0].type.shape[1];
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const std::int64_t id = static_cast<std::int64_t>(i) / d;
    y.v[i] = element(x[0], {wrapped(x[1].v[id], x[0].type.shape[0]), static_cast<std::int64_t>(i) % d});
  }
  return std::vector<Array>{y};
});

const AddReference embedding_grad("embedding_grad", [](const Example&, const std::vector<Array>& x,
                                                       const std::vector<Type>& out) {
  Array y = blank(out[0]);
  const std::int64_t d = out[0].shape[1];
  for (std::size_t i = 0; i < x[1].v.size(); ++i) {
    const std::int64_t id = static_cast<std::int64_t>(i) / d;
    element(y, {wrapped(x[0].v[id], out[0].shape[0]), static_cast<std::int64_t>(i) % d}) += x[1].v[i];
  }
  return std::vector<Array>{y};
});

// Calls f(flat position in the named slices, coordinates in x). `shape` is the shape of the slices.
template <class F>
void for_named(const Array& x, const Array& indices, std::int64_t batch, const Shape& shape, F&& f) {
  const int lead = indices.type.shape.rank - 1;
  const std::int64_t k = indices.type.shape[lead];
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const At from = coordinates(i, shape);
    At at(from.begin(), from.begin() + batch);
    for (std::int64_t j = 0; j < k; ++j) {
      At tuple(from.begin(), from.begin() + lead);
      tuple.push_back(j);
      at.push_back(wrapped(element(indices, tuple), x.type.shape[static_cast<int>(batch + j)]));
    }
    at.insert(at.end(), from.begin() + lead, from.end());
    f(static_cast<std::size_t>(i), at);
  }
}

const AddReference gather_nd("gather_nd", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for_named(x[0], x[1], attributes_of<GatherNdAttrs>(e).batch_dims, out[0].shape,
            [&](std::size_t i, const At& at) { y.v[i] = element(x[0], at); });
  return std::vector<Array>{y};
});

const AddReference scatter_nd("scatter_nd", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>&) {
  const auto& a = attributes_of<ScatterNdAttrs>(e);
  Array y = x[0];
  for_named(x[0], x[1], a.batch_dims, x[2].type.shape,
            [&](std::size_t i, const At& at) { element(y, at) = combined(a.reduction, element(y, at), x[2].v[i]); });
  return std::vector<Array>{y};
});

const AddReference nonzero("nonzero", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y{out[0], {}};
  for (std::size_t i = 0; i < x[0].v.size(); ++i)
    if (x[0].v[i] != 0)
      for (std::int64_t c : coordinates(static_cast<std::int64_t>(i), x[0].type.shape)) y.v.push_back(static_cast<double>(c));
  return std::vector<Array>{y};
});

const AddReference masked_select("masked_select",
                                 [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
                                   Array y{out[0], {}};
                                   for (std::size_t i = 0; i < x[0].v.size(); ++i)
                                     if (x[1].v[i] != 0) y.v.push_back(x[0].v[i]);
                                   return std::vector<Array>{y};
                                 });

const AddReference masked_scatter("masked_scatter", [](const Example&, const std::vector<Array>& x, const std::vector<Type>&) {
  Array y = x[0];
  std::size_t next = 0;
  for (std::size_t i = 0; i < y.v.size(); ++i)
    if (x[1].v[i] != 0) y.v[i] = x[2].v[next++];
  return std::vector<Array>{y};
});

const AddReference bincount("bincount", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = blank(out[0]);
  for (double number : x[0].v) y.v[number] += 1;
  return std::vector<Array>{y};
});

}  // namespace
}  // namespace tapedeck::testing
