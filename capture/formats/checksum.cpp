// XXH64: four lanes eat 32 bytes a round, are folded into one, the tail follows, and an avalanche spreads the last bits.
#include <tapedeck/capture/formats/checksum.h>

#include <bit>
#include <cstring>

namespace tapedeck {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian, and read in place");

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <class T>
std::uint64_t load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

std::uint64_t fold(std::uint64_t sum, std::uint64_t lane) { return (sum ^ round(0, lane)) * kPrime1 + kPrime4; }

// All whole blocks of 32 bytes; moves p behind them.
std::uint64_t blocks(const unsigned char*& p, const unsigned char* end, std::uint64_t seed) {
  std::uint64_t a = seed + kPrime1 + kPrime2, b = seed + kPrime2, c = seed, d = seed - kPrime1;
  for (; end - p >= 32; p += 32) {
    a = round(a, load<std::uint64_t>(p));
    b = round(b, load<std::uint64_t>(p + 8));
    c = round(c, load<std::uint64_t>(p + 16));
    d = round(d, load<std::uint64_t>(p + 24));
  }
  std::uint64_t sum = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
  for (const std::uint64_t lane : {a, b, c, d}) sum = fold(sum, lane);
  return sum;
}

}  // namespace

std::uint64_t checksum(Bytes bytes, std::uint64_t seed) {
  const unsigned char* p = bytes.data();
  const unsigned char* end = p + bytes.size();
  std::uint64_t sum = bytes.size() >= 32 ? blocks(p, end, seed) : seed + kPrime5;
  sum += bytes.size();
  for (; end - p >= 8; p += 8) sum = std::rotl(sum ^ round(0, load<std::uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    sum = std::rotl(sum ^ load<std::uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) sum = std::rotl(sum ^ *p * kPrime5, 11) * kPrime1;
  sum = (sum ^ (sum >> 33)) * kPrime2;
  sum = (sum ^ (sum >> 29)) * kPrime3;
  return sum ^ (sum >> 32);
}

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
