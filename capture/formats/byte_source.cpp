#include <tapedeck/capture/formats/byte_source.h>

#include <algorithm>
#include <vector>

namespace tapedeck {

namespace {

constexpr std::uint64_t kSourcePieceBytes = 1 << 18;

// Reads the range in pieces and gives each to take().
void for_each_piece(const ByteSource& source, std::uint64_t at, std::uint64_t size, const auto& take) {
  std::vector<unsigned char> piece(static_cast<std::size_t>(std::min(size, kSourcePieceBytes)));
  for (std::uint64_t done = 0; done < size;) {
    const std::span<unsigned char> now(piece.data(), static_cast<std::size_t>(std::min(size - done, kSourcePieceBytes)));
    source.read(at + done, now);
    take(Bytes(now));
    done += now.size();
  }
}

}  // namespace

MemorySource::MemorySource(Bytes bytes, std::string path) : ByteSource(std::move(path)), bytes_(bytes) { size_ = bytes.size(); }

void MemorySource::read(std::uint64_t at, std::span<unsigned char> to) const {
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
}

std::uint64_t checksum(const ByteSource& source, std::uint64_t at, std::uint64_t size) {
  ChecksumState state;
  for_each_piece(source, at, size, [&](Bytes piece) { state.add(piece); });
  return state.sum();
}

bool all_zero(const ByteSource& source, std::uint64_t at, std::uint64_t size) {
  bool zero = true;
  for_each_piece(source, at, size, [&](Bytes piece) {
    zero = zero && std::all_of(piece.begin(), piece.end(), [](unsigned char byte) { return byte == 0; });
  });
  return zero;
}

}  // namespace tapedeck
