// Checksums as text, of a file and of strings: for names of entries in a cache.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Sixteen hexadecimal digits: the XXH64 of the bytes of a file. Reads the file piece by piece. Throws FileError.
std::string file_checksum(const std::string& path);

// Sixteen hexadecimal digits that depend on every string and on where one string ends and the next one begins.
std::string strings_checksum(const std::vector<std::string>& strings);

}  // namespace TAPEDECK_API
