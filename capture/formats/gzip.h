// Files compressed by gzip (RFC 1952), read whole into memory, with a bound on the bytes that come out.
#pragma once

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tapedeck {

bool is_gzip(std::string_view bytes);  // begins like a gzip file

// The bytes that were compressed: those of all members of the file, one after another. Memory is taken as they come, and never
// for more than `most` of them. `path` is for messages. Throws FileError if the bytes are damaged or cut off, if others than
// zeros follow them, or if more than `most` bytes come out; ExecutionError if memory runs out.
std::string gunzip(std::string_view packed, const std::string& path, std::size_t most = kMostTextBytes);

// A text that may be compressed: `bytes` themselves, or gunzip() of them.
TAPEDECK_API std::string unpacked_text(std::string bytes, const std::string& path, std::size_t most = kMostTextBytes);

}  // namespace tapedeck
