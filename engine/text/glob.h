// Names that a pattern with wildcards stands for: `*` stands for any characters, also none, and `?` for one character.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string_view>

namespace tapedeck TAPEDECK_API {

// Whether the whole text is one that the pattern stands for. At most pattern x text steps, whatever the pattern.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace TAPEDECK_API
