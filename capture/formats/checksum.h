// XXH64, a fast 64-bit checksum (several GB/s), as the library xxHash computes it. It finds damage. It is no defence against
// somebody who forges a file on purpose.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

using Bytes = std::span<const unsigned char>;

// Continues from `seed`, so that checksum(b, checksum(a)) covers a, then b (and differs from checksum(ab)).
std::uint64_t checksum(Bytes bytes, std::uint64_t seed = 0);

// The checksum of bytes that come piece by piece: the same as checksum() of all of them.
class ChecksumState {
 public:
  ChecksumState();
  ~ChecksumState();
  ChecksumState(const ChecksumState&) = delete;
  ChecksumState& operator=(const ChecksumState&) = delete;
  void add(Bytes bytes);
  std::uint64_t sum() const;

 private:
  void* state_;  // of the library
};

// Sixteen lower-case hexadecimal digits, and back; nothing else is accepted.
std::string checksum_text(std::uint64_t sum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace TAPEDECK_API
