// Helpers for references of ops that only move elements. A function from coordinates to coordinates says from where or to
// where each element moves.
#pragma once

#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {

using At = std::vector<std::int64_t>;
using Arrays = std::vector<Array>;
using Types = std::vector<Type>;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// y[here] = x[from(here)]. If `from` returns nothing, y[here] = otherwise.
inline Array gather(const Array& x, const Type& out, const std::function<At(const At&)>& from, double otherwise = 0) {
  Array y = blank(out, otherwise);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const At source = from(coordinates(static_cast<std::int64_t>(i), out.shape));
    if (!source.empty() || x.type.shape.rank == 0) y.v[i] = x.v[at(index_of(source, x.type.shape))];
  }
  return y;
}

// A copy of the base with base[to(here)] = piece[here].
inline Array scatter(const Array& base, const Array& piece, const std::function<At(const At&)>& to) {
  Array y = base;
  for (std::size_t i = 0; i < piece.v.size(); ++i)
    y.v[at(index_of(to(coordinates(static_cast<std::int64_t>(i), piece.type.shape)), base.type.shape))] = piece.v[i];
  return y;
}

// y[to(here)] += x[here]. If `to` returns nothing, the element is dropped.
inline Array scatter_add(const Array& x, const Type& out, const std::function<At(const At&)>& to) {
  Array y = blank(out);
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const At target = to(coordinates(static_cast<std::int64_t>(i), x.type.shape));
    if (!target.empty() || out.shape.rank == 0) y.v[at(index_of(target, out.shape))] += x.v[i];
  }
  return y;
}

}  // namespace tapedeck::testing
