// The numbers of nodes, values and rows as indices of vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapedeck::viewer {

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace tapedeck::viewer
