// XXH64, a fast 64-bit checksum (several GB/s), as the library xxHash computes it. It finds damage. It is no defence against
// somebody who forges a file on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tapedeck {

using Bytes = std::span<const unsigned char>;

// Continues from `seed`, so that checksum(b, checksum(a)) covers a, then b (and differs from checksum(ab)).
std::uint64_t checksum(Bytes bytes, std::uint64_t seed = 0);

// Sixteen lower-case hexadecimal digits, and back; nothing else is accepted.
std::string checksum_text(std::uint64_t sum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace tapedeck
