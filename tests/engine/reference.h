// The oracle of every op: a slow reference in f64, written from the definition of the op and without the kernels.
//
// A reference takes the operands' elements in row-major order as doubles (integers and bools too) and returns the results'
// elements in the same form. The files of tests/engine/reference/ register the references, one file for each family. The
// all-ops tests compare every example of every op with them, and fail for an op without a reference.
#pragma once

#include <tapedeck/tests/engine/examples.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tapedeck::testing {

struct Array {
  Type type;
  std::vector<double> v;  // the elements in row-major order
};

// `out` holds the inferred types of the results. The reference returns one array for each result, in order.
using Reference =
    std::function<std::vector<Array>(const Example& e, const std::vector<Array>& x, const std::vector<Type>& out)>;

struct ReferenceEntry {
  Reference run;
  double tolerance = 1e-5;  // tolerance of an f32 result relative to max(1, |expected|); for f64 it is 1e-11
};

inline std::map<std::string, ReferenceEntry>& references() {
  static std::map<std::string, ReferenceEntry> all;
  return all;
}

struct AddReference {
  AddReference(const char* op, Reference run, double tolerance = 1e-5) { references()[op] = {std::move(run), tolerance}; }
};

// ---- helpers for references ----

// Turns a row-major index into coordinates. The function below does the inverse.
inline std::vector<std::int64_t> coordinates(std::int64_t index, const Shape& shape) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank));
  for (int d = shape.rank - 1; d >= 0; --d) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}
inline std::int64_t index_of(const std::vector<std::int64_t>& at, const Shape& shape) {
  std::int64_t index = 0;
  for (int d = 0; d < shape.rank; ++d) index = index * shape[d] + at[d];
  return index;
}
inline Array blank(const Type& type, double value = 0) {
  return {type, std::vector<double>(static_cast<std::size_t>(type.numel()), value)};
}

// The element of a (broadcast) operand for the coordinates `at` of the result.
inline double broadcast_at(const Array& x, const std::vector<std::int64_t>& at) {
  std::vector<std::int64_t> own(static_cast<std::size_t>(x.type.shape.rank));
  const std::size_t lead = at.size() - own.size();
  for (std::size_t d = 0; d < own.size(); ++d) own[d] = x.type.shape[static_cast<int>(d)] == 1 ? 0 : at[lead + d];
  return x.v[index_of(own, x.type.shape)];
}

// The reference of an elementwise op: f of the broadcast elements.
inline Reference elementwise(std::function<double(const std::vector<double>&)> f) {
  return [f](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
    Array y = blank(out[0]);
    for (std::size_t i = 0; i < y.v.size(); ++i) {
      std::vector<double> args;
      for (const Array& a : x) args.push_back(broadcast_at(a, coordinates(static_cast<std::int64_t>(i), out[0].shape)));
      y.v[i] = f(args);
    }
    return std::vector<Array>{y};
  };
}

template <class A>
const A& attributes_of(const Example& e) {
  return *static_cast<const A*>(e.attrs());
}

}  // namespace tapedeck::testing
