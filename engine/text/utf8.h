// Which bytes of a text are UTF-8. Names come from files and from users, and may hold any bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace tapedeck {

// The number of bytes, two to four, of the sequence of UTF-8 at the start of the text. 0 if the text begins with ASCII, or with
// no sequence that is complete, the shortest form of its character, and no surrogate.
std::size_t utf8_length(std::string_view text);

}  // namespace tapedeck
