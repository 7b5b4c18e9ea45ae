#include <tapedeck/capture/formats/checksum.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

namespace tapedeck {

std::uint64_t checksum(Bytes bytes, std::uint64_t seed) { return XXH64(bytes.data(), bytes.size(), seed); }

ChecksumState::ChecksumState() : state_(XXH64_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH64_reset(static_cast<XXH64_state_t*>(state_), 0);
}

ChecksumState::~ChecksumState() { XXH64_freeState(static_cast<XXH64_state_t*>(state_)); }

void ChecksumState::add(Bytes bytes) { XXH64_update(static_cast<XXH64_state_t*>(state_), bytes.data(), bytes.size()); }

std::uint64_t ChecksumState::sum() const { return XXH64_digest(static_cast<const XXH64_state_t*>(state_)); }

std::string checksum_text(std::uint64_t sum) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, sum >>= 4) text[i] = "0123456789abcdef"[sum & 15];
  return text;
}

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t sum = 0;
  for (const char c : text) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    sum = sum << 4 | digit;
  }
  return sum;
}

}  // namespace tapedeck
