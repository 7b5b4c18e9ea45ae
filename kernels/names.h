// Names that are not interned, and the number of names that are.
#pragma once

#include <tapedeck/kernels/attrs.h>

#include <cstddef>
#include <string>

namespace tapedeck {

// A Name for reading `text`, as long as `text` lives. It equals no other Name, not even one of the same text.
Name borrowed_name(const std::string& text);

std::size_t interned_names();  // in this process; they are never freed. Thread safe

}  // namespace tapedeck
