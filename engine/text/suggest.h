// "did you mean": the known word nearest to a misspelt one.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// The candidate with the fewest edits (insert, delete, replace, swap neighbours), the first among equals; empty if none is
// near: at most a third of the word's letters, or one. Words of one letter or more than 64 have no neighbours.
std::string closest(std::string_view word, const std::vector<std::string_view>& candidates);

// ": did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace TAPEDECK_API
