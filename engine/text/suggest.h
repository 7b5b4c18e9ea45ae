// "Did you mean": finds the known word that is nearest to a misspelt word.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Returns the candidate that needs the fewest edits to become `word`; of several, the first. An edit inserts, deletes or
// replaces a letter, or swaps two neighbours. Returns an empty string if no candidate is near. A candidate is near if it
// needs at most a third as many edits as `word` has letters, and in any case if it needs one. A word of one letter or of more
// than 64 letters has no near candidate.
std::string closest(std::string_view word, const std::vector<std::string_view>& candidates);

// ": did you mean 'x'?", or an empty string if no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace TAPEDECK_API
