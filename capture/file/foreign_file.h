// The kind of a file that is no tape, by its first bytes: for messages, and for programs that open a graph under any name.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

inline constexpr std::size_t kForeignBytes = 4096;  // of the beginning of a file, as many as are looked at

// Whether the bytes begin as the text of a graph does: with the word `graph`, behind blanks and comments.
bool begins_like_graph_text(std::string_view begin);
// The same of a file. False for a file that cannot be read, and for what is no regular file: a pipe can be read once only.
bool is_graph_text(const std::string& path);

// The kind of a file that is no safetensors file, in words that follow "not a tape, but": "a .npy array", "the text of a
// graph". Empty for bytes of no known kind. REQUIRES: `begin` has the first kForeignBytes of the file, or all.
std::string foreign_kind(std::string_view begin);

}  // namespace TAPEDECK_API
